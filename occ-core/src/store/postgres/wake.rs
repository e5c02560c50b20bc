//! Waking workers: here at once, in other processes through `LISTEN` and `NOTIFY`.
//!
//! A notification is sent after the commit, by a task of its own, and covers all that were committed meanwhile: `NOTIFY` inside a
//! transaction lets only one commit at a time, through its flush. One that is lost costs a poll, not the work.

use std::{sync::Arc, time::Duration};

use sqlx::{
    Executor as _,
    postgres::{PgArguments, PgListener, PgPoolOptions},
};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{connections::Connections, settings::PostgresSettings};

/// Between two notifications: work that comes in bursts wakes everybody once.
const PAUSE: Duration = Duration::from_millis(2);
/// After so long in silence the listening connection is asked whether it still answers.
const SILENCE: Duration = Duration::from_secs(30);
/// Between two attempts to listen again.
const RETRY: Duration = Duration::from_millis(250);

pub(super) struct Wake {
    arrived: Arc<Notify>,
    send: Arc<Notify>,
    /// Ended when this is dropped.
    _tasks: JoinSet<()>,
}

impl Wake {
    pub(super) fn new(settings: &PostgresSettings, connections: &Arc<Connections>) -> Self {
        let (arrived, send) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let mut tasks = JoinSet::new();
        tasks.spawn(tell(Arc::clone(connections), Arc::clone(&send)));
        tasks.spawn(hear(settings.clone(), Arc::clone(connections), Arc::clone(&arrived)));
        Self {
            arrived,
            send,
            _tasks: tasks,
        }
    }

    /// Somebody here may be waiting now, or come in a moment.
    pub(super) fn here(&self) {
        wake(&self.arrived);
    }

    /// The same, here and in every other process.
    pub(super) fn everywhere(&self) {
        self.here();
        self.send.notify_one();
    }

    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }
}

fn wake(arrived: &Notify) {
    arrived.notify_waiters();
    arrived.notify_one();
}

async fn tell(connections: Arc<Connections>, send: Arc<Notify>) {
    loop {
        send.notified().await;
        let _ = connections
            .again("SELECT pg_notify('occ_work', '')", PgArguments::default())
            .await;
        sleep(PAUSE).await;
    }
}

async fn hear(settings: PostgresSettings, connections: Arc<Connections>, arrived: Arc<Notify>) {
    loop {
        // Returns when the connection was lost: its siblings are then as dead as it is.
        let _ = listen(&settings, &arrived).await;
        connections.suspect();
        wake(&arrived);
        sleep(RETRY).await;
    }
}

async fn listen(settings: &PostgresSettings, arrived: &Notify) -> Result<(), sqlx::Error> {
    // The listener wants a pool; it holds this one connection.
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(settings.query_timeout)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with(settings.session());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen("occ_work").await?;
    // What came while nobody listened.
    wake(arrived);
    loop {
        match timeout(SILENCE, listener.try_recv()).await {
            Ok(Ok(Some(_))) => {
                while listener.next_buffered().is_some() {}
                wake(arrived);
            }
            Ok(Ok(None) | Err(_)) => return Ok(()),
            Err(_) => match timeout(settings.query_timeout, listener.execute("SELECT 1")).await {
                Ok(Ok(_)) => {}
                _ => return Ok(()),
            },
        }
    }
}

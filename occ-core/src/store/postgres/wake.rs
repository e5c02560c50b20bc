//! Waking workers: here at once, in other processes through `LISTEN` and `NOTIFY`.
//!
//! A notification is sent after the commit, by a task of its own, and covers all that were committed meanwhile: `NOTIFY` inside a
//! transaction lets only one commit at a time, through its flush. One that is lost costs a poll, not the work.
//!
//! Work that moves is told of too, for readers that wait for the end of a deployment, but only now and then: they look at most a few
//! times a second.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::{
    Executor as _,
    postgres::{PgListener, PgPoolOptions},
};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{arguments, connections::Connections, settings::PostgresSettings};

/// Between two notifications: work that comes in bursts wakes everybody once. Each costs a statement and a wake-up of every process,
/// which at a full rate of admissions would be one for each of them.
const PAUSE: Duration = Duration::from_millis(10);
/// The same for work that moves.
const MOVED_PAUSE: Duration = Duration::from_millis(100);
/// After so long in silence the listening connection is asked whether it still answers.
const SILENCE: Duration = Duration::from_secs(30);
/// Between two attempts to listen again.
const RETRY: Duration = Duration::from_millis(250);

pub(super) struct Wake {
    ear: Arc<Ear>,
    send: Arc<Notify>,
    send_moved: Arc<Notify>,
    /// Ended when this is dropped.
    _tasks: JoinSet<()>,
}

/// Who waits here for news, and whether news of other processes comes in.
#[derive(Default)]
struct Ear {
    arrived: Notify,
    moved: watch::Sender<()>,
    open: AtomicBool,
}

impl Wake {
    pub(super) fn new(settings: &PostgresSettings, connections: &Arc<Connections>) -> Self {
        let (ear, send, send_moved) = (Arc::new(Ear::default()), Arc::default(), Arc::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(tell(WORK, PAUSE, Arc::clone(connections), Arc::clone(&send)));
        tasks.spawn(tell(
            MOVED,
            MOVED_PAUSE,
            Arc::clone(connections),
            Arc::clone(&send_moved),
        ));
        tasks.spawn(hear(settings.clone(), Arc::clone(connections), Arc::clone(&ear)));
        Self {
            ear,
            send,
            send_moved,
            _tasks: tasks,
        }
    }

    /// Somebody here may be waiting now, or come in a moment.
    pub(super) fn here(&self) {
        self.ear.wake();
    }

    /// The same, here and in every other process.
    pub(super) fn everywhere(&self) {
        self.here();
        self.send.notify_one();
    }

    /// Work moved: readers here hear it at once, those of other processes soon.
    pub(super) fn moved(&self) {
        self.ear.moved.send_replace(());
        self.send_moved.notify_one();
    }

    pub(super) fn movements(&self) -> watch::Receiver<()> {
        self.ear.moved.subscribe()
    }

    pub(super) async fn arrived(&self) {
        self.ear.arrived.notified().await;
    }

    pub(super) fn hears(&self) -> bool {
        self.ear.open.load(Ordering::Relaxed)
    }
}

impl Ear {
    fn wake(&self) {
        self.moved.send_replace(());
        self.arrived.notify_waiters();
        self.arrived.notify_one();
    }
}

/// What workers listen to.
const WORK: &str = "occ_work";
/// What readers listen to.
const MOVED: &str = "occ_moved";

async fn tell(channel: &'static str, pause: Duration, connections: Arc<Connections>, send: Arc<Notify>) {
    loop {
        send.notified().await;
        let notify = async || {
            let arguments = arguments![channel.to_owned()];
            connections.again("SELECT pg_notify($1, '')", arguments).await
        };
        // The others may look only after a long while.
        while notify().await.is_err() {
            sleep(RETRY).await;
        }
        sleep(pause).await;
    }
}

async fn hear(settings: PostgresSettings, connections: Arc<Connections>, ear: Arc<Ear>) {
    loop {
        // Returns when the connection was lost: its siblings are then as dead as it is.
        let _ = listen(&settings, &ear).await;
        ear.open.store(false, Ordering::Relaxed);
        connections.suspect();
        ear.wake();
        sleep(RETRY).await;
    }
}

async fn listen(settings: &PostgresSettings, ear: &Ear) -> Result<(), sqlx::Error> {
    // The listener wants a pool; it holds this one connection.
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(settings.query_timeout)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with(settings.session());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen_all([WORK, MOVED]).await?;
    ear.open.store(true, Ordering::Relaxed);
    // What came while nobody listened.
    ear.wake();
    loop {
        match timeout(SILENCE, listener.try_recv()).await {
            Ok(Ok(Some(first))) => {
                let mut work = first.channel() == WORK;
                while let Some(next) = listener.next_buffered() {
                    work |= next.channel() == WORK;
                }
                if work {
                    ear.wake();
                } else {
                    ear.moved.send_replace(());
                }
            }
            Ok(Ok(None) | Err(_)) => return Ok(()),
            Err(_) => match timeout(settings.query_timeout, listener.execute("SELECT 1")).await {
                Ok(Ok(_)) => {}
                _ => return Ok(()),
            },
        }
    }
}

//! Claims due work and runs passes, many lanes at once.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::{JoinHandle, JoinSet},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    WorkerHealth,
    interpreter::{self, Shared},
    telemetry,
    waiting::{self, Waiting},
};
use crate::{
    installation::Drivers,
    store::{Change, Store, StoreResult, Write},
    time::{Clock, SystemClock},
    work::Policy,
};

/// How long a shutdown waits for passes that were told to end.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// While there is always something to claim, what a lost worker held is still looked for so often.
const RECOVERY: Duration = Duration::from_millis(500);
/// How soon work is looked for again of which there was some, and none when it was claimed. Doubles up to the poll.
const AGAIN: Duration = Duration::from_millis(5);

/// Drives work to its end. Any number of workers may share a store; lanes are divided by claims.
pub struct Worker {
    shared: Arc<Shared>,
}

/// A running worker.
pub struct WorkerHandle {
    shutdown: CancellationToken,
    task: JoinHandle<()>,
    health: WorkerHealth,
}

impl WorkerHandle {
    /// Whether it gets on with its work.
    pub fn health(&self) -> WorkerHealth {
        self.health.clone()
    }

    /// Ends the worker: running passes are told to end and give their attempts back.
    pub async fn shutdown(self) {
        self.shutdown.cancel();
        let _ = self.task.await;
    }
}

impl Worker {
    /// A worker over a store with the selected drivers.
    pub fn new(store: Arc<dyn Store>, drivers: Arc<Drivers>, policy: Policy) -> Self {
        Self {
            shared: Arc::new(Shared {
                store,
                drivers,
                clock: Arc::new(SystemClock),
                policy,
                waiting: Waiting::default(),
            }),
        }
    }

    /// The same with another clock for its drivers. The queue's own clock stays the database's.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        let Shared {
            store, drivers, policy, ..
        } = &*self.shared;
        Self {
            shared: Arc::new(Shared {
                store: Arc::clone(store),
                drivers: Arc::clone(drivers),
                clock,
                policy: *policy,
                waiting: Waiting::default(),
            }),
        }
    }

    /// Starts it in the background.
    pub fn start(self) -> WorkerHandle {
        let shutdown = CancellationToken::new();
        let health = WorkerHealth::new(&self.shared.policy);
        let task = tokio::spawn(serve(self.shared, shutdown.clone(), health.clone()));
        WorkerHandle { shutdown, task, health }
    }

    /// Works until it is told to shut down. Dropped before, it is a worker that died: its claims lapse.
    pub async fn run(self, shutdown: CancellationToken) {
        let health = WorkerHealth::new(&self.shared.policy);
        serve(self.shared, shutdown, health).await;
    }
}

async fn serve(shared: Arc<Shared>, shutdown: CancellationToken, health: WorkerHealth) {
    telemetry::describe();
    shared.drivers.attach_hooks();
    tracing::info!(concurrency = shared.policy.concurrency, "worker.started");
    look_after_selected(&shared).await;
    let mut keeping = JoinSet::new();
    keeping.spawn(waiting::keep(Arc::clone(&shared), shutdown.clone()));
    let mut passes = JoinSet::new();
    let mut recovered = Instant::now();
    // Whether something is known to be due, or there was more than room for: then it is claimed without a look.
    let mut likely = false;
    let mut again = AGAIN;
    while !shutdown.is_cancelled() {
        if std::mem::take(&mut likely) {
            claim(&shared, &mut passes, &shutdown).await;
            if recovered.elapsed() >= RECOVERY {
                recover(&shared).await;
                recovered = Instant::now();
            }
        }
        let full = passes.len() >= shared.policy.concurrency;
        let looked = if full { Ok(None) } else { next_due(&shared).await };
        health.turned(looked.is_ok());
        let due = looked.unwrap_or_default();
        if due == Some(Duration::ZERO) {
            let claimed = claim(&shared, &mut passes, &shutdown).await;
            let mut taken_back = 0;
            if claimed == 0 || recovered.elapsed() >= RECOVERY {
                taken_back = recover(&shared).await;
                recovered = Instant::now();
            }
            if claimed + taken_back > 0 {
                again = AGAIN;
                continue;
            }
        }
        let (now, poll) = (Instant::now(), shared.policy.poll(shared.store.hears()));
        // What could not be claimed was another worker's, or was put off meanwhile. What is due after it was not said, and nobody
        // announces that.
        let lost = due == Some(Duration::ZERO);
        let wait = if lost { again } else { due.unwrap_or(poll).min(poll) };
        again = if lost { poll.min(again * 2) } else { AGAIN };
        tokio::select! {
            // In this order, so that a simulation is a function of its seed.
            biased;
            () = shutdown.cancelled() => {}
            Some(_) = passes.join_next() => likely = full,
            () = shared.store.work_arrived(), if !full => {}
            () = tokio::time::sleep_until(now + wait) => likely = due == Some(wait) && !lost,
        }
        while passes.try_join_next().is_some() {}
    }
    let _ = tokio::time::timeout(SHUTDOWN_GRACE, async { while passes.join_next().await.is_some() {} }).await;
    tracing::info!("worker.stopped");
}

/// Queues one look at every selected version: after a restart of the machine, nothing of it runs.
async fn look_after_selected(shared: &Shared) {
    let queued = async {
        for work in shared.store.selected().await.map_err(|error| error.to_string())? {
            let change = Change::new().write(Write::Enqueue(work));
            shared.store.commit(change).await.map_err(|error| error.to_string())?;
        }
        Ok::<_, String>(())
    };
    if let Err(cause) = queued.await {
        tracing::warn!(code = "WORKER_UNAVAILABLE", cause, "worker.error");
    }
}

/// Claims as much as there is room for. Returns how much.
async fn claim(shared: &Arc<Shared>, passes: &mut JoinSet<()>, shutdown: &CancellationToken) -> usize {
    let room = shared.policy.concurrency.saturating_sub(passes.len());
    if room == 0 {
        return 0;
    }
    let sent = Instant::now();
    match shared.store.claim(room, shared.lease()).await {
        Ok(claims) => {
            let count = claims.len();
            for claim in claims {
                telemetry::claimed(&claim);
                let (shared, shutdown) = (Arc::clone(shared), shutdown.clone());
                passes.spawn(async move { interpreter::run(&shared, claim, sent, &shutdown).await });
            }
            count
        }
        Err(error) => {
            tracing::warn!(code = "WORKER_UNAVAILABLE", cause = %error, "worker.error");
            0
        }
    }
}

/// Takes back every claim that lapsed. Returns how many.
async fn recover(shared: &Shared) -> usize {
    let mut count = 0;
    loop {
        match shared.store.recover(shared.lease()).await {
            Ok(0) => break,
            Ok(some) => count += some,
            Err(error) => {
                tracing::warn!(code = "WORKER_UNAVAILABLE", cause = %error, "worker.error");
                break;
            }
        }
    }
    if count > 0 {
        telemetry::recovered(count);
        tracing::info!(count, "worker.recovered");
    }
    count
}

/// How long until work is due, or a claim lapses; looks without claiming, so that an idle worker costs one cheap query a poll.
async fn next_due(shared: &Shared) -> StoreResult<Option<Duration>> {
    shared.store.next_due().await.inspect_err(|error| {
        tracing::warn!(code = "WORKER_UNAVAILABLE", cause = %error, "worker.error");
    })
}

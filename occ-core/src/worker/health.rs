//! Whether a worker gets on with its work.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::work::Policy;

/// A view of one worker's loop, for probes. Cheap to clone and to ask.
#[derive(Debug, Clone)]
pub struct WorkerHealth {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    started: Instant,
    stale_after: Duration,
    /// Milliseconds from the start to the latest turn of the loop.
    turned: AtomicU64,
    serves: AtomicBool,
}

impl WorkerHealth {
    pub(super) fn new(policy: &Policy) -> Self {
        Self {
            state: Arc::new(State {
                started: Instant::now(),
                stale_after: stale_after(policy),
                turned: AtomicU64::new(0),
                serves: AtomicBool::new(false),
            }),
        }
    }

    /// The loop turned, and the store answered or did not.
    pub(super) fn turned(&self, store_answers: bool) {
        let since = u64::try_from(self.state.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.state.turned.store(since, Ordering::Relaxed);
        self.state.serves.store(store_answers, Ordering::Relaxed);
    }

    /// Whether the loop still turns: a worker that does not will not recover by itself, and is to be started again. The bound
    /// is generous: the longer of two minutes, 240 polls and six leases (spec/engine 4).
    pub fn live(&self) -> bool {
        let turned = Duration::from_millis(self.state.turned.load(Ordering::Relaxed));
        self.state.started.elapsed().saturating_sub(turned) < self.state.stale_after
    }

    /// Whether it can take up work: it is live, and the store answered at its latest turn.
    pub fn ready(&self) -> bool {
        self.state.serves.load(Ordering::Relaxed) && self.live()
    }
}

fn stale_after(policy: &Policy) -> Duration {
    Duration::from_mins(2)
        .max(policy.poll_interval * 240)
        .max(policy.lease * 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_stands_still_is_not_live() {
        let policy = Policy {
            poll_interval: Duration::from_secs(1),
            ..Policy::default()
        };
        let health = WorkerHealth::new(&policy);
        assert!(health.live());
        assert!(!health.ready(), "the store has not answered yet");
        health.turned(true);
        assert!(health.ready());
        tokio::time::advance(Duration::from_secs(239)).await;
        assert!(health.ready());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!health.live() && !health.ready());
        health.turned(false);
        assert!(health.live() && !health.ready());
    }
}

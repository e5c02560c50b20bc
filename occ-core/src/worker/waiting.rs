//! Deployments that wait for a Compute that hears of changes by itself.
//!
//! Such a version is looked at once. From then on the worker asks the Compute on the cadence on which the version would be looked at,
//! and holds its work off as long as nothing changed: many at a time, without a claim and without a pass, and mostly without a write.
//! When something did, of the version or of its Agent, its work is made due. All of it is in the memory of one worker. Whatever it
//! forgets, or does not get round to, comes due, and some worker looks.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{Outcome, Pass, interpreter::Shared, pass::revision_ref};
use crate::{
    driver::{RevisionRef, RevisionWatch},
    store::Wait,
    work::{Target, Transition, readiness_cadence},
};

/// How often the Compute is asked about those whose cadence has come round.
const TICK: Duration = Duration::from_millis(100);
/// How long work is held off at a time. The look that a worker owes when it dies comes no later.
const HOLD: Duration = Duration::from_secs(30);
/// Work must not come due before the Compute is asked again, even when that is late by so much.
const MARGIN: Duration = Duration::from_secs(2);
/// At most so many in one statement, so that it stays short.
const BATCH: usize = 200;
/// After so long a version is looked at all the same: the actor's authority is asked for in a pass alone.
const FULL_LOOK: Duration = Duration::from_mins(5);

/// What this worker saw last of those that wait.
#[derive(Default)]
pub(super) struct Waiting {
    seen: Mutex<BTreeMap<String, Seen>>,
    more: Notify,
}

/// A version, as it was at its last look.
struct Seen {
    target: RevisionRef,
    /// The version of the Agent's row.
    agent: u64,
    /// When that was.
    at: Instant,
    /// How old the work was then.
    age: Duration,
    /// When it is looked at again, whatever the Compute says.
    until: Instant,
    /// When the Compute is asked next.
    next: Instant,
    /// The work does not come due before.
    held: Instant,
}

/// What is asked of the store about one of them.
struct Ask {
    wait: Wait,
    next: Instant,
    held: Instant,
}

impl Seen {
    /// Holds it off, or makes it due.
    fn ask(&self, key: &str, now: Instant, watch: &dyn RevisionWatch) -> Ask {
        let cadence = readiness_cadence(self.age + (now - self.at));
        let left = if watch.unchanged(&self.target) {
            self.until.saturating_duration_since(now)
        } else {
            Duration::ZERO
        };
        let wait = Wait {
            key: key.to_owned(),
            agent: self.target.agent.id,
            version: self.agent,
            least: left.min(cadence + MARGIN),
            most: left.min(HOLD),
        };
        Ask {
            next: now + cadence,
            held: now + wait.least,
            wait,
        }
    }
}

impl Waiting {
    fn seen(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what a pass saw, when it ended with a wait for a Compute that will know when that is over; else forgets what an
    /// earlier one saw. `sent` is when its end was sent to the store.
    pub(super) fn saw(&self, shared: &Shared, pass: &Pass, outcome: &Outcome, transition: &Transition, sent: Instant) {
        let key = pass.claim.target.key();
        let Some(seen) = waits(shared, pass, outcome, transition, sent) else {
            self.seen().remove(&key);
            return;
        };
        self.seen().insert(key, seen);
        self.more.notify_one();
    }

    /// What is to be asked of the store now, of which there may be more. Forgets what may have come due meanwhile.
    fn asks(&self, watch: &dyn RevisionWatch) -> Vec<Ask> {
        let now = Instant::now();
        let mut asks = Vec::new();
        self.seen().retain(|key, seen| {
            let stays = now < seen.held;
            if stays && seen.next <= now && asks.len() < BATCH {
                asks.push(seen.ask(key, now, watch));
            }
            stays
        });
        asks
    }

    /// Takes down what is held off, and forgets what is due.
    fn answered(&self, asks: &[Ask], held: &[bool]) {
        let mut seen = self.seen();
        for (ask, &held) in asks.iter().zip(held) {
            if !held || ask.wait.most.is_zero() {
                seen.remove(&ask.wait.key);
            } else if let Some(seen) = seen.get_mut(&ask.wait.key) {
                (seen.next, seen.held) = (ask.next, ask.held);
            }
        }
    }
}

/// What a pass saw that ended with such a wait.
fn waits(shared: &Shared, pass: &Pass, outcome: &Outcome, transition: &Transition, sent: Instant) -> Option<Seen> {
    let (Outcome::Pending { .. }, Transition::Defer { delay, .. }, Target::Revision { .. }) =
        (outcome, transition, pass.claim.target)
    else {
        return None;
    };
    let watch = shared.drivers.compute.revision_watch()?;
    let (agent, head) = (pass.read.agent.as_ref()?, pass.read.head.as_ref()?);
    let revision = pass.read.revision.as_ref()?;
    // The Compute hears nothing of a Credential Gateway.
    if !revision.revision.snapshot.credential_sources.is_empty() {
        return None;
    }
    let target = revision_ref(&agent.agent, head);
    let age = pass.claim.age();
    let seen = Seen {
        agent: agent.version,
        at: sent,
        age,
        until: sent + FULL_LOOK.min(shared.policy.convergence_timeout.saturating_sub(age)),
        next: sent,
        held: sent + *delay,
        target,
    };
    watch.unchanged(&seen.target).then_some(seen)
}

/// Holds off what may be, until the worker shuts down.
pub(super) async fn keep(shared: Arc<Shared>, shutdown: CancellationToken) {
    let waiting = &shared.waiting;
    let Some(watch) = shared.drivers.compute.revision_watch() else {
        return;
    };
    loop {
        let pause = async {
            if waiting.seen().is_empty() {
                waiting.more.notified().await;
            }
            tokio::time::sleep(TICK).await;
        };
        if shutdown.run_until_cancelled(pause).await.is_none() {
            return;
        }
        while !shutdown.is_cancelled() {
            // Judged anew for each statement: the one before may have taken its time.
            let asks = waiting.asks(watch);
            if asks.is_empty() {
                break;
            }
            let waits: Vec<_> = asks.iter().map(|ask| ask.wait.clone()).collect();
            // What could not be asked is asked again, as long as it is held.
            let Ok(held) = shared.store.postpone(&waits).await else {
                break;
            };
            waiting.answered(&asks, &held);
        }
    }
}

//! Deployments that wait for a Compute that hears of changes by itself.
//!
//! Such a version is looked at once. From then on its work is put off before it comes due, on the cadence on which it would be looked
//! at, as long as the Compute knows that nothing changed: many at a time, without a claim and without a pass. All of it is in the memory
//! of one worker. Whatever it forgets, or does not get round to, comes due, and some worker looks.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{Outcome, Pass, interpreter::Shared, pass::revision_ref};
use crate::{
    driver::RevisionRef,
    store::Wait,
    work::{Target, Transition, readiness_cadence},
};

/// How often those that come due soon are put off.
const TICK: Duration = Duration::from_millis(100);
/// How long before it comes due work is put off, besides a tenth of its cadence: a worker that is late by less has not missed it.
const AHEAD: Duration = Duration::from_millis(250);
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
#[derive(Clone)]
struct Seen {
    target: RevisionRef,
    /// The version of the Agent's row.
    agent: u64,
    /// When that was.
    at: Instant,
    /// How old the work was then.
    age: Duration,
    /// When the work comes due, or a little earlier.
    due: Instant,
}

impl Seen {
    fn cadence(&self) -> Duration {
        readiness_cadence(self.age + (self.due - self.at))
    }

    /// When the look after the next one would be.
    fn later(&self) -> Instant {
        self.due + self.cadence()
    }

    fn is_soon(&self, now: Instant) -> bool {
        self.due <= now + AHEAD + self.cadence() / 10
    }
}

impl Waiting {
    fn seen(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what a pass saw, when it ended with a wait for a Compute that will know when that is over. `sent` is when its end was
    /// sent to the store.
    pub(super) fn saw(&self, shared: &Shared, pass: &Pass, outcome: &Outcome, transition: &Transition, sent: Instant) {
        let (Outcome::Pending { .. }, Transition::Defer { delay, .. }, Target::Revision { .. }) =
            (outcome, transition, pass.claim.target)
        else {
            return;
        };
        let (Some(watch), Some(agent), Some(revision)) = (
            shared.drivers.compute.revision_watch(),
            &pass.read.agent,
            &pass.read.revision,
        ) else {
            return;
        };
        // The Compute hears nothing of a Credential Gateway.
        let mediated = !revision.revision.snapshot.credential_sources.is_empty();
        let target = revision_ref(&agent.agent, &revision.revision);
        if mediated || !watch.unchanged(&target) {
            return;
        }
        let seen = Seen {
            target,
            agent: agent.version,
            at: sent,
            age: pass.claim.age(),
            due: sent + *delay,
        };
        self.seen().insert(pass.claim.target.key(), seen);
        self.more.notify_one();
    }

    /// Those that come due soon and may be put off; forgets those that may not.
    fn soon(&self, shared: &Shared) -> Vec<Wait> {
        let now = Instant::now();
        let mut waits = Vec::new();
        let Some(watch) = shared.drivers.compute.revision_watch() else {
            return waits;
        };
        self.seen().retain(|key, seen| {
            if !seen.is_soon(now) {
                return true;
            }
            let later = seen.later();
            let looked_at =
                later - seen.at >= FULL_LOOK || seen.age + (later - seen.at) >= shared.policy.convergence_timeout;
            let stays = now < seen.due && !looked_at && watch.unchanged(&seen.target);
            if stays {
                waits.push(Wait {
                    key: key.clone(),
                    agent: seen.target.agent.id,
                    version: seen.agent,
                    delay: later - now,
                });
            }
            stays
        });
        waits
    }

    /// Takes down what was put off, and forgets the rest: that comes due.
    fn put_off(&self, waits: &[Wait], done: &[bool]) {
        let mut seen = self.seen();
        for (at, wait) in waits.iter().enumerate() {
            if done.get(at) != Some(&true) {
                seen.remove(&wait.key);
            } else if let Some(seen) = seen.get_mut(&wait.key) {
                seen.due = seen.later();
            }
        }
    }
}

/// Puts off what may be, until the worker shuts down.
pub(super) async fn keep(shared: Arc<Shared>, shutdown: CancellationToken) {
    let waiting = &shared.waiting;
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
        for waits in waiting.soon(&shared).chunks(BATCH) {
            let done = shared.store.postpone(waits).await.unwrap_or_default();
            waiting.put_off(waits, &done);
        }
    }
}

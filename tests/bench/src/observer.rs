//! What happens in the store while it is measured.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use occ_core::{
    id::RevisionId,
    store::{Change, Write},
    work::{Claim, ClaimToken, Target, Transition},
};
use occ_test_support::drivers::Watch;
use tokio::{sync::watch, time::Instant};

/// Methods of a store that write.
const WRITES: [&str; 5] = ["claim", "commit", "postpone", "recover", "renew"];
/// A method that waits, and asks nothing.
const WAITS: &str = "work_arrived";

/// Counts calls, and tells of deployments that end.
#[derive(Debug)]
pub struct Observer {
    state: Mutex<State>,
    ended: watch::Sender<Ended>,
    queries: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    calls: BTreeMap<&'static str, u64>,
    claimed: HashMap<RevisionId, Instant>,
    targets: HashMap<ClaimToken, RevisionId>,
}

/// How many deployments ended so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ended {
    /// With success.
    pub succeeded: u64,
    /// Otherwise.
    pub failed: u64,
}

impl Default for Observer {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            ended: watch::Sender::new(Ended::default()),
            queries: watch::Sender::new(0),
        }
    }
}

/// How often each method was called.
pub type Calls = BTreeMap<&'static str, u64>;

/// How many of the calls write, and how many read.
pub(crate) fn writes_and_reads(calls: &Calls) -> (u64, u64) {
    let (mut writes, mut reads) = (0, 0);
    for (method, count) in calls {
        *(if WRITES.contains(method) {
            &mut writes
        } else {
            &mut reads
        }) += count;
    }
    (writes, reads)
}

impl Observer {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls since the last look.
    pub fn take_calls(&self) -> Calls {
        std::mem::take(&mut self.state().calls)
    }

    /// Forgets what is remembered of single deployments.
    pub(crate) fn forget(&self) {
        self.state().claimed.clear();
    }

    /// When the deployment was first claimed.
    pub(crate) fn claimed_at(&self, revision: RevisionId) -> Option<Instant> {
        self.state().claimed.get(&revision).copied()
    }

    /// How many deployments ended, as it changes.
    pub fn ended(&self) -> watch::Receiver<Ended> {
        self.ended.subscribe()
    }

    /// How many queries were made, as it changes.
    pub fn queries(&self) -> watch::Receiver<u64> {
        self.queries.subscribe()
    }
}

impl Watch for Observer {
    fn called(&self, method: &'static str) {
        if method == WAITS {
            return;
        }
        *self.state().calls.entry(method).or_default() += 1;
        self.queries.send_modify(|queries| *queries += 1);
    }

    fn claimed(&self, claims: &[Claim]) {
        let now = Instant::now();
        let mut state = self.state();
        for claim in claims {
            if let Target::Revision { revision, .. } = claim.target {
                state.claimed.entry(revision).or_insert(now);
                state.targets.insert(claim.token, revision);
            }
        }
    }

    fn committed(&self, change: &Change) {
        for write in &change.writes {
            let Write::Settle(token, transition) = write else {
                continue;
            };
            let deployment = self.state().targets.remove(token).is_some();
            match transition {
                Transition::Complete { .. } if deployment => self.ended.send_modify(|ended| ended.succeeded += 1),
                Transition::Fail { .. } if deployment => self.ended.send_modify(|ended| ended.failed += 1),
                _ => {}
            }
        }
    }
}

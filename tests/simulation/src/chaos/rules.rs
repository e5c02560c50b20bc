//! The rules that hold at every step (ARCHITECTURE, "Rules the engine keeps").

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use occ_core::{
    driver::{ActivationOrder, RevisionRef},
    id::{AgentId, RevisionId},
    reason::{Failure, Success},
    resource::DesiredRuntimeState,
    store::{Change, Expect, Write},
    time::{Clock as _, Timestamp},
    work::{ClaimToken, Target, Transition},
};
use uuid::Uuid;

use crate::memory::{Data, MemoryStore, State, Work};

/// What a Compute really runs, however much it lies.
#[derive(Debug, Default)]
pub struct Runtime {
    /// Versions whose workload runs, by their Agent.
    pub running: BTreeMap<AgentId, BTreeSet<RevisionId>>,
    /// The version that the Agent's route leads to.
    pub routed: BTreeMap<AgentId, RevisionId>,
    /// Versions that were seen ready.
    pub ready: BTreeSet<RevisionId>,
    /// Agents with credentials.
    pub credentials: BTreeSet<AgentId>,
}

impl Runtime {
    /// Whether the version's workload runs.
    pub fn runs(&self, agent: AgentId, revision: RevisionId) -> bool {
        self.running
            .get(&agent)
            .is_some_and(|running| running.contains(&revision))
    }

    /// Whether anything of the Agent runs.
    pub fn runs_any(&self, agent: AgentId) -> bool {
        self.running.get(&agent).is_some_and(|running| !running.is_empty())
    }
}

/// An effect that is under way.
#[derive(Debug)]
struct Effect {
    operation: Uuid,
    /// When somebody else began one for the same Agent.
    joined: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Inner {
    broken: Vec<String>,
    trace: Option<Vec<String>>,
    hash: u64,
    runtime: Runtime,
    effects: BTreeMap<(AgentId, u64), Effect>,
    next_effect: u64,
    over: BTreeMap<String, State>,
}

/// Watches a whole simulation.
#[derive(Clone)]
pub struct Rules {
    inner: Arc<Mutex<Inner>>,
    store: MemoryStore,
    order: ActivationOrder,
    exclusive: bool,
    /// The store's clock runs away from the workers': they cannot know when a lease ends, and only publications are fenced.
    jumps: bool,
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

/// Refusals: recorded only after the candidate was stopped.
const fn is_refusal(failure: Failure) -> bool {
    !matches!(
        failure,
        Failure::ConvergenceDeadlineExceeded
            | Failure::RuntimeAuthenticationFailed
            | Failure::RuntimeCpuStarved
            | Failure::RuntimeModelProbeTimeout
            | Failure::RuntimeModelProbeFailed
            | Failure::RuntimeLoginFailed
            | Failure::RuntimeStartupFailed
            | Failure::WorkspaceSetupRefused
            | Failure::AgentGatewayUnavailable
            | Failure::KubernetesApiUnavailable
            | Failure::SandboxAdmissionLimitReached
            | Failure::SandboxGatewayUnavailable
            | Failure::DependencyUnavailable
            | Failure::ActiveRevisionChanged
            | Failure::LeaseExpired
            | Failure::MaxAttemptsExhausted
    )
}

impl Rules {
    /// Over this store; with `traced`, every step is kept as a line.
    pub fn new(store: MemoryStore, order: ActivationOrder, exclusive: bool, jumps: bool, traced: bool) -> Self {
        let inner = Inner {
            trace: traced.then(Vec::new),
            ..Inner::default()
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            store,
            order,
            exclusive,
            jumps,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A rule is broken.
    pub fn broken(&self, what: impl Into<String>) {
        let what = what.into();
        self.step(|| format!("BROKEN: {what}"));
        self.inner().broken.push(what);
    }

    /// Breaks unless this holds.
    pub fn hold(&self, rule: bool, what: impl FnOnce() -> String) {
        if !rule {
            self.broken(what());
        }
    }

    /// What was broken so far.
    pub fn take_broken(&self) -> Vec<String> {
        std::mem::take(&mut self.inner().broken)
    }

    /// A step, for the trace.
    pub fn step(&self, line: impl FnOnce() -> String) {
        let now = self.store.now();
        let mut inner = self.inner();
        // The order and the moments of the steps; enough to tell two runs apart.
        let mixed = inner.hash ^ u64::try_from(now.as_millis()).unwrap_or(0);
        inner.hash = mixed.wrapping_mul(0x0100_0000_01b3).rotate_left(5);
        if let Some(trace) = &mut inner.trace {
            let line = format!("{now} {}", line());
            trace.push(line);
        }
    }

    /// The lines of the trace.
    pub fn take_trace(&self) -> Vec<String> {
        self.inner().trace.take().unwrap_or_default()
    }

    /// What tells this run from another.
    pub fn hash(&self) -> u64 {
        self.inner().hash
    }

    /// Looks at what the Compute really runs.
    pub fn runtime<T>(&self, look: impl FnOnce(&Runtime) -> T) -> T {
        look(&self.inner().runtime)
    }

    /// Changes what the Compute really runs.
    pub fn alter<T>(&self, alter: impl FnOnce(&mut Runtime) -> T) -> T {
        alter(&mut self.inner().runtime)
    }

    /// Whether what runs in the end is for the engine to answer for. A worker that cannot know that its lease ended may cause an effect
    /// beside the one that follows it, which nobody hears of.
    pub const fn are_exact(&self) -> bool {
        !self.jumps
    }

    /// An effect of this operation begins for an Agent. No other operation's may be under way, beyond this very moment: the lease
    /// of one ends when that of the other begins.
    pub fn begin(&self, agent: AgentId, operation: Uuid) -> InFlight {
        let now = self.store.now();
        let mut inner = self.inner();
        inner.next_effect += 1;
        let number = inner.next_effect;
        for (_, effect) in inner.effects.range_mut((agent, 0)..=(agent, u64::MAX)) {
            if effect.operation != operation {
                effect.joined.get_or_insert(now);
            }
        }
        let effect = Effect {
            operation,
            joined: None,
        };
        inner.effects.insert((agent, number), effect);
        drop(inner);
        InFlight {
            rules: self.clone(),
            key: (agent, number),
        }
    }

    /// A version is about to be prepared.
    pub fn may_prepare(&self, target: &RevisionRef) {
        if !self.exclusive || self.jumps {
            return;
        }
        let others = self.runtime(|runtime| {
            let running = runtime.running.get(&target.agent.id);
            running.is_some_and(|running| running.iter().any(|id| *id != target.id))
        });
        self.hold(!others, || {
            format!("{} is prepared while another version of its Agent runs", target.id)
        });
    }

    /// A version is about to be activated.
    pub fn may_activate(&self, target: &RevisionRef) {
        if self.jumps {
            return;
        }
        let allowed = match self.order {
            ActivationOrder::AfterCommit => {
                let data = self.store.data();
                let agent = data.agents.get(&target.agent.id);
                agent.is_some_and(|row| row.agent.active_revision_id == Some(target.id))
            }
            ActivationOrder::BeforeCommit => self.runtime(|runtime| runtime.ready.contains(&target.id)),
        };
        self.hold(allowed, || format!("{} is activated before it may be", target.id));
    }

    /// A change is about to be committed.
    pub fn before(&self, change: &Change, data: &Data) {
        for write in &change.writes {
            match write {
                Write::ActiveRevision(agent, to) => self.pointer(change, data, *agent, *to),
                Write::Revision { revision, .. } => {
                    let queued = change.writes.iter().any(
                        |write| matches!(write, Write::Enqueue(work) if work.target.revision() == Some(revision.id)),
                    );
                    let told = change
                        .audit
                        .iter()
                        .any(|event| event.resource.id == revision.id.to_string());
                    self.hold(queued && told, || {
                        format!("{} is admitted without its work or its audit", revision.id)
                    });
                }
                Write::Settle(token, transition) => self.settled(data, *token, transition),
                _ => {}
            }
        }
    }

    /// The pointer moves only by compare-and-set, under a claim, forwards, to what was seen ready.
    fn pointer(&self, change: &Change, data: &Data, agent: AgentId, to: Option<RevisionId>) {
        let fenced = change
            .expect
            .iter()
            .any(|expect| matches!(expect, Expect::ClaimHeld(_)));
        let compared = change.expect.iter().find_map(|expect| match expect {
            Expect::AgentRuntime { agent: of, active, .. } if *of == agent => Some(*active),
            _ => None,
        });
        self.hold(fenced && compared.is_some(), || {
            format!("the pointer of {agent} moves without compare-and-set under a claim")
        });
        let number = |id: RevisionId| data.revisions.get(&id).map(|row| row.revision.revision);
        let from = data.agents.get(&agent).and_then(|row| row.agent.active_revision_id);
        // Compared with what is not there any more, it comes too late and does nothing (seed 8928).
        if compared == Some(from)
            && let (Some(from), Some(to)) = (from.and_then(number), to.and_then(number))
        {
            self.hold(from < to, || format!("version {to} of {agent} replaces version {from}"));
        }
        if let Some(to) = to {
            let ready = self.runtime(|runtime| runtime.ready.contains(&to));
            self.hold(ready, || format!("{to} is selected and was never ready"));
        }
    }

    fn settled(&self, data: &Data, token: ClaimToken, transition: &Transition) {
        let holds = |work: &&Work| matches!(work.state, State::Claimed { token: held, .. } if held == token);
        let Some(work) = data.work.values().find(holds) else {
            return;
        };
        self.step(|| format!("settle {} {}", work.target.key(), transition.code()));
        if self.jumps {
            return;
        }
        match (transition, work.target) {
            (Transition::Fail { failure, .. }, Target::Revision { agent, revision, .. }) if is_refusal(*failure) => {
                let pointer = data.agents.get(&agent).and_then(|row| row.agent.active_revision_id);
                let (runs, routed) = self.runtime(|runtime| {
                    let routed = runtime.routed.get(&agent) == Some(&revision);
                    (runtime.runs(agent, revision), routed)
                });
                let due = pointer != Some(revision) && (pointer.is_none() || self.exclusive || routed);
                self.hold(!(due && runs), || {
                    format!("{revision} is recorded as refused ({failure}) and still runs")
                });
            }
            (
                Transition::Complete {
                    code: Success::AgentStopped | Success::AgentAlreadyStopped,
                    ..
                },
                Target::AgentStopped { agent, .. },
            ) => {
                let runs = self.runtime(|runtime| runtime.runs_any(agent));
                self.hold(!runs, || format!("{agent} is recorded as stopped and still runs"));
            }
            (
                Transition::Complete {
                    code: Success::RevisionActivated | Success::RevisionAlreadyActive,
                    ..
                },
                Target::Revision { agent, revision, .. } | Target::Maintenance { agent, revision, .. },
            ) => {
                let serves = self
                    .runtime(|runtime| runtime.runs(agent, revision) && runtime.routed.get(&agent) == Some(&revision));
                self.hold(serves, || {
                    format!("{revision} is recorded as active and does not serve")
                });
            }
            (
                Transition::Complete {
                    code: Success::AgentDeleted,
                    ..
                },
                Target::AgentDeleted { agent, .. },
            ) => {
                let left = self.runtime(|runtime| runtime.runs_any(agent) || runtime.credentials.contains(&agent));
                self.hold(!left, || {
                    format!("{agent} is recorded as deleted and something is left")
                });
            }
            _ => {}
        }
    }

    /// Something was written: no terminal result is ever rewritten.
    pub fn after(&self, data: &Data) {
        let mut inner = self.inner();
        let mut broken = Vec::new();
        for (key, work) in data.work.iter() {
            let before = inner.over.get(key);
            if before == Some(&work.state) || (before.is_none() && !work.is_over()) {
                continue;
            }
            if let Some(before) = before {
                let repeated = work.state == State::Queued
                    && matches!(before, State::Failed(..))
                    && matches!(
                        work.target,
                        Target::AgentDeleted { .. } | Target::NamespaceDeleted { .. } | Target::NamespaceReady { .. }
                    );
                if !repeated {
                    broken.push(format!("the result of {key} was rewritten"));
                }
                inner.over.remove(key);
            }
            if work.is_over() {
                let state = work.state.clone();
                inner.over.insert(key.clone(), state);
            }
        }
        drop(inner);
        for what in broken {
            self.broken(what);
        }
    }

    /// Whether an Agent should run and what its pointer names.
    pub fn pointer_of(data: &Data, agent: AgentId) -> Option<(DesiredRuntimeState, Option<RevisionId>)> {
        let row = data.agents.get(&agent)?;
        Some((row.agent.desired_runtime_state, row.agent.active_revision_id))
    }
}

/// While it lives, an effect is under way.
#[derive(Debug)]
pub struct InFlight {
    rules: Rules,
    key: (AgentId, u64),
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let now = self.rules.store.now();
        let ended = self.rules.inner().effects.remove(&self.key);
        let overlapped = ended
            .and_then(|effect| effect.joined)
            .is_some_and(|joined| joined < now);
        if overlapped && !self.rules.jumps {
            self.rules
                .broken(format!("{} runs twice: two passes cause effects at once", self.key.0));
        }
    }
}

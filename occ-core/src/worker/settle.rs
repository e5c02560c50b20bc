//! How a pass's outcome becomes a transition (spec/engine 5.3). Pure: randomness comes in.

use std::time::Duration;

use super::{
    Pass,
    pass::{Outcome, WriteBox},
    revision::continues,
};
use crate::{
    id::NamespaceId,
    reason::{Failure, Pending, Preparation, RuntimeCode, RuntimeFailure, Success},
    resource::{DesiredRuntimeState, NamespaceStatus},
    store::{Expect, Write},
    time::Timestamp,
    work::{Claim, FailureData, NewWork, Policy, Target, Transition, refused_stop_delay},
};

/// The transition that an outcome means. `random` is in `[0, 1)`.
pub fn settle(outcome: &Outcome, pass: &Pass, policy: &Policy, random: f64) -> Transition {
    let claim = &pass.claim;
    match outcome {
        Outcome::Done { success, warnings, .. } => Transition::Complete {
            code: *success,
            warnings: warnings.clone(),
        },
        Outcome::Pending { reason, evidence } => {
            if pass.late && has_deadline(&claim.target) {
                deadline(policy, evidence.clone(), None)
            } else {
                policy.wait(claim, *reason)
            }
        }
        Outcome::Away(dependency) if pass.late && has_deadline(&claim.target) => Transition::Fail {
            failure: dependency.failure(),
            data: FailureData::default(),
        },
        Outcome::Away(dependency) => policy.wait(claim, dependency.pending()),
        // A version that waits for another to drain has its deadline; a stop has none.
        Outcome::Draining(Pending::PredecessorStopYielded) if pass.late => deadline(policy, None, None),
        Outcome::Draining(reason) => policy.wait(claim, *reason),
        Outcome::Refused(refusal) => Transition::Defer {
            reason: Pending::RefusedCandidateStopPending,
            delay: Duration::ZERO,
            refusal: Some(*refusal),
            failed_stops: 0,
            repeat_evidence: true,
        },
        Outcome::RefusedStop {
            refusal,
            failed_stops,
            took,
        } => Transition::Defer {
            reason: Pending::RefusedCandidateStopPending,
            delay: refused_stop_delay(claim.age(), *failed_stops, *took),
            refusal: Some(*refusal),
            failed_stops: *failed_stops,
            repeat_evidence: true,
        },
        // Nobody goes on with what is past its deadline. A version that is selected is not given up for that.
        Outcome::Retry {
            reason: Pending::DependencyUnavailable,
            ..
        } if pass.late && has_deadline(&claim.target) && !selected(pass) => deadline(policy, None, None),
        Outcome::Retry { reason, exhausted } => policy.retry(claim, *reason, *exhausted, random),
        Outcome::Held { failure, preparation } => match failure.code.held() {
            Some(code) => Transition::Fail {
                failure: code,
                data: FailureData {
                    timeout_ms: None,
                    runtime_failure: (failure.code == RuntimeCode::ModelProbeFailed).then(|| failure.clone()),
                    preparation: preparation.clone(),
                },
            },
            None if pass.late => deadline(policy, Some(failure.clone()), preparation.clone()),
            None => policy.wait(claim, Pending::RevisionIncomplete),
        },
        Outcome::Failed {
            failure: Failure::ConvergenceDeadlineExceeded,
            ..
        } => deadline(policy, None, None),
        Outcome::Failed { failure, .. } => Transition::Fail {
            failure: *failure,
            data: FailureData::default(),
        },
    }
}

/// What belongs to a transition, whatever outcome led to it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Consequences {
    /// What must still hold.
    pub expect: Vec<Expect>,
    /// What is written.
    pub writes: Vec<WriteBox>,
}

impl From<Option<WriteBox>> for Consequences {
    fn from(write: Option<WriteBox>) -> Self {
        Self {
            expect: Vec::new(),
            writes: write.into_iter().collect(),
        }
    }
}

/// What must be written with a transition, whatever outcome led to it: a Namespace whose provision is over is failed in the same
/// change, and a selected version is looked after again.
pub fn consequences(transition: &Transition, pass: &Pass) -> Consequences {
    match (transition, pass.claim.target) {
        (
            Transition::Complete {
                code: Success::RevisionActivated | Success::RevisionAlreadyActive,
                ..
            },
            _,
        ) => next_look(pass, pass.compute.maintenance).into(),
        // Nobody finished it, and nobody else would: it may not have come to run, whether its Compute wants looks or not.
        (Transition::Fail { failure, .. }, Target::Revision { .. } | Target::Maintenance { .. })
            if selected(pass) && continues(*failure) =>
        {
            next_look(pass, pass.compute.maintenance.or(Some(UNFINISHED))).into()
        }
        (Transition::Fail { .. }, Target::Maintenance { .. }) if selected(pass) => {
            next_look(pass, pass.compute.maintenance).into()
        }
        // The move of the pointer was not answered, and may still arrive: then this is not how the work ends.
        (Transition::Fail { .. }, Target::Revision { .. }) if may_still_move(pass) => Consequences {
            expect: runtime(pass).into_iter().collect(),
            writes: Vec::new(),
        },
        // One that is being deleted stays so.
        (Transition::Fail { .. }, Target::NamespaceReady { namespace: id }) if provided(pass) => {
            let (expect, write) = namespace_fails(id);
            Consequences {
                expect: vec![expect],
                writes: vec![write],
            }
        }
        _ => Consequences::default(),
    }
}

/// A Namespace whose provision is over is failed; one that is being deleted stays so.
pub(super) fn namespace_fails(id: NamespaceId) -> (Expect, WriteBox) {
    let write = Write::NamespaceStatus {
        id,
        status: NamespaceStatus::Failed,
        deletion_actor: None,
    };
    let expect = Expect::NamespaceStatus(id, &[NamespaceStatus::Provisioning]);
    (expect, WriteBox(write))
}

/// Whether the Namespace is still being provided.
fn provided(pass: &Pass) -> bool {
    let row = pass.read.namespace.as_ref();
    row.is_some_and(|row| row.namespace.status == NamespaceStatus::Provisioning)
}

/// Whether the pass is over the version that its Agent's pointer names and that should run.
fn selected(pass: &Pass) -> bool {
    let target = pass.claim.target.revision();
    pass.read.agent.as_ref().is_some_and(|row| {
        row.agent.active_revision_id.is_some()
            && row.agent.active_revision_id == target
            && row.agent.desired_runtime_state == DesiredRuntimeState::Running
    })
}

/// Whether the pointer may yet come to name the version: its move was sent, and nobody said what became of it.
fn may_still_move(pass: &Pass) -> bool {
    matches!(pass.progress.pointer, Some(Err(_))) && !selected(pass)
}

/// The Agent's runtime state as it was read.
fn runtime(pass: &Pass) -> Option<Expect> {
    let agent = &pass.read.agent.as_ref()?.agent;
    Some(Expect::AgentRuntime {
        agent: agent.id,
        active: agent.active_revision_id,
        desired: agent.desired_runtime_state,
    })
}

/// How soon a selected version that nobody finished is looked at, where its Compute wants no looks.
const UNFINISHED: Duration = Duration::from_mins(5);

fn next_look(pass: &Pass, interval: Option<Duration>) -> Option<WriteBox> {
    later_look(&pass.claim, pass.read.now, interval)
}

/// The next look at the version of a claim, where one is wanted. The bucket is the moment at which it is due, aligned to the
/// interval, so that two series become one; it grows strictly, also when the database's clock was set back.
pub(super) fn later_look(claim: &Claim, now: Timestamp, interval: Option<Duration>) -> Option<WriteBox> {
    let interval = interval?;
    let (agent, revision) = (claim.target.agent()?, claim.target.revision()?);
    let step = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX).max(1);
    let now = u64::try_from(now.as_millis()).unwrap_or(0);
    let current = match claim.target {
        Target::Maintenance { bucket, .. } => bucket,
        _ => 0,
    };
    let bucket = (now.max(current) / step + 1).saturating_mul(step);
    let delay = Duration::from_millis(bucket.saturating_sub(now)).min(interval);
    let target = Target::Maintenance {
        namespace: claim.target.namespace(),
        agent,
        revision,
        bucket,
    };
    let actor = claim.actor.clone();
    Some(WriteBox(Write::EnqueueLater(NewWork::new(target, actor), delay)))
}

/// A stop and a removal of an Agent have no deadline: what still runs must not be forgotten. A withdrawal has its own.
const fn has_deadline(target: &Target) -> bool {
    !matches!(
        target,
        Target::AgentStopped { .. } | Target::AgentDeleted { .. } | Target::CredentialsWithdrawn { .. }
    )
}

fn deadline(policy: &Policy, evidence: Option<RuntimeFailure>, preparation: Option<Preparation>) -> Transition {
    let timeout = u64::try_from(policy.convergence_timeout.as_millis()).unwrap_or(u64::MAX);
    Transition::Fail {
        failure: Failure::ConvergenceDeadlineExceeded,
        data: FailureData {
            timeout_ms: Some(timeout),
            runtime_failure: evidence.map(RuntimeFailure::without_cause),
            preparation,
        },
    }
}

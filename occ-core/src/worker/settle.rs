//! How a pass's outcome becomes a transition (spec/engine 5.3). Pure: randomness comes in.

use super::{
    Pass,
    pass::{Outcome, WriteBox},
};
use crate::{
    reason::{Failure, Pending, RuntimeCode, RuntimeFailure},
    resource::NamespaceStatus,
    store::Write,
    work::{FailureData, Policy, Target, Transition, refused_stop_delay},
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
                deadline(policy, evidence.clone())
            } else {
                policy.wait(claim, *reason)
            }
        }
        Outcome::Away(dependency) if pass.late && has_deadline(&claim.target) => Transition::Fail {
            failure: dependency.failure(),
            data: FailureData::default(),
        },
        Outcome::Away(dependency) => policy.wait(claim, dependency.pending()),
        Outcome::Draining(reason) => policy.wait(claim, *reason),
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
            None if pass.late => deadline(policy, Some(failure.clone())),
            None => policy.wait(claim, Pending::RevisionIncomplete),
        },
        Outcome::Failed {
            failure: Failure::ConvergenceDeadlineExceeded,
            ..
        } => deadline(policy, None),
        Outcome::Failed { failure, .. } => Transition::Fail {
            failure: *failure,
            data: FailureData::default(),
        },
    }
}

/// What must be written with a transition, whatever outcome led to it: a Namespace whose provision is over is failed in the same change.
pub fn consequences(transition: &Transition, pass: &Pass) -> Vec<WriteBox> {
    match (transition, pass.claim.target) {
        (Transition::Fail { .. }, Target::NamespaceReady { namespace: id }) => {
            let status = NamespaceStatus::Failed;
            vec![WriteBox(Write::NamespaceStatus {
                id,
                status,
                deletion_actor: None,
            })]
        }
        _ => Vec::new(),
    }
}

/// A stop and a removal of an Agent have no deadline: what still runs must not be forgotten.
const fn has_deadline(target: &Target) -> bool {
    !matches!(target, Target::AgentStopped { .. } | Target::AgentDeleted { .. })
}

fn deadline(policy: &Policy, evidence: Option<RuntimeFailure>) -> Transition {
    let timeout = u64::try_from(policy.convergence_timeout.as_millis()).unwrap_or(u64::MAX);
    Transition::Fail {
        failure: Failure::ConvergenceDeadlineExceeded,
        data: FailureData {
            timeout_ms: Some(timeout),
            runtime_failure: evidence.map(RuntimeFailure::without_cause),
            preparation: None,
        },
    }
}

//! The table from work to status.

use std::borrow::Cow;

use super::{Attempt, Cleanup, CleanupStatus, Deployment, DeploymentError, DeploymentStatus, Progress};
use crate::{
    reason::{Failure, Pending, RuntimeCode, RuntimeFailure, Success},
    store::{DeploymentRow, WorkState},
    work::{FailureData, LastAttempt},
};

/// The status of a deployment; `None` when its work is missing, which is a fault of the store and never a status.
pub fn derive(row: DeploymentRow) -> Option<Deployment> {
    let mut deployment = Deployment {
        deployment_id: row.revision,
        namespace_id: row.namespace,
        agent_id: row.agent,
        status: DeploymentStatus::Queued,
        error: None,
        warnings: Vec::new(),
        progress: None,
        cleanup: None,
    };
    match row.work? {
        WorkState::Queued {
            available_at,
            last_attempt,
        } => {
            let last_attempt = last_attempt.map(attempt);
            deployment.progress = Some(Progress {
                last_attempt,
                next_attempt_at: Some(available_at),
            });
        }
        WorkState::Running { last_attempt } => {
            deployment.status = DeploymentStatus::Running;
            deployment.progress = Some(Progress {
                last_attempt: last_attempt.map(attempt),
                next_attempt_at: None,
            });
        }
        WorkState::Succeeded { code, warnings, .. } => match without_activation(code) {
            None => {
                deployment.status = DeploymentStatus::Succeeded;
                deployment.warnings = warnings;
            }
            Some(failure) => fail(&mut deployment, failure, FailureData::default()),
        },
        WorkState::Failed { failure, data, .. } => fail(&mut deployment, failure, data),
    }
    if deployment.status.is_terminal() {
        deployment.cleanup = row.left_over.map(|left_over| Cleanup {
            status: CleanupStatus::Pending,
            next_attempt_at: left_over.next_attempt_at,
        });
    }
    Some(deployment)
}

/// What completed work without activation reads as.
const fn without_activation(code: Success) -> Option<Failure> {
    match code {
        Success::RevisionActivated | Success::RevisionAlreadyActive => None,
        Success::RevisionSuperseded => Some(Failure::RevisionSuperseded),
        Success::RevisionStopped => Some(Failure::RevisionStopped),
        _ => Some(Failure::ReconciliationFailed),
    }
}

fn fail(deployment: &mut Deployment, failure: Failure, data: FailureData) {
    deployment.status = DeploymentStatus::Failed;
    let data = allowed(failure, data);
    let data = (data != FailureData::default()).then_some(data);
    deployment.error = Some(DeploymentError {
        code: failure,
        message: failure.message().into(),
        data,
    });
}

/// The allowlist of spec/engine 8.2: which facts which failure may carry.
fn allowed(failure: Failure, data: FailureData) -> FailureData {
    let FailureData {
        timeout_ms,
        runtime_failure,
        preparation,
    } = data;
    let (timeout_ms, runtime_failure) = match failure {
        Failure::ConvergenceDeadlineExceeded => (timeout_ms, runtime_failure.map(RuntimeFailure::without_cause)),
        Failure::RuntimeModelProbeFailed => {
            let evidence = runtime_failure.filter(|f| f.code == RuntimeCode::ModelProbeFailed && f.validate().is_ok());
            (None, evidence)
        }
        _ => (None, None),
    };
    FailureData {
        timeout_ms,
        runtime_failure,
        preparation,
    }
}

fn attempt(last: LastAttempt) -> Attempt {
    let code = shown(last.code);
    let message = match (code, last.refusal) {
        (Pending::RefusedCandidateStopPending, Some(refusal)) => {
            format!("The version was refused ({refusal}); its workload is being stopped.").into()
        }
        (Pending::LeaseExpired, Some(refusal)) => format!(
            "The previous worker's claim expired while a refused version ({refusal}) was being stopped; the work is taken up again."
        )
        .into(),
        _ => Cow::Borrowed(code.message()),
    };
    Attempt {
        code,
        message,
        at: last.at,
    }
}

/// The allowlist of spec/engine 8.1: what is not on it reads as generic progress.
const fn shown(code: Pending) -> Pending {
    match code {
        Pending::RevisionFinalizationIncomplete
        | Pending::ComputeBindingIncomplete
        | Pending::ProvisioningEffectPending
        | Pending::NamespaceIncomplete
        | Pending::ControllerShutdown => Pending::ReconciliationPending,
        code => code,
    }
}

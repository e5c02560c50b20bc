//! The table from saved work to deployment status (seed: Deployment status; spec/engine 8, 9).
#![cfg(feature = "engine")]

use occ_core::{
    id::{AgentId, NamespaceId, RevisionId},
    reason::{Cause, Failure, Pending, RuntimeCode, RuntimeFailure, Success, Token},
    status::{CleanupStatus, Deployment, DeploymentStatus, derive},
    store::{DeploymentRow, LeftOver, WorkState},
    time::Timestamp,
    work::{FailureData, LastAttempt, Warning},
};

fn of(work: WorkState, left: bool) -> Deployment {
    let left_over = left.then_some(LeftOver { next_attempt_at: None });
    with(work, left_over)
}

fn with(work: WorkState, left_over: Option<LeftOver>) -> Deployment {
    let row = DeploymentRow {
        revision: RevisionId::random(),
        agent: AgentId::random(),
        namespace: NamespaceId::random(),
        work: Some(work),
        left_over,
    };
    derive(row).expect("the work is there")
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn attempt(code: Pending, refusal: Option<Failure>) -> LastAttempt {
    LastAttempt {
        code,
        at: at(5),
        refusal,
        failed_stops: 0,
    }
}

fn failed(failure: Failure, data: FailureData) -> Deployment {
    let actor = "prn_ada".parse().unwrap();
    of(
        WorkState::Failed {
            failure,
            data,
            actor,
            attempts: 1,
            at: at(9),
        },
        false,
    )
}

fn evidence(code: RuntimeCode, cause: Option<Cause>) -> RuntimeFailure {
    let (component, check) = (Token::known("gateway"), Token::known("model-probe"));
    RuntimeFailure {
        component,
        check,
        checked_at: at(3),
        code,
        cause,
    }
}

#[test]
fn queued_work_says_when_and_running_work_does_not() {
    let queued = of(
        WorkState::Queued {
            available_at: at(7),
            last_attempt: None,
        },
        false,
    );
    assert_eq!(queued.status, DeploymentStatus::Queued);
    assert_eq!(queued.progress.unwrap().next_attempt_at, Some(at(7)));
    let running = of(
        WorkState::Running {
            last_attempt: Some(attempt(Pending::RevisionIncomplete, None)),
        },
        false,
    );
    assert_eq!(running.status, DeploymentStatus::Running);
    let progress = running.progress.unwrap();
    assert_eq!(progress.next_attempt_at, None);
    let last = progress.last_attempt.unwrap();
    assert_eq!((last.code, last.at), (Pending::RevisionIncomplete, at(5)));
    assert_eq!(last.message, Pending::RevisionIncomplete.message());
}

#[test]
fn success_is_activation_and_nothing_else() {
    let warnings = vec![Warning {
        code: "PLUGIN_AUTH_REQUIRED".to_owned(),
        plugin_id: "calendar@x".to_owned(),
    }];
    for code in Success::ALL {
        let done = of(
            WorkState::Succeeded {
                code: *code,
                warnings: warnings.clone(),
                at: at(9),
            },
            false,
        );
        assert_eq!(done.progress, None);
        match code {
            Success::RevisionActivated | Success::RevisionAlreadyActive => {
                assert_eq!(
                    (done.status, done.error, done.warnings),
                    (DeploymentStatus::Succeeded, None, warnings.clone())
                );
            }
            _ => {
                assert_eq!(
                    (done.status, done.warnings.len()),
                    (DeploymentStatus::Failed, 0),
                    "{code}"
                );
                assert!(done.error.is_some());
            }
        }
    }
}

#[test]
fn internal_reasons_read_as_progress_and_the_rest_as_themselves() {
    for code in Pending::ALL {
        let shown = of(
            WorkState::Running {
                last_attempt: Some(attempt(*code, None)),
            },
            false,
        );
        let last = shown.progress.unwrap().last_attempt.unwrap();
        let hidden = matches!(
            code,
            Pending::RevisionFinalizationIncomplete
                | Pending::ComputeBindingIncomplete
                | Pending::ProvisioningEffectPending
                | Pending::NamespaceIncomplete
                | Pending::ControllerShutdown
        );
        assert_eq!(last.code, if hidden { Pending::ReconciliationPending } else { *code });
    }
}

#[test]
fn a_refused_candidate_names_its_refusal() {
    let last = Some(attempt(
        Pending::RefusedCandidateStopPending,
        Some(Failure::AuthorizationDenied),
    ));
    let waiting = of(
        WorkState::Queued {
            available_at: at(7),
            last_attempt: last,
        },
        false,
    );
    let message = waiting.progress.unwrap().last_attempt.unwrap().message;
    assert!(message.contains("AUTHORIZATION_DENIED"), "{message}");
    let last = Some(attempt(Pending::LeaseExpired, Some(Failure::SecretDriverMismatch)));
    let waiting = of(
        WorkState::Queued {
            available_at: at(7),
            last_attempt: last,
        },
        false,
    );
    let message = waiting.progress.unwrap().last_attempt.unwrap().message;
    assert!(message.contains("SECRET_DRIVER_MISMATCH"), "{message}");
    for failure in Failure::ALL {
        let last = Some(attempt(Pending::LeaseExpired, Some(*failure)));
        let waiting = of(WorkState::Running { last_attempt: last }, false);
        assert!(waiting.progress.unwrap().last_attempt.unwrap().message.chars().count() <= 256);
    }
}

#[test]
fn only_allowlisted_facts_are_shown() {
    let cause = Some(Cause::InvalidJson);
    let data = |code, cause| FailureData {
        timeout_ms: Some(900_000),
        runtime_failure: Some(evidence(code, cause)),
        preparation: None,
    };
    for failure in Failure::ALL {
        let shown = failed(*failure, data(RuntimeCode::ModelProbeFailed, cause.clone()))
            .error
            .unwrap();
        assert_eq!((shown.code, shown.message.as_ref()), (*failure, failure.message()));
        match failure {
            Failure::ConvergenceDeadlineExceeded => {
                let data = shown.data.unwrap();
                assert_eq!(data.timeout_ms, Some(900_000));
                assert_eq!(
                    data.runtime_failure.unwrap().cause,
                    None,
                    "the deadline's evidence has no cause"
                );
            }
            Failure::RuntimeModelProbeFailed => {
                let data = shown.data.unwrap();
                assert_eq!(
                    (data.timeout_ms, data.runtime_failure.unwrap().cause),
                    (None, cause.clone())
                );
            }
            _ => assert_eq!(shown.data, None, "{failure}"),
        }
    }
    // Evidence that contradicts the code is not shown.
    let shown = failed(
        Failure::RuntimeModelProbeFailed,
        data(RuntimeCode::AuthenticationFailed, None),
    );
    assert_eq!(shown.error.unwrap().data, None);
}

#[test]
fn cleanup_is_of_finished_deployments() {
    let ended = WorkState::Failed {
        failure: Failure::RuntimeStartupFailed,
        data: FailureData::default(),
        actor: "prn_operator".parse().unwrap(),
        attempts: 1,
        at: at(1),
    };
    let left_over = |next_attempt_at| Some(LeftOver { next_attempt_at });
    for next in [None, Some(at(9))] {
        let shown = with(ended.clone(), left_over(next));
        let cleanup = shown.cleanup.unwrap();
        assert_eq!(
            (cleanup.status, cleanup.next_attempt_at),
            (CleanupStatus::Pending, next)
        );
        // It never changes how the deployment ended (seed).
        assert_eq!(shown.error.unwrap().code, Failure::RuntimeStartupFailed);
    }
    assert_eq!(with(ended, None).cleanup, None);
    let running = WorkState::Running { last_attempt: None };
    assert_eq!(with(running, left_over(Some(at(9)))).cleanup, None);
}

#[test]
fn missing_work_is_a_fault_and_no_status() {
    let row = DeploymentRow {
        revision: RevisionId::random(),
        agent: AgentId::random(),
        namespace: NamespaceId::random(),
        work: None,
        left_over: None,
    };
    assert_eq!(derive(row), None);
}

#[test]
fn nullable_fields_are_null_on_the_wire() {
    let shown = serde_json::to_value(of(
        WorkState::Queued {
            available_at: at(7),
            last_attempt: None,
        },
        false,
    ))
    .unwrap();
    for key in ["error", "cleanup"] {
        assert!(
            shown.as_object().unwrap().contains_key(key) && shown[key].is_null(),
            "{key}"
        );
    }
    assert!(shown["progress"]["lastAttempt"].is_null());
    assert_eq!(shown["status"], "queued");
}

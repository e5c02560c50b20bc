//! The worker's pure core: which steps a pass takes, in which order, and how it ends.
#![cfg(feature = "engine")]

mod pass_fixture;

use std::time::Duration;

use occ_core::{
    driver::{
        ActivationOrder, EffectError, Fault, FaultKind, PluginWarning, PluginWarningCode, Readiness,
        RevisionObservation, Stop,
    },
    reason::{
        Dependency, Failure, Pending, Preparation, PreparationReason, PreparationStage, RuntimeCode, Success, Token,
    },
    resource::{DesiredRuntimeState, ExecutionMode},
    store::Write,
    time::Timestamp,
    work::{LastAttempt, Policy, Transition},
    worker::{Authority, Outcome, settle},
};
use pass_fixture::{Answers, Scene, failure};

fn fault() -> EffectError {
    Fault::new("do something", FaultKind::Unavailable).into()
}

#[test]
fn a_first_deployment_prepares_publishes_activates_and_completes() {
    let run = Scene::first().run(&Answers::default());
    assert_eq!(
        run.steps,
        [
            "Authorize",
            "Prepare",
            "Reread",
            "MovePointer",
            "Reread",
            "Activate",
            "Finish"
        ]
    );
    assert_eq!(run.success(), Some(Success::RevisionActivated));
}

#[test]
fn a_replacement_retires_its_predecessor_after_the_activation() {
    let run = Scene::replacement().run(&Answers::default());
    assert_eq!(
        run.steps,
        [
            "Authorize",
            "Prepare",
            "Reread",
            "MovePointer",
            "Reread",
            "Activate",
            "Retire 1",
            "Finish"
        ]
    );
    assert!(run.writes().any(|write| matches!(write, Write::RevisionRetired(_))));
}

#[test]
fn an_exclusive_replacement_stops_its_predecessor_before_it_prepares() {
    let mut scene = Scene::replacement();
    scene.exclusive = true;
    let run = scene.run(&Answers::default());
    assert_eq!(run.steps[..3], ["Authorize", "Stop 1", "Prepare"]);
}

#[test]
fn a_draining_predecessor_yields_without_spending_an_attempt() {
    let mut scene = Scene::replacement();
    scene.exclusive = true;
    let run = scene.run(&Answers {
        stop: Ok(Stop::Draining),
        ..Answers::default()
    });
    assert_eq!(run.outcome, Outcome::Draining(Pending::PredecessorStopYielded));
    assert!(matches!(
        run.transition(),
        Transition::Defer {
            reason: Pending::PredecessorStopYielded,
            ..
        }
    ));
}

#[test]
fn activation_before_the_commit_comes_before_the_pointer_and_is_not_repeated() {
    let mut scene = Scene::first();
    scene.order = ActivationOrder::BeforeCommit;
    let run = scene.run(&Answers::default());
    assert_eq!(
        run.steps,
        [
            "Authorize",
            "Prepare",
            "Reread",
            "Activate",
            "MovePointer",
            "Reread",
            "Finish"
        ]
    );
}

/// An earlier candidate of the same name may still be routed to.
#[test]
fn the_first_dedicated_version_is_off_the_route_before_the_pointer_names_it() {
    let dedicated = |mut scene: Scene| {
        let version = scene.read.head.as_mut().expect("a version");
        version.mode = Some(ExecutionMode::Dedicated);
        scene
    };
    let deactivates = |scene: &Scene| {
        let run = scene.run(&Answers::default());
        run.steps.contains(&"Deactivate".to_owned())
    };
    let first = dedicated(Scene::first());
    let run = first.run(&Answers::default());
    assert_eq!(run.steps[1..5], ["Prepare", "Reread", "Deactivate", "MovePointer"]);
    let run = first.run(&Answers {
        deactivated: Err(fault()),
        ..Answers::default()
    });
    assert_eq!(run.steps[2..], ["Reread", "Deactivate", "Finish"]);
    assert!(matches!(run.transition(), Transition::Retry { .. }));
    assert!(!deactivates(&Scene::first()), "embedded");
    assert!(!deactivates(&dedicated(Scene::replacement())), "a replacement");
}

#[test]
fn a_pointer_that_was_moved_away_at_once_is_looked_at_once_and_leads_to_a_retry() {
    let run = Scene::first().run(&Answers {
        overtaken: true,
        ..Answers::default()
    });
    assert_eq!(run.steps[3..], ["MovePointer", "Reread", "Finish"]);
    assert!(matches!(
        run.transition(),
        Transition::Retry {
            reason: Pending::ActiveRevisionChanged,
            ..
        }
    ));
}

#[test]
fn a_published_version_is_prepared_again_and_finished_after_a_crash() {
    let mut scene = Scene::replacement();
    scene.pointer_names_target();
    let run = scene.run(&Answers::default());
    assert_eq!(run.steps, ["Authorize", "Prepare", "Activate", "Retire 1", "Finish"]);
    assert_eq!(run.success(), Some(Success::RevisionAlreadyActive));
}

#[test]
fn older_work_never_replaces_a_newer_active_version() {
    let mut scene = Scene::replacement();
    scene.target_is_the_older();
    let run = scene.run(&Answers::default());
    assert_eq!(run.steps, ["Authorize", "Finish"]);
    assert_eq!(run.success(), Some(Success::RevisionSuperseded));
}

#[test]
fn a_stopped_agents_deployment_stops_its_candidate_instead() {
    let mut scene = Scene::first();
    scene.desired(DesiredRuntimeState::Stopped);
    let run = scene.run(&Answers::default());
    assert_eq!(run.steps, ["Authorize", "Stop 1", "Finish"]);
    assert_eq!(run.success(), Some(Success::RevisionStopped));
}

#[test]
fn a_stop_that_comes_during_the_preparation_keeps_the_pointer() {
    let run = Scene::first().run(&Answers {
        stop_at_reread: Some(1),
        ..Answers::default()
    });
    assert_eq!(run.steps, ["Authorize", "Prepare", "Reread", "Stop 1", "Finish"]);
    assert_eq!(run.success(), Some(Success::RevisionStopped));
}

#[test]
fn a_stop_that_comes_after_the_pointer_moved_still_stops_the_candidate() {
    let run = Scene::first().run(&Answers {
        stop_at_reread: Some(2),
        ..Answers::default()
    });
    assert_eq!(
        run.steps,
        [
            "Authorize",
            "Prepare",
            "Reread",
            "MovePointer",
            "Reread",
            "Stop 1",
            "Finish"
        ]
    );
}

#[test]
fn a_pointer_that_somebody_else_moved_spends_an_attempt() {
    let run = Scene::first().run(&Answers {
        pointer: Ok(false),
        ..Answers::default()
    });
    assert!(matches!(
        run.transition(),
        Transition::Retry {
            reason: Pending::ActiveRevisionChanged,
            ..
        }
    ));
}

#[test]
fn an_unready_version_waits_without_spending_an_attempt_and_fails_at_its_deadline() {
    let pending = |reason| move |target: &_| Ok(RevisionObservation::pending(target, reason));
    let scene = Scene::first();
    let run = scene.run(&Answers::default().prepared(pending(Pending::RevisionUnschedulable)));
    assert!(matches!(
        run.transition(),
        Transition::Defer {
            reason: Pending::RevisionUnschedulable,
            ..
        }
    ));

    let run = scene
        .late()
        .run(&Answers::default().prepared(pending(Pending::RevisionUnschedulable)));
    let Transition::Fail { failure, data } = run.transition() else {
        panic!("{:?}", run.outcome)
    };
    assert_eq!(
        (failure, data.timeout_ms),
        (Failure::ConvergenceDeadlineExceeded, Some(900_000))
    );
}

#[test]
fn the_deadlines_error_carries_the_runtimes_evidence_without_its_cause() {
    let run = Scene::first().late().run(&Answers::default().prepared(|target| {
        let evidence = Some(Box::new(failure(RuntimeCode::NotReady)));
        Ok(RevisionObservation::of(
            target,
            Readiness::Pending {
                reason: Pending::RevisionIncomplete,
                evidence,
            },
        ))
    }));
    let Transition::Fail { data, .. } = run.transition() else {
        panic!("{:?}", run.outcome)
    };
    assert_eq!(
        data.runtime_failure.map(|f| (f.code, f.cause)),
        Some((RuntimeCode::NotReady, None))
    );
}

/// What kept the version from running is said as long as it does not run (seed: terminal preparation errors).
#[test]
fn the_deadlines_error_keeps_what_is_known_of_the_preparation() {
    let known = Preparation {
        stage: PreparationStage::Readiness,
        reason: PreparationReason::ComponentExited,
        component: Some(Token::known("gateway")),
        exit_status: Some(1),
        signal: None,
        at: Timestamp::from_millis(0),
    };
    let told = known.clone();
    let run = Scene::first().late().run(&Answers::default().prepared(move |_| {
        let preparation = Some(Box::new(told.clone()));
        Err(EffectError::Held(Box::new(failure(RuntimeCode::NotReady)), preparation))
    }));
    let Transition::Fail {
        failure: Failure::ConvergenceDeadlineExceeded,
        data,
    } = run.transition()
    else {
        panic!("{:?}", run.outcome)
    };
    assert_eq!(data.preparation, Some(known));
    assert!(data.runtime_failure.is_some() && data.timeout_ms.is_some());
}

#[test]
fn a_missing_dependency_waits_under_its_own_code_and_fails_with_it_at_the_deadline() {
    let away = |_: &_| Err(EffectError::Transient(Dependency::AgentGateway));
    let run = Scene::first().run(&Answers::default().prepared(away));
    assert!(matches!(
        run.transition(),
        Transition::Defer {
            reason: Pending::AgentGatewayUnavailable,
            ..
        }
    ));
    let run = Scene::first().late().run(&Answers::default().prepared(away));
    assert!(matches!(
        run.transition(),
        Transition::Fail {
            failure: Failure::AgentGatewayUnavailable,
            ..
        }
    ));
}

#[test]
fn every_held_code_ends_the_deployment_at_once_and_keeps_the_workload() {
    for (code, expected) in [
        (RuntimeCode::AuthenticationFailed, Failure::RuntimeAuthenticationFailed),
        (RuntimeCode::LoginFailed, Failure::RuntimeLoginFailed),
        (RuntimeCode::ModelProbeFailed, Failure::RuntimeModelProbeFailed),
        (RuntimeCode::ModelProbeTimeout, Failure::RuntimeModelProbeTimeout),
        (RuntimeCode::ModelProbeCpuStarved, Failure::RuntimeCpuStarved),
        (RuntimeCode::Unavailable, Failure::RuntimeStartupFailed),
        (RuntimeCode::IncompatibleResponse, Failure::RuntimeStartupFailed),
        (RuntimeCode::WorkspaceSetupRefused, Failure::WorkspaceSetupRefused),
    ] {
        let run = Scene::first()
            .run(&Answers::default().prepared(move |_| Err(EffectError::Held(Box::new(failure(code)), None))));
        let Transition::Fail { failure, data } = run.transition() else {
            panic!("{code:?}")
        };
        assert_eq!(failure, expected);
        assert_eq!(
            data.runtime_failure.is_some(),
            code == RuntimeCode::ModelProbeFailed,
            "{code:?}"
        );
        assert!(!run.steps.iter().any(|step| step.starts_with("Stop")), "{code:?}");
    }
}

#[test]
fn a_failing_activation_of_a_selected_version_is_unfinished_work() {
    let run = Scene::first().run(&Answers::default().activated(|_| Err(fault())));
    assert_eq!(
        run.outcome,
        Outcome::Pending {
            reason: Pending::RevisionFinalizationIncomplete,
            evidence: None
        }
    );
    let held = |_: &_| {
        Err(EffectError::Held(
            Box::new(failure(RuntimeCode::AuthenticationFailed)),
            None,
        ))
    };
    let run = Scene::first().run(&Answers::default().activated(held));
    assert!(matches!(
        run.transition(),
        Transition::Fail {
            failure: Failure::RuntimeAuthenticationFailed,
            ..
        }
    ));
}

#[test]
fn an_observation_of_another_version_is_refused_and_its_candidate_stopped() {
    let run = Scene::first().run(&Answers::default().prepared(|target| {
        let mut other = RevisionObservation::ready(target);
        other.revision_id = occ_core::id::RevisionId::random();
        Ok(other)
    }));
    assert_eq!(run.steps, ["Authorize", "Prepare", "Finish"]);
    assert!(matches!(
        run.transition(),
        Transition::Defer {
            refusal: Some(Failure::InvalidDriverObservation),
            ..
        }
    ));
}

/// No plugin can be admitted, so none is this version's.
#[test]
fn a_warning_about_a_plugin_is_no_observation_of_the_version() {
    let run = Scene::first().run(&Answers::default().prepared(|target| {
        let mut warned = RevisionObservation::ready(target);
        warned.readiness = Readiness::Ready {
            warnings: vec![PluginWarning {
                code: PluginWarningCode::InstallFailed,
                plugin_id: "memory".to_owned(),
            }],
        };
        Ok(warned)
    }));
    assert!(matches!(
        run.transition(),
        Transition::Defer {
            refusal: Some(Failure::InvalidDriverObservation),
            ..
        }
    ));
}

#[test]
fn a_runtime_failure_that_nothing_is_held_for_is_waited_on_until_the_deadline() {
    let answers =
        || Answers::default().prepared(|_| Err(EffectError::Held(Box::new(failure(RuntimeCode::NotReady)), None)));
    assert!(matches!(
        Scene::first().run(&answers()).transition(),
        Transition::Defer {
            reason: Pending::RevisionIncomplete,
            ..
        }
    ));
    let Transition::Fail { failure, data } = Scene::first().late().run(&answers()).transition() else {
        panic!("it is late")
    };
    assert_eq!(failure, Failure::ConvergenceDeadlineExceeded);
    assert_eq!(
        data.runtime_failure.map(|found| found.code),
        Some(RuntimeCode::NotReady)
    );
}

#[test]
fn an_unclassified_fault_spends_attempts_until_none_is_left() {
    let mut scene = Scene::first();
    let answers = || Answers::default().prepared(|_| Err(fault()));
    assert_eq!(scene.run(&answers()).transition().code(), "DEPENDENCY_UNAVAILABLE");
    assert!(matches!(
        scene.run(&answers()).transition(),
        Transition::Retry {
            reason: Pending::DependencyUnavailable,
            ..
        }
    ));
    scene.attempt = Policy::default().max_attempts;
    assert!(matches!(
        scene.run(&answers()).transition(),
        Transition::Fail {
            failure: Failure::DependencyUnavailable,
            ..
        }
    ));
}

#[test]
fn a_refused_first_candidate_is_stopped_before_the_refusal_is_recorded() {
    let refused = || Answers {
        authority: Ok(Authority::ActorGone),
        ..Answers::default()
    };
    let run = Scene::first().run(&refused());
    assert_eq!(run.steps, ["Authorize", "Stop 1", "Finish"]);
    assert!(matches!(
        run.transition(),
        Transition::Fail {
            failure: Failure::ActorRevoked,
            ..
        }
    ));
    assert_eq!(run.audits(), ["openclaw.agents.deploy ACTOR_REVOKED"]);

    let run = Scene::first().run(&Answers {
        stop: Err(fault()),
        ..refused()
    });
    let Transition::Defer {
        reason,
        refusal,
        failed_stops,
        repeat_evidence,
        ..
    } = run.transition()
    else {
        panic!()
    };
    assert_eq!(
        (reason, refusal),
        (Pending::RefusedCandidateStopPending, Some(Failure::ActorRevoked))
    );
    assert_eq!((failed_stops, repeat_evidence), (1, true));
}

#[test]
fn a_refused_replacement_on_a_shared_compute_is_left_to_the_next_deployment() {
    let run = Scene::replacement().run(&Answers {
        authority: Ok(Authority::PrincipalGone),
        ..Answers::default()
    });
    assert_eq!(run.steps, ["Authorize", "Finish"]);
    assert!(matches!(
        run.transition(),
        Transition::Fail {
            failure: Failure::InvalidAgentPrincipal,
            ..
        }
    ));
}

#[test]
fn a_lifted_refusal_goes_on_and_a_standing_one_does_not() {
    let mut scene = Scene::first();
    let last = |refusal| LastAttempt {
        code: Pending::RefusedCandidateStopPending,
        at: scene_now(),
        refusal: Some(refusal),
        failed_stops: 3,
    };
    scene.last_attempt = Some(last(Failure::AuthorizationDenied));
    assert_eq!(
        scene.run(&Answers::default()).success(),
        Some(Success::RevisionActivated)
    );

    let run = scene.late().run(&Answers::default());
    assert_eq!(run.steps, ["Authorize", "Stop 1", "Finish"]);
    assert!(matches!(
        run.transition(),
        Transition::Fail {
            failure: Failure::ConvergenceDeadlineExceeded,
            ..
        }
    ));

    scene.last_attempt = Some(last(Failure::InvalidDriverObservation));
    let run = scene.run(&Answers {
        stop: Err(fault()),
        ..Answers::default()
    });
    let Transition::Defer {
        failed_stops, delay, ..
    } = run.transition()
    else {
        panic!("{:?}", run.outcome)
    };
    assert_eq!((failed_stops, delay), (4, Duration::from_secs(4)));
}

fn scene_now() -> occ_core::time::Timestamp {
    occ_core::time::Timestamp::from_millis(0)
}

/// The database's clock may have been set back between the deployment and the stop (simulation, seed 1293).
#[test]
fn settling_is_a_function_of_its_inputs() {
    let run = Scene::first().run(&Answers::default().prepared(|_| Err(fault())));
    let policy = Policy::default();
    assert_eq!(
        settle(&run.outcome, &run.pass, &policy, 0.5),
        settle(&run.outcome, &run.pass, &policy, 0.5)
    );
}

//! The worker's pure core: stops, deletions and Namespaces.
#![cfg(feature = "engine")]

mod pass_fixture;

use std::time::Duration;

use occ_core::{
    driver::{AttachmentCondition, EffectError, Fault, FaultKind, NamespaceState, Stop, Terminal},
    id::NamespaceId,
    reason::{Dependency, Failure, Pending, Success},
    resource::{AgentStatus, CredentialSource, DesiredRuntimeState, NamespaceStatus, WithdrawalState},
    store::{Expect, Write},
    work::Transition,
    worker::{Authority, Consequences, Event, Outcome, Step, WriteBox, consequences},
};
use pass_fixture::{Answers, Scene};

#[test]
fn a_stop_stops_the_active_version_first_and_then_the_failed_candidates() {
    let run = Scene::replacement().stopping().run(&Answers::default());
    assert_eq!(run.steps, ["Authorize", "Stop 1", "Stop 2", "Reread", "Finish"]);
    assert_eq!(run.success(), Some(Success::AgentStopped));
    assert!(
        run.writes()
            .any(|write| matches!(write, Write::ActiveRevision(_, None)))
    );
}

#[test]
fn a_stop_leaves_what_another_compute_runs_alone() {
    let mut scene = Scene::replacement().stopping();
    scene.read.live[1].compute.as_mut().expect("it is known").id = "other".to_owned();
    let run = scene.run(&Answers::default());
    assert_eq!(run.steps, ["Authorize", "Stop 1", "Reread", "Finish"]);
}

#[test]
fn a_namespace_that_is_not_there_yet_is_waited_for() {
    let mut pass = Scene::first().provisioning().pass();
    pass.apply(Event::Authority(Ok(Authority::Granted)));
    pass.apply(Event::Namespace(Ok(NamespaceState {
        namespace_id: pass.claim.target.namespace(),
        done: false,
    })));
    let waits = Outcome::Pending {
        reason: Pending::NamespaceIncomplete,
        evidence: None,
    };
    assert_eq!(pass.decide(), Step::Finish(Box::new(waits)));
}

#[test]
fn an_observation_of_another_namespace_is_refused() {
    let mut pass = Scene::first().provisioning().pass();
    pass.apply(Event::Authority(Ok(Authority::Granted)));
    pass.apply(Event::Namespace(Ok(NamespaceState {
        namespace_id: NamespaceId::random(),
        done: true,
    })));
    let Step::Finish(outcome) = pass.decide() else {
        panic!("it is over")
    };
    assert!(matches!(
        *outcome,
        Outcome::Failed {
            failure: Failure::InvalidDriverObservation,
            ..
        }
    ));
}

#[test]
fn a_stop_that_a_deployment_overtook_does_nothing() {
    let mut scene = Scene::replacement().stopping();
    scene.desired(DesiredRuntimeState::Running);
    let run = scene.run(&Answers::default());
    assert_eq!(run.steps, ["Authorize", "Finish"]);
    assert_eq!(run.success(), Some(Success::StopSuperseded));
}

#[test]
fn a_draining_gateway_defers_the_stop_even_past_the_deadline() {
    let run = Scene::replacement().stopping().late().run(&Answers {
        stop: Ok(Stop::Draining),
        ..Answers::default()
    });
    assert!(matches!(
        run.transition(),
        Transition::Defer {
            reason: Pending::AgentStopYielded,
            ..
        }
    ));
}

/// What still runs must not be forgotten, however long its Compute is away.
#[test]
fn a_stop_and_a_deletion_have_no_deadline() {
    let away = || EffectError::Transient(Dependency::KubernetesApi);
    let waits = || EffectError::Pending(Pending::ComputeBindingIncomplete);
    for mut scene in [Scene::replacement().stopping(), Scene::replacement().deleting()] {
        scene.binds = true;
        for error in [away(), waits()] {
            let run = scene.late().run(&Answers {
                bound: Err(error),
                ..Answers::default()
            });
            assert!(
                matches!(run.transition(), Transition::Defer { .. }),
                "{:?}",
                run.outcome
            );
        }
    }
}

#[test]
fn a_deletion_retires_every_version_then_credentials_then_what_is_left() {
    let scene = Scene::replacement().deleting();
    let run = scene.run(&Answers::default());
    assert_eq!(
        run.steps,
        [
            "Authorize",
            "Retire 1",
            "Retire 2",
            "DeleteCredentials",
            "DeleteAgent",
            "Finish"
        ]
    );
    assert_eq!(run.success(), Some(Success::AgentDeleted));

    let mut active = scene;
    active.read.agent.as_mut().expect("the scene has an Agent").agent.status = AgentStatus::Active;
    assert!(matches!(
        active.run(&Answers::default()).transition(),
        Transition::Fail {
            failure: Failure::InvalidAgentState,
            ..
        }
    ));
}

#[test]
fn a_namespace_becomes_ready_or_failed_with_its_work() {
    let run = Scene::first().provisioning().run(&Answers::default());
    assert_eq!(run.steps, ["Authorize", "EnsureNamespace", "Finish"]);
    let ready = |write: &Write| {
        matches!(
            write,
            Write::NamespaceStatus {
                status: NamespaceStatus::Ready,
                ..
            }
        )
    };
    assert!(run.writes().any(ready));

    let run = Scene::first().provisioning().run(&Answers {
        namespace: Err(EffectError::Ownership),
        ..Answers::default()
    });
    let transition = run.transition();
    assert!(matches!(
        transition,
        Transition::Fail {
            failure: Failure::OwnershipConflict,
            ..
        }
    ));
    let failed = |write: &WriteBox| {
        matches!(
            write.0,
            Write::NamespaceStatus {
                status: NamespaceStatus::Failed,
                ..
            }
        )
    };
    let followed = consequences(&transition, &run.pass);
    assert!(followed.writes.iter().any(failed));
    assert!(matches!(
        followed.expect[..],
        [Expect::NamespaceStatus(_, &[NamespaceStatus::Provisioning])]
    ));

    let mut deleted = run.pass.clone();
    let row = deleted.read.namespace.as_mut().expect("the Namespace");
    row.namespace.status = NamespaceStatus::Deleting;
    assert_eq!(consequences(&transition, &deleted), Consequences::default());
}

#[test]
fn a_withdrawal_ends_once_the_gateway_shows_it() {
    for shown in [AttachmentCondition::Revoked, AttachmentCondition::Absent] {
        let run = Scene::replacement().withdrawing().run(&Answers {
            withdrawn: Ok(shown),
            ..Answers::default()
        });
        assert_eq!(run.steps, ["Authorize", "Withdraw", "Finish"]);
        assert_eq!(run.success(), Some(Success::CredentialsWithdrawn));
        assert_eq!(run.audits(), ["openclaw.agents.lifecycle.credentials_withdraw -"]);
        let written: Vec<_> = run.writes().collect();
        let [Write::UpdateOwned(row)] = &written[..] else {
            panic!("the source alone is written: {written:?}");
        };
        let source: CredentialSource = row.clone().try_into().expect("a source");
        let withdrawal = &source.withdrawals[0];
        assert_eq!((source.version, withdrawal.state), (2, WithdrawalState::Revoked));
        assert_eq!(withdrawal.completed_at, Some(run.pass.read.now));
    }
}

#[test]
fn a_withdrawal_that_is_not_shown_yet_is_tried_for_an_hour_and_stays_asked_for() {
    let away = || EffectError::from(Fault::new("reach the gateway", FaultKind::Unavailable));
    for (withdrawn, waits) in [
        (Ok(AttachmentCondition::Ready), Pending::ReconciliationPending),
        (Ok(AttachmentCondition::Withheld), Pending::ReconciliationPending),
        (Err(away()), Pending::DependencyUnavailable),
        (Err(EffectError::UnknownOutcome), Pending::DependencyUnavailable),
    ] {
        let answers = Answers {
            withdrawn,
            ..Answers::default()
        };
        let mut scene = Scene::replacement().withdrawing();
        // The deadline of a deployment is not that of a withdrawal.
        let run = scene.late().run(&answers);
        assert!(
            matches!(run.transition(), Transition::Defer { reason, .. } if reason == waits),
            "{:?}",
            run.outcome
        );
        scene.age = Duration::from_hours(1);
        let run = scene.run(&answers);
        assert!(
            matches!(run.transition(), Transition::Fail { failure, .. } if failure == Failure::DependencyUnavailable)
        );
        assert_eq!(run.writes().count(), 0, "it stays asked for");
    }
}

#[test]
fn a_withdrawal_is_refused_where_nothing_may_be_asked_of_the_gateway() {
    let denied = Answers {
        authority: Ok(Authority::ActorGone),
        ..Answers::default()
    };
    let run = Scene::replacement().withdrawing().run(&denied);
    assert!(matches!(run.transition(), Transition::Fail { failure, .. } if failure == Failure::ActorRevoked));
    assert_eq!(
        run.audits(),
        ["openclaw.agents.credential_sources.withdraw ACTOR_REVOKED"]
    );

    for other in [None, Some("another".to_owned())] {
        let mut scene = Scene::replacement().withdrawing();
        scene.credential_gateway = other;
        let run = scene.run(&Answers::default());
        assert_eq!(run.steps, ["Authorize", "Finish"]);
        let failed = Failure::CredentialGatewayMismatch;
        assert!(matches!(run.transition(), Transition::Fail { failure, .. } if failure == failed));
    }

    for (error, failed) in [
        (EffectError::Ownership, Failure::OwnershipConflict),
        (
            EffectError::Terminal(Terminal::CredentialSourceUnavailable),
            Failure::CredentialSourceUnavailable,
        ),
    ] {
        let run = Scene::replacement().withdrawing().run(&Answers {
            withdrawn: Err(error),
            ..Answers::default()
        });
        assert!(matches!(run.transition(), Transition::Fail { failure, .. } if failure == failed));
    }
}

#[test]
fn a_withdrawal_that_was_done_or_asked_for_anew_does_nothing() {
    let mut done = Scene::replacement().withdrawing();
    done.read.sources[0].withdrawals[0].state = WithdrawalState::Revoked;
    let mut anew = Scene::replacement().withdrawing();
    anew.read.sources[0].withdrawals[0].operation = uuid::Uuid::new_v4();
    let mut gone = Scene::replacement().withdrawing();
    gone.read.sources.clear();
    for scene in [done, anew, gone] {
        let run = scene.run(&Answers::default());
        assert_eq!(run.steps, ["Authorize", "Finish"]);
        assert_eq!(run.success(), Some(Success::SupersededTarget));
    }
}

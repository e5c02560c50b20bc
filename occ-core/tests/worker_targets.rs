//! The worker's pure core: stops, deletions and Namespaces.
#![cfg(feature = "engine")]

mod pass_fixture;

use std::time::Duration;

use occ_core::{
    driver::{EffectError, NamespaceState, Stop},
    id::NamespaceId,
    reason::{Dependency, Failure, Pending, Success},
    resource::{AgentStatus, DesiredRuntimeState, NamespaceStatus},
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
    "other".clone_into(&mut scene.read.live[1].revision.snapshot.compute.id);
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
fn a_stop_does_not_ask_the_clock_which_version_came_first() {
    let mut scene = Scene::replacement().stopping();
    let later = scene.read.now.plus(Duration::from_hours(1));
    scene
        .read
        .live
        .iter_mut()
        .for_each(|row| row.revision.created_at = later);
    scene.read.active = scene.read.live.first().cloned();
    let run = scene.run(&Answers::default());
    assert_eq!(run.success(), Some(Success::AgentStopped));
    assert!(
        ["Stop 1", "Stop 2"]
            .iter()
            .all(|step| run.steps.contains(&(*step).to_owned()))
    );
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

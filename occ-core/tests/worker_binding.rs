//! The worker's pure core: where the Compute binds Agents, nothing else is asked of it before.
#![cfg(feature = "engine")]

mod pass_fixture;

use occ_core::{
    driver::{EffectError, Fault, FaultKind},
    reason::{Failure, Pending},
    work::Transition,
    worker::Outcome,
};
use pass_fixture::{Answers, Scene};

fn fault() -> EffectError {
    Fault::new("bind the Agent", FaultKind::Unavailable).into()
}

fn unbound(error: EffectError) -> Answers {
    Answers {
        bound: Err(error),
        ..Answers::default()
    }
}

/// A deployment, a stop and a deletion.
fn passes() -> [Scene; 3] {
    [
        Scene::first(),
        Scene::replacement().stopping(),
        Scene::replacement().deleting(),
    ]
}

#[test]
fn the_agent_is_bound_before_anything_is_done_with_it() {
    for mut scene in passes() {
        let without = scene.run(&Answers::default());
        assert!(!without.steps.contains(&"Bind".to_owned()), "{:?}", without.steps);
        scene.binds = true;
        let mut with = scene.run(&Answers::default()).steps;
        assert_eq!(with.remove(1), "Bind");
        assert_eq!(with, without.steps, "the rest is the same");
    }
}

#[test]
fn nothing_is_done_with_an_agent_that_could_not_be_bound() {
    for mut scene in passes() {
        scene.binds = true;
        let run = scene.run(&unbound(fault()));
        assert_eq!(run.steps, ["Authorize", "Bind", "Finish"]);
        assert!(matches!(
            run.transition(),
            Transition::Retry {
                reason: Pending::DependencyUnavailable,
                ..
            }
        ));
        let run = scene.run(&unbound(EffectError::Ownership));
        assert_eq!(run.steps, ["Authorize", "Bind", "Finish"]);
        assert!(matches!(
            run.outcome,
            Outcome::Failed {
                failure: Failure::OwnershipConflict,
                ..
            }
        ));
    }
}

/// It is unfinished work and spends no attempt; what the driver says for certain ends it all the same.
#[test]
fn a_selected_version_waits_until_its_agent_is_bound() {
    let mut scene = Scene::first();
    scene.binds = true;
    scene.pointer_names_target();
    for error in [fault(), EffectError::UnknownOutcome] {
        assert_eq!(
            scene.run(&unbound(error)).outcome,
            Outcome::Pending {
                reason: Pending::ComputeBindingIncomplete,
                evidence: None
            }
        );
    }
    assert!(matches!(
        scene.run(&unbound(EffectError::Ownership)).outcome,
        Outcome::Failed { .. }
    ));
}

//! Refused candidates that wait for their stop, and versions whose place was taken (seed; spec/engine 6).

mod pass_fixture;

use std::time::Duration;

use occ_core::{
    driver::{ActivationOrder, EffectError, Fault, FaultKind, Stop},
    reason::{Failure, Pending, Success},
    work::{LastAttempt, Target, Transition},
    worker::{Authority, Outcome},
};
use pass_fixture::{Answers, Scene};

fn fault() -> EffectError {
    Fault::new("do something", FaultKind::Unavailable).into()
}

/// The scene after an earlier pass refused its candidate and could not stop it.
fn waiting(mut scene: Scene, refusal: Failure) -> Scene {
    scene.last_attempt = Some(LastAttempt {
        code: Pending::RefusedCandidateStopPending,
        at: scene.read.now,
        refusal: Some(refusal),
        failed_stops: 2,
    });
    scene
}

/// The same version, looked after instead of deployed.
fn looked_after(scene: &mut Scene) {
    let Target::Revision {
        namespace,
        agent,
        revision,
    } = scene.target
    else {
        panic!("the scene is a deployment")
    };
    scene.target = Target::Maintenance {
        namespace,
        agent,
        revision,
        bucket: 1,
    };
}

fn answers(authority: Result<Authority, EffectError>, stop: Result<Stop, EffectError>) -> Answers {
    Answers {
        authority,
        stop,
        ..Answers::default()
    }
}

fn refused(outcome: &Outcome) -> Option<(Failure, u32)> {
    match outcome {
        Outcome::RefusedStop {
            refusal, failed_stops, ..
        } => Some((*refusal, *failed_stops)),
        _ => None,
    }
}

/// Finding 1033: an unrelated failure ended the wait, lost the refusal and left the candidate.
#[test]
fn an_outage_of_the_policy_neither_ends_nor_forgets_a_refusal() {
    let mut scene = waiting(Scene::first(), Failure::AuthorizationDenied);
    scene.attempt = 99;
    for scene in [scene.late(), scene] {
        let run = scene.run(&answers(Err(fault()), Err(fault())));
        assert_eq!(run.steps, ["Authorize", "Stop 1", "Finish"]);
        assert_eq!(refused(&run.outcome), Some((Failure::AuthorizationDenied, 3)));
        assert!(matches!(run.transition(), Transition::Defer { refusal: Some(_), .. }));
        let run = scene.run(&answers(Err(fault()), Ok(Stop::Stopped)));
        assert!(matches!(
            run.outcome,
            Outcome::Failed {
                failure: Failure::AuthorizationDenied,
                ..
            }
        ));
    }
}

/// Finding 1034: waits prepared the refused candidate again and swept its predecessors each pass.
#[test]
fn a_refusal_that_stands_is_neither_decided_nor_prepared_again() {
    let scene = waiting(Scene::first(), Failure::CredentialWithdrawn);
    let run = scene.run(&answers(Ok(Authority::Granted), Err(fault())));
    assert_eq!(run.steps, ["Stop 1", "Finish"]);
    assert_eq!(refused(&run.outcome), Some((Failure::CredentialWithdrawn, 3)));
}

/// Finding 1004: a superseded refused candidate completed without its stop.
#[test]
fn a_superseded_refused_candidate_is_stopped_and_then_superseded() {
    for refusal in [Failure::AuthorizationDenied, Failure::CredentialWithdrawn] {
        let mut scene = waiting(Scene::replacement(), refusal);
        scene.target_is_the_older();
        let run = scene.run(&answers(Ok(Authority::Granted), Err(fault())));
        assert_eq!(refused(&run.outcome), Some((refusal, 3)), "the stop is not done");
        let run = scene.run(&answers(Ok(Authority::Granted), Ok(Stop::Stopped)));
        assert!(run.steps.contains(&"Stop 1".to_owned()), "{:?}", run.steps);
        assert_eq!(run.success(), Some(Success::RevisionSuperseded));
        assert_eq!(run.audits(), ["openclaw.agents.lifecycle.supersede -"]);
    }
}

/// The same where a newer version is merely admitted, and every predecessor is stopped before it.
#[test]
fn an_exclusive_refused_candidate_is_stopped_before_a_newer_version_takes_its_place() {
    let mut scene = waiting(Scene::replacement(), Failure::AuthorizationDenied);
    scene.exclusive = true;
    scene.target_is_the_older();
    scene.nothing_is_active();
    let run = scene.run(&answers(Ok(Authority::Granted), Ok(Stop::Stopped)));
    assert_eq!(run.steps, ["Authorize", "Stop 1", "Finish"]);
    assert_eq!(run.success(), Some(Success::RevisionSuperseded));
}

/// The pointer may have moved before the attempt was lost that followed the refusal.
#[test]
fn a_version_that_is_selected_is_finished_whatever_refusal_it_waited_with() {
    let mut scene = waiting(Scene::first(), Failure::CredentialWithdrawn);
    scene.pointer_names_target();
    let run = scene.run(&Answers::default());
    assert_eq!(run.steps, ["Authorize", "Prepare", "Activate", "Finish"]);
    assert_eq!(run.success(), Some(Success::RevisionAlreadyActive));
}

/// Only where every predecessor is stopped first does a newer version take the place by being there.
#[test]
fn a_lifted_refusal_goes_on_while_no_other_version_took_its_place() {
    let mut beside = waiting(Scene::replacement(), Failure::AuthorizationDenied);
    beside.target_is_the_older();
    beside.nothing_is_active();
    let mut alone = waiting(Scene::first(), Failure::AuthorizationDenied);
    alone.exclusive = true;
    for scene in [beside, alone] {
        let run = scene.run(&answers(Ok(Authority::Granted), Ok(Stop::Stopped)));
        assert_eq!(run.steps[..2], ["Authorize", "Prepare"]);
        assert_eq!(run.success(), Some(Success::RevisionActivated));
    }
}

/// What another Compute runs is not ours to stop, and what merely looks after a version stops nothing.
#[test]
fn only_the_work_that_deploys_a_version_of_this_compute_stops_its_candidate() {
    let mut foreign = Scene::first();
    "other".clone_into(&mut foreign.compute_id);
    let mut left = Scene::first();
    looked_after(&mut left);
    left.harness_approved = false;
    for scene in [foreign, left] {
        assert_eq!(scene.run(&Answers::default()).steps, ["Finish"]);
    }
}

/// The scene after a pass that waited: something of the candidate may run.
fn tried(mut scene: Scene) -> Scene {
    scene.last_attempt = Some(LastAttempt {
        code: Pending::RevisionIncomplete,
        at: scene.read.now,
        refusal: None,
        failed_stops: 0,
    });
    scene
}

/// Whoever dies during the stop must not take the refusal along (finding 1010).
#[test]
fn a_refusal_of_what_may_run_is_stored_before_its_first_stop() {
    let denied = || answers(Ok(Authority::ActorGone), Ok(Stop::Stopped));
    let run = tried(Scene::first()).run(&denied());
    assert_eq!(run.steps, ["Authorize", "Finish"]);
    assert_eq!(
        run.transition(),
        Transition::Defer {
            reason: Pending::RefusedCandidateStopPending,
            delay: Duration::ZERO,
            refusal: Some(Failure::ActorRevoked),
            failed_stops: 0,
            repeat_evidence: true,
        }
    );
    // Prepared in this very pass.
    let run = Scene::first().run(&Answers::default().prepared(|_| Err(EffectError::Ownership)));
    assert_eq!(run.steps, ["Authorize", "Prepare", "Finish"]);
    assert!(matches!(
        run.transition(),
        Transition::Defer {
            refusal: Some(Failure::OwnershipConflict),
            ..
        }
    ));
    // Then it is stopped, and only then it has failed. So is at once what nobody ever prepared.
    for scene in [waiting(Scene::first(), Failure::ActorRevoked), Scene::first()] {
        let run = scene.run(&denied());
        assert_eq!(run.steps, ["Authorize", "Stop 1", "Finish"]);
        assert!(matches!(
            run.transition(),
            Transition::Fail {
                failure: Failure::ActorRevoked,
                ..
            }
        ));
    }
}

/// A Compute that activates before the pointer moves may route to a candidate that nobody selected.
#[test]
fn a_candidate_that_may_be_routed_to_is_stopped_before_its_refusal_is_recorded() {
    let denied = || answers(Ok(Authority::ActorGone), Ok(Stop::Stopped));
    let before = |mut scene: Scene| {
        scene.order = ActivationOrder::BeforeCommit;
        scene
    };
    let stored = |run: &pass_fixture::Run| matches!(run.transition(), Transition::Defer { refusal: Some(_), .. });
    let run = before(tried(Scene::replacement())).run(&denied());
    assert!(stored(&run), "{:?}", run.outcome);
    let run = before(waiting(Scene::replacement(), Failure::ActorRevoked)).run(&denied());
    assert_eq!(run.steps, ["Authorize", "Stop 2", "Finish"]);
    let refused = Answers::default().activated(|_| Err(EffectError::Ownership));
    let run = before(Scene::replacement()).run(&refused);
    assert_eq!(run.steps, ["Authorize", "Prepare", "Reread", "Activate", "Finish"]);
    assert!(stored(&run), "{:?}", run.outcome);
    // Nothing was ever routed to these.
    for scene in [before(Scene::replacement()), tried(Scene::replacement())] {
        let run = scene.run(&denied());
        assert_eq!(run.steps, ["Authorize", "Finish"]);
        assert!(matches!(run.transition(), Transition::Fail { .. }));
    }
}

/// Finding 1025: yields doubled the backoff like failures.
#[test]
fn a_draining_refused_candidate_counts_no_failure() {
    let scene = waiting(Scene::first(), Failure::CredentialWithdrawn);
    let run = scene.run(&answers(Ok(Authority::Granted), Ok(Stop::Draining)));
    assert_eq!(refused(&run.outcome), Some((Failure::CredentialWithdrawn, 2)));
}

/// Maintenance never stops what it looks after, whatever an earlier pass recorded.
#[test]
fn maintenance_of_a_selected_version_refuses_without_a_stop() {
    let mut scene = waiting(Scene::first(), Failure::AuthorizationDenied);
    scene.pointer_names_target();
    looked_after(&mut scene);
    let run = scene.run(&answers(Ok(Authority::ActorGone), Ok(Stop::Stopped)));
    assert_eq!(run.steps, ["Authorize", "Finish"]);
}

/// A deployment has its deadline also while its predecessor drains; a stop has none.
#[test]
fn a_version_that_waits_for_a_predecessor_to_drain_has_its_deadline() {
    let mut scene = Scene::replacement();
    scene.exclusive = true;
    let draining = || answers(Ok(Authority::Granted), Ok(Stop::Draining));
    assert!(matches!(
        scene.run(&draining()).transition(),
        Transition::Defer {
            reason: Pending::PredecessorStopYielded,
            ..
        }
    ));
    assert!(matches!(
        scene.late().run(&draining()).transition(),
        Transition::Fail {
            failure: Failure::ConvergenceDeadlineExceeded,
            ..
        }
    ));
}

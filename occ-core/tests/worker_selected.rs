//! What becomes of a version that is selected, or may be: it goes on until it serves (spec/engine 5.2 and 5.3).
#![cfg(feature = "engine")]

mod pass_fixture;

use std::time::Duration;

use occ_core::{
    driver::{EffectError, Fault, FaultKind, Stop},
    reason::{Failure, Pending, Success},
    resource::DesiredRuntimeState,
    store::{Expect, Write},
    work::{Target, Transition},
    worker::{Authority, Outcome, consequences},
};
use pass_fixture::{Answers, Run, Scene};

fn unanswered() -> Answers {
    Answers {
        pointer: Err(EffectError::UnknownOutcome),
        ..Answers::default()
    }
}

#[test]
fn a_pointer_whose_move_was_not_answered_is_read_again() {
    let mut scene = Scene::first();
    scene.attempt = 5;
    let run = scene.run(&Answers {
        answer_lost: true,
        ..Answers::default()
    });
    assert_eq!(run.steps[3..], ["MovePointer", "Reread", "Activate", "Finish"]);
    assert_eq!(run.success(), Some(Success::RevisionActivated));
    // It did not move.
    let run = scene.run(&unanswered());
    assert_eq!(run.steps[3..], ["MovePointer", "Reread", "Finish"]);
    assert!(matches!(
        run.transition(),
        Transition::Fail {
            failure: Failure::DependencyUnavailable,
            ..
        }
    ));
}

/// What was sent and not answered may arrive after the reread. An end that rests on it says so.
#[test]
fn an_end_after_such_a_move_rests_on_where_the_pointer_was_seen() {
    let expects = |run: &Run| consequences(&run.transition(), &run.pass).expect;
    let mut scene = Scene::first();
    let run = scene.run(&unanswered());
    assert!(matches!(run.transition(), Transition::Retry { .. }));
    assert_eq!(expects(&run), [], "the next attempt reads it");
    scene.attempt = 5;
    let run = scene.run(&unanswered());
    let seen = Expect::AgentRuntime {
        agent: run.pass.claim.target.agent().expect("an Agent"),
        active: None,
        desired: DesiredRuntimeState::Running,
    };
    assert_eq!(expects(&run), [seen]);
    let run = scene.run(&Answers {
        pointer: Ok(false),
        ..Answers::default()
    });
    assert_eq!(expects(&run), [], "that was answered");
}

/// How long after its end a look follows.
fn look(run: &Run) -> Option<Duration> {
    let writes = consequences(&run.transition(), &run.pass).writes;
    writes.into_iter().find_map(|write| match write.0 {
        Write::EnqueueLater(work, delay) if matches!(work.target, Target::Maintenance { .. }) => Some(delay),
        _ => None,
    })
}

/// A Compute that wants no looks gets them as long as the version that is selected may not have come to run.
#[test]
fn a_selected_version_whose_attempts_were_used_up_goes_on_whatever_its_compute_wants() {
    let mut scene = Scene::first();
    scene.pointer_names_target();
    scene.attempt = 5;
    let away = Answers {
        authority: Err(EffectError::Fault(Fault::new("ask", FaultKind::Timeout))),
        ..Answers::default()
    };
    let deployment = scene.run(&away);
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
    for run in [deployment, scene.run(&away)] {
        assert!(matches!(
            run.transition(),
            Transition::Fail {
                failure: Failure::DependencyUnavailable,
                ..
            }
        ));
        let delay = look(&run).expect("a look follows");
        assert!(delay <= Duration::from_mins(5), "{delay:?}");
    }
    assert_eq!(look(&scene.run(&Answers::default())), None, "it serves");
    let denied = Answers {
        authority: Ok(Authority::ActorGone),
        ..Answers::default()
    };
    assert_eq!(look(&scene.run(&denied)), None, "it may not");
}

/// What runs of the predecessor is no part of this version's getting ready.
#[test]
fn a_predecessor_that_drains_has_no_deadline_once_the_version_serves() {
    let draining = Answers {
        retired: Ok(Stop::Draining),
        ..Answers::default()
    };
    for scene in [Scene::replacement(), Scene::replacement().late()] {
        let run = scene.run(&draining);
        assert_eq!(run.outcome, Outcome::Draining(Pending::RevisionFinalizationIncomplete));
        assert!(matches!(
            run.transition(),
            Transition::Defer {
                reason: Pending::RevisionFinalizationIncomplete,
                ..
            }
        ));
    }
}

/// Nobody goes on with a deployment that is past its deadline; what is selected is another matter.
#[test]
fn a_failing_attempt_past_the_deadline_is_the_last_unless_the_version_is_selected() {
    let fails = || Answers {
        authority: Err(EffectError::UnknownOutcome),
        ..Answers::default()
    };
    let scene = Scene::first();
    assert!(matches!(scene.run(&fails()).transition(), Transition::Retry { .. }));
    assert!(matches!(
        scene.late().run(&fails()).transition(),
        Transition::Fail {
            failure: Failure::ConvergenceDeadlineExceeded,
            ..
        }
    ));
    let mut selected = Scene::first();
    selected.pointer_names_target();
    let stopping = Scene::first().stopping();
    for scene in [selected, stopping] {
        assert!(matches!(
            scene.late().run(&fails()).transition(),
            Transition::Retry { .. }
        ));
    }
}

//! Looking after selected versions (spec/engine 5.1 check 5, 5.7).

mod pass_fixture;

use std::time::Duration;

use occ_core::{
    driver::{EffectError, Fault, FaultKind},
    reason::{Failure, RuntimeCode, Success},
    store::{WorkState, Write},
    work::{FailureData, Target, Transition},
    worker::{WriteBox, consequences},
};
use pass_fixture::{Answers, Run, Scene, failure};

const MINUTE: Duration = Duration::from_mins(1);
const MINUTE_MS: u64 = 60_000;

/// A selected version that is looked after; the bucket is the moment at which this look was due.
fn scene(bucket: u64) -> Scene {
    let mut scene = Scene::first();
    scene.pointer_names_target();
    scene.maintenance = Some(MINUTE);
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
        bucket,
    };
    scene
}

fn now(scene: &Scene) -> u64 {
    u64::try_from(scene.read.now.as_millis()).expect("a moment after 1970")
}

/// The bucket of the look that follows, and after how long it is due.
fn next(run: &Run) -> Option<(u64, Duration)> {
    consequences(&run.transition(), &run.pass)
        .writes
        .into_iter()
        .find_map(|WriteBox(write)| match write {
            Write::EnqueueLater(work, delay) => match work.target {
                Target::Maintenance { bucket, .. } => Some((bucket, delay)),
                other => panic!("it is no maintenance: {other:?}"),
            },
            _ => None,
        })
}

fn ended(failure: Failure) -> WorkState {
    WorkState::Failed {
        failure,
        data: FailureData::default(),
        actor: "prn_1".parse().expect("a principal"),
        attempts: 1,
        at: occ_core::time::Timestamp::from_millis(0),
    }
}

#[test]
fn a_version_that_was_activated_is_looked_after_an_interval_later() {
    let mut scene = Scene::first();
    scene.maintenance = Some(MINUTE);
    let (bucket, delay) = next(&scene.run(&Answers::default())).expect("a look follows");
    assert_eq!(bucket, (now(&scene) / MINUTE_MS + 1) * MINUTE_MS);
    assert!(delay > Duration::ZERO && delay <= MINUTE, "{delay:?}");
    scene.maintenance = None;
    assert_eq!(next(&scene.run(&Answers::default())), None, "this Compute wants none");
}

#[test]
fn each_look_is_followed_by_the_next_and_two_series_become_one() {
    let at = now(&scene(0));
    let aligned = at / MINUTE_MS * MINUTE_MS;
    // Of the series, and of a worker that started in the middle of an interval.
    for bucket in [aligned, at] {
        let run = scene(bucket).run(&Answers::default());
        assert_eq!(run.success(), Some(Success::RevisionAlreadyActive));
        assert_eq!(next(&run).expect("a look follows").0, aligned + MINUTE_MS);
    }
}

/// The successor deduplicated against itself under clock skew (2026-09-17).
#[test]
fn the_series_goes_on_when_the_databases_clock_was_set_back() {
    let hour = 3_600_000;
    let ahead = (now(&scene(0)) + hour) / MINUTE_MS * MINUTE_MS;
    let (bucket, delay) = next(&scene(ahead).run(&Answers::default())).expect("a look follows");
    assert_eq!(bucket, ahead + MINUTE_MS, "it is work of its own");
    assert_eq!(delay, MINUTE, "and not an hour away");
}

/// Exhausted maintenance retired an authorised runtime (2026-09-29).
#[test]
fn a_look_that_fails_fails_alone_and_the_next_one_follows() {
    let held = |code| {
        let failure = failure(code);
        Answers::default().prepared(move |_| Err(EffectError::Held(Box::new(failure.clone()), None)))
    };
    let run = scene(1).run(&held(RuntimeCode::Unavailable));
    assert!(matches!(run.transition(), Transition::Fail { .. }));
    assert!(next(&run).is_some());
    assert!(
        !run.steps
            .iter()
            .any(|step| step.starts_with("Stop") || step.starts_with("Retire"))
    );

    let mut exhausted = scene(1);
    exhausted.attempt = 5;
    let answers = Answers {
        authority: Err(EffectError::Fault(Fault::new("ask", FaultKind::Timeout))),
        ..Answers::default()
    };
    let run = exhausted.run(&answers);
    assert!(matches!(
        run.transition(),
        Transition::Fail {
            failure: Failure::DependencyUnavailable,
            ..
        }
    ));
    assert!(next(&run).is_some());
}

#[test]
fn a_deployment_that_failed_by_itself_is_never_revived() {
    for failure in [
        Failure::RuntimeAuthenticationFailed,
        Failure::ConvergenceDeadlineExceeded,
    ] {
        let mut scene = scene(1);
        scene.read.deployment = Some(ended(failure));
        let run = scene.run(&Answers::default());
        assert_eq!(run.steps, ["Finish"]);
        assert_eq!(run.success(), Some(Success::RevisionSuperseded));
        assert_eq!(next(&run), None);
    }
}

/// fix-recover-active-revision: the last attempt was lost after the pointer had moved; the version serves.
#[test]
fn a_selected_version_whose_attempts_were_used_up_is_looked_after() {
    for failure in [Failure::LeaseExpired, Failure::DependencyUnavailable] {
        let mut scene = scene(1);
        scene.read.deployment = Some(ended(failure));
        let run = scene.run(&Answers::default());
        assert_eq!(run.success(), Some(Success::RevisionAlreadyActive));
    }
    // And the series begins with the failure itself.
    let mut scene = Scene::first();
    scene.pointer_names_target();
    scene.maintenance = Some(MINUTE);
    scene.attempt = 5;
    let answers = Answers {
        authority: Err(EffectError::UnknownOutcome),
        ..Answers::default()
    };
    assert!(next(&scene.run(&answers)).is_some());
    // A version that is not selected, or should not run, has none.
    scene.desired(occ_core::resource::DesiredRuntimeState::Stopped);
    assert_eq!(next(&scene.run(&answers)), None);
    let mut scene = Scene::replacement();
    scene.maintenance = Some(MINUTE);
    scene.attempt = 5;
    assert_eq!(next(&scene.run(&answers)), None, "another is selected");
    scene.nothing_is_active();
    assert_eq!(next(&scene.run(&answers)), None);
}

#[test]
fn a_look_that_fails_at_what_is_no_longer_selected_is_the_last() {
    let mut scene = scene(1);
    scene.nothing_is_active();
    scene.harness_approved = false;
    let run = scene.run(&Answers::default());
    assert!(matches!(run.transition(), Transition::Fail { .. }));
    assert_eq!(next(&run), None);
}

#[test]
fn a_version_that_is_no_longer_selected_or_wanted_is_looked_after_no_more() {
    let mut stopped = scene(1);
    stopped.desired(occ_core::resource::DesiredRuntimeState::Stopped);
    let mut replaced = scene(1);
    replaced.nothing_is_active();
    for scene in [stopped, replaced] {
        let run = scene.run(&Answers::default());
        assert_eq!(run.success(), Some(Success::RevisionMaintenanceSuperseded));
        assert_eq!(next(&run), None);
    }
}

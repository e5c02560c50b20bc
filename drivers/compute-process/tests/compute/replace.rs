//! A version that takes the place of one that serves.

use std::time::Duration;

use occ_core::{
    driver::{EffectError, Readiness},
    reason::{Pending, PreparationReason, RuntimeCode},
};

use crate::scene::{Scene, kill, until};

#[tokio::test]
async fn the_predecessor_serves_until_the_activation() {
    let scene = Scene::new().provided().await;
    let (first, second) = (scene.revision(1), scene.revision(2));
    scene.deployed(&first).await.unwrap();
    let gateway = scene.process("gateway");

    scene.prepared(&second).await.unwrap();
    assert_eq!(scene.checks(), ["1", "2"], "the candidate was checked");
    assert_eq!(scene.process("gateway"), gateway, "and the predecessor not touched");
    assert_eq!(scene.serving().await.as_deref(), Some("1"));
    assert!(scene.endpoint(&first).await.is_some());
    assert_eq!(scene.endpoint(&second).await, None);

    let switching = scene.activate(&second).await.unwrap();
    assert!(matches!(
        switching,
        Readiness::Pending {
            reason: Pending::RevisionFinalizationIncomplete,
            ..
        }
    ));
    scene.deployed(&second).await.unwrap();
    assert_eq!(scene.serving().await.as_deref(), Some("2"));
    assert_eq!(scene.starts(), ["1", "2"]);
    assert_eq!(scene.checks(), ["1", "2"], "a check that just passed is not repeated");
    assert_eq!(scene.endpoint(&first).await, None);
    let url = scene.endpoint(&second).await.unwrap();

    scene.retired(&first).await;
    assert!(!scene.revision_dir(&first).exists());
    assert_eq!(scene.serving().await.as_deref(), Some("2"));
    assert_eq!(scene.endpoint(&second).await, Some(url));
    scene.stopped(&second).await;
}

#[tokio::test]
async fn a_candidate_whose_key_is_refused_leaves_the_predecessor_serving() {
    let scene = Scene::new().provided().await;
    let (first, second) = (scene.revision(1), scene.revision(2));
    scene.deployed(&first).await.unwrap();
    let gateway = scene.process("gateway");
    scene.control("check-refuses-2", true);
    for _ in 0..2 {
        let Err(EffectError::Held(failure, _)) = scene.prepared(&second).await else {
            panic!("it was refused")
        };
        assert_eq!(failure.code, RuntimeCode::AuthenticationFailed);
    }
    assert_eq!(scene.checks(), ["1", "2"]);
    scene.stopped(&second).await;
    assert_eq!(scene.process("gateway"), gateway);
    assert_eq!(scene.serving().await.as_deref(), Some("1"));
    assert!(scene.endpoint(&first).await.is_some());

    // The next version is judged by itself.
    let third = scene.revision(3);
    scene.deployed(&third).await.unwrap();
    assert_eq!(scene.serving().await.as_deref(), Some("3"));
    scene.stopped(&third).await;
}

#[tokio::test]
async fn a_tool_that_is_missing_is_found_beside_the_predecessor() {
    let mut scene = Scene::new().provided().await;
    let (first, second) = (scene.revision(1), scene.revision(2));
    scene.deployed(&first).await.unwrap();
    let tools = serde_json::json!({ "tools": { "python": scene.root().join("no-python"), "component": "/" } });
    scene.restart_with(tools);
    let Err(EffectError::Held(failure, Some(preparation))) = scene.prepared(&second).await else {
        panic!("it is missing")
    };
    assert_eq!(failure.code, RuntimeCode::Unavailable);
    assert_eq!(preparation.reason, PreparationReason::ExecutableMissing);
    assert_eq!(scene.serving().await.as_deref(), Some("1"));
    scene.stopped(&first).await;
}

#[tokio::test]
async fn a_check_is_stopped_with_its_version() {
    let scene = Scene::new().provided().await;
    let (first, second) = (scene.revision(1), scene.revision(2));
    scene.deployed(&first).await.unwrap();
    scene.control("check-waits", true);
    scene.prepare(&second).await.unwrap();
    until(async || !scene.processes("component.py check").is_empty()).await;
    scene.retired(&second).await;
    assert!(scene.processes("component.py check").is_empty());
    assert!(!scene.revision_dir(&second).exists());
    assert_eq!(scene.serving().await.as_deref(), Some("1"));
    scene.stopped(&first).await;
}

#[tokio::test]
async fn a_check_that_was_cut_off_is_made_again() {
    let mut scene = Scene::new().provided().await;
    let (first, second) = (scene.revision(1), scene.revision(2));
    scene.deployed(&first).await.unwrap();
    scene.control("check-waits", true);
    scene.prepare(&second).await.unwrap();
    until(async || scene.checks() == ["1", "2"]).await;
    kill(scene.process("check-spec.json"));
    scene.restart();
    scene.control("check-waits", false);
    scene.prepared(&second).await.unwrap();
    assert_eq!(scene.checks(), ["1", "2", "2"]);
    assert_eq!(scene.serving().await.as_deref(), Some("1"));
    scene.stopped(&second).await;
    scene.stopped(&first).await;
}

#[tokio::test]
async fn a_lost_predecessor_is_not_waited_for() {
    let scene = Scene::new().provided().await;
    let (first, second) = (scene.revision(1), scene.revision(2));
    scene.deployed(&first).await.unwrap();
    scene.lost().await;
    scene.deployed(&second).await.unwrap();
    assert_eq!(scene.serving().await.as_deref(), Some("2"));
    scene.retired(&first).await;
    scene.stopped(&second).await;
}

#[tokio::test]
async fn a_predecessor_that_never_served_is_replaced_at_once() {
    let scene = Scene::new().provided().await;
    let (first, second) = (scene.revision(1), scene.revision(2));
    scene.control("check-refuses-1", true);
    assert!(matches!(scene.prepared(&first).await, Err(EffectError::Held(..))));
    scene.deployed(&second).await.unwrap();
    assert_eq!(scene.serving().await.as_deref(), Some("2"));
    scene.stopped(&second).await;
}

#[tokio::test]
async fn a_start_that_fails_after_the_switch_is_held_and_the_next_version_recovers() {
    let scene = Scene::new().provided().await;
    let (first, second, third) = (scene.revision(1), scene.revision(2), scene.revision(3));
    scene.deployed(&first).await.unwrap();
    scene.prepared(&second).await.unwrap();
    scene.control("exit-at-once", true);
    let Err(EffectError::Held(failure, Some(preparation))) = scene.deployed(&second).await else {
        panic!("it exited")
    };
    assert_eq!(failure.code, RuntimeCode::Unavailable);
    assert_eq!(
        (preparation.reason, preparation.exit_status),
        (PreparationReason::ComponentExited, Some(3))
    );
    scene.control("exit-at-once", false);
    scene.deployed(&third).await.unwrap();
    assert_eq!(scene.serving().await.as_deref(), Some("3"));
    scene.stopped(&third).await;
}

#[tokio::test]
async fn activation_does_not_believe_a_gateway_that_does_not_answer() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.prepared(&revision).await.unwrap();
    scene.control("not-ready", true);
    assert!(matches!(
        scene.activate(&revision).await,
        Err(EffectError::Transient(_))
    ));
    assert_eq!(scene.endpoint(&revision).await, None);
    scene.control("not-ready", false);
    scene.deployed(&revision).await.unwrap();
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn a_check_is_not_believed_for_ever() {
    let scene = Scene::new().provided().await;
    let (first, second) = (scene.revision(1), scene.revision(2));
    scene.deployed(&first).await.unwrap();
    scene.prepared(&second).await.unwrap();
    scene.prepared(&second).await.unwrap();
    assert_eq!(scene.checks(), ["1", "2"]);
    scene.clock.advance(Duration::from_secs(1000));
    assert!(matches!(scene.prepare(&second).await, Ok(Readiness::Pending { .. })));
    until(async || scene.checks() == ["1", "2", "2"]).await;
    assert_eq!(scene.serving().await.as_deref(), Some("1"));
    scene.stopped(&second).await;
    scene.stopped(&first).await;
}

#[tokio::test]
async fn a_selected_version_that_failed_to_come_back_is_tried_again_later() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    // The machine was off, and when it came back its network did not.
    scene.lost().await;
    scene.control("check-refuses-1", true);
    assert!(matches!(scene.prepared(&revision).await, Err(EffectError::Held(..))));
    scene.control("check-refuses-1", false);
    assert!(
        matches!(scene.prepared(&revision).await, Err(EffectError::Held(..))),
        "not at once"
    );
    scene.clock.advance(Duration::from_secs(400));
    scene.deployed(&revision).await.unwrap();
    assert_eq!(scene.serving().await.as_deref(), Some("1"));
    scene.stopped(&revision).await;
}

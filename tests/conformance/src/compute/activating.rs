//! The route (spec/contracts 4.3, activateRevision and deactivateRevision).

use occ_core::driver::{EffectError, Readiness};

use super::scene::Scene;

pub(super) async fn activation_may_be_repeated(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.deployed(&version).await;
    for _ in 0..3 {
        let again = scene.activate(&version).await;
        assert!(matches!(again, Ok(Readiness::Ready { .. })), "it served: {again:?}");
    }
    scene.restart().await;
    scene.deployed(&version).await;
}

pub(super) async fn the_route_leads_to_the_active_version(scene: &mut Scene) {
    scene.provide().await;
    let first = scene.version(1);
    scene.prepared(&first).await;
    assert_eq!(scene.endpoint(&first).await, None, "prepared is not active");
    scene.deployed(&first).await;
    assert_eq!(scene.serving(&first).await.as_deref(), Some("1"));
    let second = scene.version(2);
    scene.deployed(&second).await;
    assert_eq!(scene.serving(&second).await.as_deref(), Some("2"));
    assert_eq!(scene.endpoint(&first).await, None, "one version is on the route");
}

pub(super) async fn the_predecessor_serves_until_the_activation(scene: &mut Scene) {
    scene.provide().await;
    let (first, second) = (scene.version(1), scene.version(2));
    scene.deployed(&first).await;
    let route = scene.endpoint(&first).await;
    scene.prepared(&second).await;
    assert_eq!(scene.endpoint(&first).await, route, "the route is as it was");
    assert_eq!(scene.endpoint(&second).await, None);
    assert_eq!(scene.serving(&first).await.as_deref(), Some("1"));
    let starts = scene.starts(&first).await;
    assert_eq!(
        starts.iter().filter(|start| *start == "1").count(),
        1,
        "it was not restarted"
    );
    scene.deployed(&second).await;
    assert_eq!(scene.serving(&second).await.as_deref(), Some("2"));
}

pub(super) async fn a_refused_candidate_leaves_its_predecessor_alone(scene: &mut Scene) {
    scene.provide().await;
    let first = scene.version(1);
    scene.deployed(&first).await;
    let mut wish = scene.wish(2);
    wish.refused = true;
    let second = scene.version_as(2, &wish);
    for _ in 0..2 {
        let refused = scene.converged(&second).await;
        let held = matches!(&refused, Err(EffectError::Held(failure, _)) if failure.code.held().is_some());
        assert!(held, "the credential is refused: {refused:?}");
    }
    scene.stopped(&second).await;
    assert_eq!(scene.serving(&first).await.as_deref(), Some("1"));
    // What comes next is judged by itself.
    let third = scene.version(3);
    scene.deployed(&third).await;
    assert_eq!(scene.serving(&third).await.as_deref(), Some("3"));
}

pub(super) async fn activation_believes_only_what_serves(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.deployed(&version).await;
    scene.stopped(&version).await;
    // It may start the version again. It may not say that it serves before it does.
    for _ in 0..5 {
        if let Ok(Readiness::Ready { .. }) = scene.activate(&version).await {
            assert_eq!(scene.serving(&version).await.as_deref(), Some("1"));
        }
    }
}

pub(super) async fn a_route_outlives_the_control_plane(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.deployed(&version).await;
    let route = scene.endpoint(&version).await;
    for _ in 0..2 {
        scene.restart().await;
        assert_eq!(scene.endpoint(&version).await, route);
        assert_eq!(scene.serving(&version).await.as_deref(), Some("1"));
        scene.deployed(&version).await;
    }
    assert_eq!(scene.starts(&version).await, ["1"]);
}

pub(super) async fn deactivation_takes_the_version_off_the_route_and_may_be_repeated(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.deactivate(&version).await.expect("it never was on the route");
    scene.prepared(&version).await;
    scene.deactivate(&version).await.expect("it is not on the route yet");
    scene.deployed(&version).await;
    for _ in 0..2 {
        scene.deactivate(&version).await.expect("it is taken off the route");
        if scene.driver.gateway_access().is_some() {
            assert_eq!(scene.endpoint(&version).await, None);
        }
    }
    // Its workload stays, so that it can be activated once more.
    scene.deployed(&version).await;
    if scene.driver.gateway_access().is_some() {
        assert_eq!(scene.starts(&version).await, ["1"]);
    }
}

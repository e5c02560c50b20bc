//! Taking route and execution away (spec/contracts 4.3, stopRevision; seed: Stop).

use occ_core::driver::Stop;

use super::scene::Scene;

pub(super) async fn stop_may_be_repeated(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.deployed(&version).await;
    scene.stopped(&version).await;
    for _ in 0..3 {
        assert_eq!(scene.stop(&version.target).await, Ok(Stop::Stopped), "it was stopped");
    }
    scene.restart().await;
    assert_eq!(scene.stop(&version.target).await, Ok(Stop::Stopped), "after a restart");
}

pub(super) async fn a_version_that_was_never_prepared_can_be_stopped(scene: &mut Scene) {
    scene.stopped(&scene.version(1)).await;
    scene.provide().await;
    scene.stopped(&scene.version(2)).await;
}

pub(super) async fn stop_takes_the_route_away(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.deployed(&version).await;
    let endpoint = scene.endpoint(&version).await.expect("it is on the route");
    // The route goes first: also while it drains.
    let _ = scene.stop(&version.target).await;
    assert_eq!(scene.endpoint(&version).await, None);
    scene.stopped(&version).await;
    let answer = scene.subject.get(&endpoint, "/version").await;
    assert_eq!(answer, None, "nothing listens any more");
}

pub(super) async fn stop_during_prepare_leaves_nothing_running(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    let _ = scene.prepare(&version).await;
    scene.stopped(&version).await;
    assert_eq!(scene.stop(&version.target).await, Ok(Stop::Stopped));
    if scene.driver.gateway_access().is_some() {
        assert_eq!(scene.endpoint(&version).await, None);
    }
    // Deployment is the resume operation.
    let second = scene.version(2);
    scene.deployed(&second).await;
    if scene.driver.gateway_access().is_some() {
        assert_eq!(scene.serving(&second).await.as_deref(), Some("2"));
    }
}

pub(super) async fn stop_keeps_workspace_and_credentials(scene: &mut Scene) {
    scene.provide().await;
    let first = scene.version(1);
    scene.deployed(&first).await;
    let before = password(scene).await;
    scene.stopped(&first).await;
    assert_eq!(password(scene).await, before);
    let second = scene.version(2);
    scene.deployed(&second).await;
    assert_eq!(scene.starts(&second).await, ["1", "2"], "the workspace is the same one");
    assert_eq!(password(scene).await, before);
}

/// A digest, so that no failure prints the password.
async fn password(scene: &Scene) -> Option<String> {
    let access = scene.driver.gateway_access().expect("the rule needs gateway_access");
    let password = access.password(&Scene::cx(), &scene.agent).await;
    let password = password.expect("the password can be looked up");
    password.map(|password| occ_core::digest::hex(password.expose()))
}

pub(super) async fn a_new_driver_stops_what_an_old_one_started(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.deployed(&version).await;
    let endpoint = scene.endpoint(&version).await.expect("it is on the route");
    scene.restart().await;
    scene.stopped(&version).await;
    assert_eq!(scene.subject.get(&endpoint, "/version").await, None);
}

pub(super) async fn stopping_an_agent_leaves_its_siblings(scene: &mut Scene) {
    scene.provide().await;
    let sibling = scene.sibling();
    sibling.provide().await;
    let (mine, theirs) = (scene.version(1), sibling.version(1));
    scene.deployed(&mine).await;
    sibling.deployed(&theirs).await;
    assert_ne!(scene.endpoint(&mine).await, sibling.endpoint(&theirs).await);
    scene.stopped(&mine).await;
    assert_eq!(sibling.serving(&theirs).await.as_deref(), Some("1"));
    scene.deleted().await;
    assert_eq!(sibling.serving(&theirs).await.as_deref(), Some("1"));
    assert_eq!(sibling.starts(&theirs).await, ["1"]);
}

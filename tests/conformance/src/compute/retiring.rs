//! Removing what a version used, and an Agent whole (spec/contracts 4.3, retireRevision; seed: Deletion).

use occ_core::driver::Stop;

use super::scene::Scene;

pub(super) async fn retire_may_be_repeated(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.deployed(&version).await;
    scene.retired(&version).await;
    for _ in 0..3 {
        assert_eq!(scene.retire(&version.target).await, Ok(Stop::Stopped), "it was retired");
    }
    scene.restart().await;
    assert_eq!(
        scene.retire(&version.target).await,
        Ok(Stop::Stopped),
        "after a restart"
    );
    assert_eq!(
        scene.stop(&version.target).await,
        Ok(Stop::Stopped),
        "nothing of it runs"
    );
}

pub(super) async fn a_version_that_was_never_prepared_can_be_retired(scene: &mut Scene) {
    scene.retired(&scene.version(1)).await;
    scene.provide().await;
    scene.retired(&scene.version(2)).await;
}

pub(super) async fn retiring_a_predecessor_leaves_its_successor_serving(scene: &mut Scene) {
    scene.provide().await;
    let (first, second) = (scene.version(1), scene.version(2));
    scene.deployed(&first).await;
    scene.deployed(&second).await;
    let route = scene.endpoint(&second).await;
    for _ in 0..2 {
        scene.retired(&first).await;
        assert_eq!(scene.endpoint(&second).await, route);
        assert_eq!(scene.serving(&second).await.as_deref(), Some("2"));
    }
    let starts = scene.starts(&second).await;
    assert_eq!(
        starts.iter().filter(|start| *start == "2").count(),
        1,
        "it was not restarted"
    );
    scene.deployed(&second).await;
}

pub(super) async fn an_agent_that_never_ran_can_be_deleted(scene: &mut Scene) {
    scene.provide_namespace().await;
    for _ in 0..2 {
        scene.deleted().await;
    }
}

pub(super) async fn a_deleted_agent_leaves_nothing(scene: &mut Scene) {
    scene.provide_namespace().await;
    let before = names(scene).await;
    scene.provide().await;
    scene.deployed(&scene.version(1)).await;
    let second = scene.version(2);
    scene.deployed(&second).await;
    scene.stopped(&second).await;
    assert_ne!(names(scene).await, before, "a stop keeps what is the Agent's");
    for _ in 0..2 {
        scene.deleted().await;
        assert_eq!(names(scene).await, before);
    }
    scene.restart().await;
    scene.deleted().await;
    scene.remove_namespace().await;
    scene.remove_namespace().await;
}

async fn names(scene: &Scene) -> Vec<String> {
    scene.items().await.into_iter().map(|(name, _)| name).collect()
}

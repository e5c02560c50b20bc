//! What a Compute provides for a Namespace (spec/contracts 4.2).

use super::scene::Scene;

pub(super) async fn a_namespace_is_provided_and_found_again(scene: &mut Scene) {
    for _ in 0..3 {
        scene.provide_namespace().await;
    }
    scene.restart().await;
    scene.provide_namespace().await;
    // An Agent's things in it survive that it is provided again.
    scene.provide().await;
    let version = scene.version(1);
    scene.deployed(&version).await;
    scene.provide_namespace().await;
    scene.deployed(&version).await;
}

pub(super) async fn a_namespace_is_removed_and_stays_removed(scene: &mut Scene) {
    scene.provide().await;
    scene.deployed(&scene.version(1)).await;
    scene.cleared().await;
    for _ in 0..3 {
        scene.remove_namespace().await;
    }
    scene.restart().await;
    scene.remove_namespace().await;
}

pub(super) async fn a_namespace_that_never_was_is_removed(scene: &mut Scene) {
    scene.remove_namespace().await;
}

pub(super) async fn removing_a_namespace_leaves_the_others(scene: &mut Scene) {
    scene.provide().await;
    let mine = scene.items().await;
    let stranger = scene.stranger();
    stranger.provide_namespace().await;
    stranger.remove_namespace().await;
    assert_eq!(scene.items().await, mine);
    scene.deployed(&scene.version(1)).await;
}

//! Where no value may be (spec/contracts 9.3).

use super::scene::{Scene, identity, value};
use crate::{
    canary::{BINDING, CREDENTIAL, OTHER, spotless, spotless_bytes},
    records::context,
};

pub(super) async fn no_value_is_in_a_reference_or_a_record(scene: &Scene) {
    let cx = context(&scene.records);
    let created = scene.driver.create(&cx, &scene.secret, &value(CREDENTIAL)).await;
    let at = created.expect("a new Secret is stored");
    let staged = cx.state().take_staged();
    spotless("what was staged", &format!("{staged:?} {at:?}"));
    scene.records.commit(staged).expect("nobody else writes");
    scene.update(&scene.secret, &at, OTHER).await.expect("it is its own");
    let moved = scene.resolve(&scene.secret, &at).await;
    spotless("a reference", &format!("{moved:?}"));
    for (_, key, bytes) in scene.records.dump() {
        spotless_bytes("a record", &bytes);
        spotless("a record's key", &key);
    }
}

pub(super) async fn no_error_holds_a_value(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    let stranger = identity(occ_core::id::NamespaceId::random());
    // Each of these fails in some way, and the scene searches what it fails with.
    let _ = scene.try_create(&scene.secret, OTHER).await;
    let _ = scene.update(&stranger, &at, OTHER).await;
    let _ = scene.value(&stranger, &at).await;
    let _ = scene.try_create(&stranger, &OTHER.repeat(10_000)).await;
    let _ = scene.try_create(&identity(scene.secret.namespace_id), "").await;
    scene.delete(&scene.secret, &at).await.expect("it is its own");
    let _ = scene.update(&scene.secret, &at, BINDING).await;
    let _ = scene.value(&scene.secret, &at).await;
    let shown = format!("{:?}", scene.driver.identity());
    spotless("the identity", &shown);
}

//! Objects of others (spec/contracts 3: a collision fails, and nothing is adopted).

use std::fmt::Debug;

use occ_core::driver::{EffectError, EffectResult};

use super::scene::{Scene, watched};

fn refused<T: Debug>(what: &str, answer: EffectResult<T>) {
    match watched(what, answer) {
        Err(EffectError::Ownership) => {}
        other => panic!("{what} of a foreign object is an ownership error, and was {other:?}"),
    }
}

pub(super) async fn a_foreign_object_is_refused_and_not_touched(scene: &mut Scene) {
    scene.provide_namespace().await;
    let foreign = scene.subject.foreign().expect("the rule needs foreign objects");
    foreign.plant(&scene.agent).await;
    scene.abandon();
    let before = scene.items().await;
    let version = scene.version(1);
    let cx = Scene::cx();
    for _ in 0..2 {
        refused("prepare_revision", scene.prepare(&version).await);
        refused("activate_revision", scene.activate(&version).await);
        refused("stop_revision", scene.stop(&version.target).await);
        refused("retire_revision", scene.retire(&version.target).await);
        refused("delete_agent", scene.delete_agent(&scene.agent).await);
        if let Some(credentials) = scene.driver.runtime_credentials() {
            refused("provision", credentials.provision(&cx, &scene.agent).await);
            refused("delete the credentials", credentials.delete(&cx, &scene.agent).await);
        }
        if let Some(access) = scene.driver.gateway_access() {
            refused("endpoint", access.endpoint(&cx, &version.target).await);
        }
    }
    assert_eq!(scene.items().await, before, "it was touched");
}

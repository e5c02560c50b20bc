//! Generated transport credentials (spec/contracts 4.5).

use occ_core::driver::RuntimeCredentials;

use super::scene::{Scene, watched};

fn credentials(scene: &Scene) -> &dyn RuntimeCredentials {
    scene
        .driver
        .runtime_credentials()
        .expect("the rule needs runtime_credentials")
}

async fn exist(scene: &Scene) -> bool {
    let exist = credentials(scene).exist(&Scene::cx(), &scene.agent).await;
    watched("exist", exist).expect("a look")
}

/// A digest, so that no failure prints the password. `None` when the driver shows none.
async fn password(scene: &Scene) -> Option<String> {
    let access = scene.driver.gateway_access()?;
    let password = access.password(&Scene::cx(), &scene.agent).await.expect("a look");
    password.map(|password| occ_core::digest::hex(password.expose()))
}

pub(super) async fn no_credentials_is_an_answer(scene: &mut Scene) {
    scene.provide_namespace().await;
    assert!(!exist(scene).await);
    assert_eq!(password(scene).await, None);
    assert!(!exist(scene).await, "a look makes none");
}

pub(super) async fn credentials_are_made_once_and_never_overwritten(scene: &mut Scene) {
    scene.provide().await;
    assert!(exist(scene).await);
    let first = password(scene).await;
    assert_eq!(first.is_some(), scene.driver.gateway_access().is_some());
    for _ in 0..2 {
        scene.provide().await;
        scene.restart().await;
        assert!(exist(scene).await);
        assert_eq!(password(scene).await, first, "they were overwritten");
    }
}

pub(super) async fn credentials_are_deleted_and_stay_deleted(scene: &mut Scene) {
    scene.provide().await;
    let before = password(scene).await;
    for _ in 0..2 {
        let deleted = credentials(scene).delete(&Scene::cx(), &scene.agent).await;
        watched("delete", deleted).expect("absent is well");
        assert!(!exist(scene).await);
        assert_eq!(password(scene).await, None);
    }
    scene.provide().await;
    assert!(exist(scene).await);
    if before.is_some() {
        assert_ne!(
            password(scene).await,
            before,
            "what is made anew is not what was deleted"
        );
    }
}

pub(super) async fn a_password_is_the_agents_own(scene: &mut Scene) {
    scene.provide().await;
    let sibling = scene.sibling();
    sibling.provide().await;
    assert_ne!(password(scene).await, password(&sibling).await);
    let version = scene.version(1);
    scene.deployed(&version).await;
    let answer = scene.ask(&version, "/digest/PASSWORD").await.expect("it arrived");
    assert_eq!(answer["sha256"].as_str(), password(scene).await.as_deref());
    // Also with its own gateway gone, the other Agent's is the other's.
    sibling.deleted().await;
    assert!(exist(scene).await);
    assert!(!exist(&sibling).await);
}

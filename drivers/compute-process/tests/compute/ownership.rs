//! What is not this driver's is not touched.

use std::{collections::BTreeMap, fs, path::Path};

use occ_core::driver::EffectError;
use serde_json::{Value, json};

use crate::scene::{Scene, build};

/// Every file below with its content, and every directory.
fn content(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            all.insert(name, Vec::new());
            all.extend(content(&path));
        } else {
            all.insert(name, fs::read(&path).unwrap());
        }
    }
    all
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut marker: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut marker);
    fs::write(path, marker.to_string()).unwrap();
}

async fn assert_untouched(scene: &Scene) {
    let before = content(&scene.data());
    let revision = scene.revision(1);
    let (cx, driver) = (&scene.cx, &scene.driver);
    assert_eq!(scene.prepare(&revision).await, Err(EffectError::Ownership));
    assert_eq!(scene.activate(&revision).await, Err(EffectError::Ownership));
    assert_eq!(
        driver.stop_revision(cx, &revision.target).await,
        Err(EffectError::Ownership)
    );
    assert_eq!(
        driver.retire_revision(cx, &revision.target).await,
        Err(EffectError::Ownership)
    );
    assert_eq!(driver.delete_agent(cx, &scene.agent).await, Err(EffectError::Ownership));
    let credentials = driver.runtime_credentials().unwrap();
    assert_eq!(credentials.exist(cx, &scene.agent).await, Err(EffectError::Ownership));
    assert_eq!(
        credentials.provision(cx, &scene.agent).await,
        Err(EffectError::Ownership)
    );
    assert_eq!(credentials.delete(cx, &scene.agent).await, Err(EffectError::Ownership));
    let access = driver.gateway_access().unwrap();
    assert_eq!(access.endpoint(cx, &revision.target).await, Err(EffectError::Ownership));
    assert!(matches!(
        access.password(cx, &scene.agent).await,
        Err(EffectError::Ownership)
    ));
    assert_eq!(content(&scene.data()), before);
}

#[tokio::test]
async fn an_agent_directory_with_other_marks_is_foreign() {
    let scene = Scene::new().provided().await;
    let marker = scene.agent_dir().join("agent.json");
    let own = fs::read(&marker).unwrap();
    edit(&marker, |marker| marker["servicePrincipalId"] = json!("somebody-else"));
    assert_untouched(&scene).await;
    fs::write(&marker, &own).unwrap();
    edit(&marker, |marker| marker["owner"]["driverId"] = json!("process-2"));
    assert_untouched(&scene).await;
    fs::write(&marker, "not a marker").unwrap();
    assert_untouched(&scene).await;
    fs::remove_file(&marker).unwrap();
    assert_untouched(&scene).await;
}

#[tokio::test]
async fn a_namespace_directory_with_other_marks_is_foreign() {
    let scene = Scene::new().provided().await;
    edit(&scene.namespace_dir().join("namespace.json"), |marker| {
        marker["owner"]["implementation"] = json!("other/one");
    });
    assert_untouched(&scene).await;
    let before = content(&scene.data());
    assert_eq!(
        scene.driver.ensure_namespace(&scene.cx, &scene.namespace).await,
        Err(EffectError::Ownership)
    );
    assert_eq!(
        scene.driver.delete_namespace(&scene.cx, &scene.namespace).await,
        Err(EffectError::Ownership)
    );
    assert_eq!(content(&scene.data()), before);
}

#[tokio::test]
async fn a_link_in_the_agents_place_is_not_followed() {
    let scene = Scene::new();
    scene
        .driver
        .ensure_namespace(&scene.cx, &scene.namespace)
        .await
        .unwrap();
    let elsewhere = scene.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, scene.agent_dir()).unwrap();
    assert_untouched(&scene).await;
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[tokio::test]
async fn the_same_version_with_another_content_is_foreign() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    let mut other = revision.clone();
    other.revision.digest = "f".repeat(64);
    assert_eq!(scene.prepare(&other).await, Err(EffectError::Ownership));
    let same_number = scene.revision(1);
    assert_eq!(scene.prepare(&same_number).await, Err(EffectError::Ownership));
    assert!(!scene.revision_dir(&same_number).exists());
    assert_eq!(scene.serving().await.as_deref(), Some("1"));
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn two_instances_on_one_data_directory_keep_apart() {
    let scene = Scene::new().provided().await;
    let twin = build(scene.root(), &scene.data().join("twin"), json!({}));
    let exist = twin.runtime_credentials().unwrap().exist(&scene.cx, &scene.agent).await;
    assert_eq!(exist, Ok(false));
}

#[tokio::test]
async fn an_existing_namespace_is_not_adopted() {
    let scene = Scene::new();
    let mut namespace = scene.namespace.clone();
    namespace.existing_namespace = Some("theirs".to_owned());
    assert!(matches!(
        scene.driver.ensure_namespace(&scene.cx, &namespace).await,
        Err(EffectError::Terminal(_))
    ));
    assert!(!scene.data().exists());
    assert!(scene.driver.namespace_adoption().is_none());
}

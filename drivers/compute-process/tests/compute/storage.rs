//! A machine that does not give what a version needs.

use std::{fs, path::Path, process::Command};

use occ_core::{
    driver::{EffectError, EffectResult, Readiness},
    reason::{PreparationReason, PreparationStage, RuntimeCode},
};
use serde_json::json;

use crate::scene::{Scene, build};

fn reason(result: EffectResult<Readiness>) -> (PreparationStage, PreparationReason) {
    match result {
        Err(EffectError::Held(failure, Some(preparation))) => {
            assert_eq!(
                (failure.code, failure.check.as_str()),
                (RuntimeCode::Unavailable, "startup")
            );
            assert_eq!(preparation.component.unwrap().as_str(), "gateway");
            (preparation.stage, preparation.reason)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_tool_without_a_path_is_named_by_its_reason() {
    let mut scene = Scene::new().provided().await;
    scene.restart_with(json!({ "tools": {} }));
    let revision = scene.revision(1);
    let found = reason(scene.prepare(&revision).await);
    assert_eq!(found, (PreparationStage::Layout, PreparationReason::ToolNotConfigured));
    assert!(scene.processes("").is_empty());
}

#[tokio::test]
async fn a_tool_that_is_missing_is_held_and_a_later_version_goes() {
    let mut scene = Scene::new().provided().await;
    scene.restart_with(json!({ "tools": { "python": "/no/python", "component": "/no/component" } }));
    let revision = scene.revision(1);
    match scene.prepared(&revision).await {
        Err(EffectError::Held(_, Some(preparation))) => {
            assert_eq!(preparation.reason, PreparationReason::ExecutableMissing);
        }
        other => panic!("{other:?}"),
    }
    scene.restart();
    let next = scene.revision(2);
    scene.deployed(&next).await.unwrap();
    scene.stopped(&next).await;
}

#[tokio::test]
async fn a_missing_supervisor_is_found_before_and_during_a_deployment() {
    let mut scene = Scene::new().provided().await;
    for supervisor in [
        scene.root().join("absent"),
        scene.root().join("component.py"),
        scene.root().to_owned(),
    ] {
        scene.restart_with(json!({ "supervisor": supervisor }));
        assert!(
            matches!(scene.driver.preflight(&scene.cx).await, Err(EffectError::Fault(_))),
            "{supervisor:?}"
        );
        let revision = scene.revision(1);
        let found = reason(scene.prepare(&revision).await);
        assert_eq!(found, (PreparationStage::Launch, PreparationReason::SupervisorMissing));
        scene.retired(&revision).await;
    }
}

#[tokio::test]
async fn no_port_is_left_in_the_range() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let scene = Scene::with(json!({ "portRange": { "start": port, "end": port } }))
        .provided()
        .await;
    let revision = scene.revision(1);
    let found = reason(scene.prepare(&revision).await);
    assert_eq!(found, (PreparationStage::Layout, PreparationReason::PortUnavailable));
    drop(taken);
    scene.deployed(&revision).await.unwrap();
    assert_eq!(
        scene.endpoint(&revision).await,
        Some(format!("http://127.0.0.1:{port}"))
    );
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn a_port_that_another_program_took_is_chosen_anew() {
    let scene = Scene::new().provided().await;
    let first = scene.revision(1);
    scene.deployed(&first).await.unwrap();
    let url = scene.endpoint(&first).await.unwrap();
    scene.stopped(&first).await;
    let taken = std::net::TcpListener::bind(url.strip_prefix("http://").unwrap()).unwrap();
    let second = scene.revision(2);
    scene.deployed(&second).await.unwrap();
    let other = scene.endpoint(&second).await.unwrap();
    assert_ne!(other, url);
    assert_eq!(scene.serving().await.as_deref(), Some("2"));
    drop(taken);
    scene.stopped(&second).await;
}

#[tokio::test]
async fn a_data_directory_that_may_not_be_written_is_said_to_be_so() {
    let mut scene = Scene::new();
    // A directory of the kernel's own: nobody may make another one in it, not even root.
    let data = Path::new("/sys/kernel/occ-test");
    scene.driver = build(scene.root(), data, json!({}));
    assert!(matches!(
        scene.driver.preflight(&scene.cx).await,
        Err(EffectError::Fault(_))
    ));
    let found = reason(scene.prepare(&scene.revision(1)).await);
    assert_eq!(found, (PreparationStage::Layout, PreparationReason::StorageDenied));
    assert!(matches!(
        scene.driver.ensure_namespace(&scene.cx, &scene.namespace).await,
        Err(EffectError::Fault(_))
    ));
}

/// A small file system of its own; `None` where this user may not mount one.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        fs::create_dir(at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k,mode=0700", "occ-test"])
            .arg(at)
            .output();
        mounted.ok()?.status.success().then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_full_disk_is_said_to_be_full_and_goes_on_when_there_is_room() {
    let mut scene = Scene::new();
    let Some(_disk) = SmallDisk::mount(&scene.root().join("disk")) else {
        eprintln!("skipped: this user may not mount a file system");
        return;
    };
    let data = scene.root().join("disk/data");
    scene.driver = build(scene.root(), &data, json!({}));
    let scene = scene.provided().await;
    let ballast = scene.root().join("disk/ballast");
    let _ = fs::write(&ballast, vec![0; 1024 * 1024]);
    let revision = scene.revision(1);
    let found = reason(scene.prepare(&revision).await);
    assert_eq!(found, (PreparationStage::Layout, PreparationReason::StorageFull));
    assert!(scene.processes("").is_empty());
    fs::remove_file(&ballast).unwrap();
    scene.prepared(&revision).await.unwrap();
    scene.stopped(&revision).await;
    scene.agent_deleted().await;
}

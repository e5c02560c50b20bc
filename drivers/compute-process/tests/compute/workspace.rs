//! Initial workspace files: applied once, then forgotten.

use std::{collections::BTreeMap, fs};

use occ_core::{
    driver::EffectError,
    reason::RuntimeCode,
    resource::{WorkspaceFileName, WorkspaceFiles, WorkspaceSetup},
};
use uuid::Uuid;

use crate::scene::Scene;

const TEXT: &str = "Answer support questions. canary-workspace-text\n";

fn setup(files: bool) -> WorkspaceSetup {
    let files = files.then(|| WorkspaceFiles(BTreeMap::from([(WorkspaceFileName::Agents, TEXT.to_owned())])));
    WorkspaceSetup {
        id: Uuid::from_u128(0x1234),
        defaults_id: None,
        files,
    }
}

#[tokio::test]
async fn staged_texts_are_applied_before_the_start_and_then_forgotten() {
    let scene = Scene::new().provided().await;
    let first = scene.revision_with_setup(1, setup(true));
    scene.deployed(&first).await.unwrap();
    let file = scene.agent_dir().join("workspace/AGENTS.md");
    assert_eq!(fs::read_to_string(&file).unwrap(), TEXT);
    assert_eq!(
        fs::read_to_string(scene.agent_dir().join("workspace/SOUL.md")).unwrap(),
        "stock SOUL.md\n"
    );

    let spec = scene.revision_dir(&first).join("spec.json");
    let staged = || fs::read_to_string(&spec).unwrap().contains("canary-workspace-text");
    assert!(staged());
    let support = scene.driver.workspace_setup().unwrap();
    support
        .discard(&scene.cx, &scene.agent, Uuid::from_u128(0x9999))
        .await
        .unwrap();
    assert!(staged(), "another setup's contents are not these");
    for _ in 0..2 {
        support.discard(&scene.cx, &scene.agent, setup(true).id).await.unwrap();
        assert!(!staged());
    }

    fs::write(&file, "edited by the Agent").unwrap();
    scene.stopped(&first).await;
    let second = scene.revision_with_setup(2, setup(false));
    scene.deployed(&second).await.unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "edited by the Agent");
    scene.stopped(&second).await;
}

#[tokio::test]
async fn a_workspace_that_lost_its_setup_is_refused_beside_the_predecessor() {
    let scene = Scene::new().provided().await;
    let first = scene.revision_with_setup(1, setup(true));
    scene.deployed(&first).await.unwrap();
    fs::remove_file(scene.agent_dir().join("workspace/.oce-workspace-setup.json")).unwrap();
    let second = scene.revision_with_setup(2, setup(false));
    let Err(EffectError::Held(failure, _)) = scene.prepared(&second).await else {
        panic!("the texts are gone")
    };
    assert_eq!(failure.code, RuntimeCode::WorkspaceSetupRefused);
    assert_eq!(scene.serving().await.as_deref(), Some("1"));
    scene.stopped(&first).await;
}

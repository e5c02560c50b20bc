//! Initial workspace files: once, before anything runs, and never again (seed: Agents, "Workspace files").

use occ_core::{
    driver::RevisionContext,
    resource::{WorkspaceFileName, WorkspaceFiles, WorkspaceSetup},
};
use uuid::Uuid;

use super::scene::{Scene, watched};

const TEXT: &str = "Answer support questions.\n  Keep this space.\n";

fn files() -> WorkspaceFiles {
    WorkspaceFiles(
        [
            (WorkspaceFileName::Agents, TEXT.to_owned()),
            (WorkspaceFileName::User, String::new()),
        ]
        .into(),
    )
}

fn version(scene: &Scene, number: u64, setup: &WorkspaceSetup) -> RevisionContext {
    let mut wish = scene.wish(number);
    wish.workspace = true;
    let mut version = scene.version_as(number, &wish);
    version.workspace_setup = Some(setup.clone());
    version
}

async fn found(scene: &Scene, version: &RevisionContext, name: &str) -> Option<String> {
    let answer = scene.ask(version, &format!("/found/{name}")).await?;
    Some(answer["content"].as_str().expect("a text").to_owned())
}

async fn discard(scene: &Scene, id: Uuid) {
    let support = scene.driver.workspace_setup().expect("the rule needs workspace_setup");
    let discarded = support.discard(&Scene::cx(), &scene.agent, id).await;
    watched("discard", discarded).expect("absent is well");
}

pub(super) async fn initial_files_are_there_before_the_start_and_never_replayed(scene: &mut Scene) {
    scene.provide().await;
    let staged = WorkspaceSetup {
        id: Uuid::new_v4(),
        defaults_id: None,
        files: Some(files()),
    };
    let first = version(scene, 1, &staged);
    scene.deployed(&first).await;
    assert_eq!(found(scene, &first, "AGENTS.md").await.as_deref(), Some(TEXT));
    assert_eq!(
        found(scene, &first, "USER.md").await.as_deref(),
        Some(""),
        "an empty text is an empty file"
    );
    let stock = found(scene, &first, "SOUL.md")
        .await
        .expect("an omitted file is the native one");
    scene.stopped(&first).await;

    // The engine was stopped before it recorded that the files were applied.
    let second = version(scene, 2, &staged);
    scene.deployed(&second).await;
    let edited = format!("{TEXT}edited by 1\n");
    assert_eq!(
        found(scene, &second, "AGENTS.md").await,
        Some(edited.clone()),
        "it was replayed"
    );
    assert_eq!(
        found(scene, &second, "SOUL.md").await,
        Some(format!("{stock}edited by 1\n"))
    );
    discard(scene, staged.id).await;
    scene.stopped(&second).await;

    let completed = WorkspaceSetup { files: None, ..staged };
    let third = version(scene, 3, &completed);
    scene.deployed(&third).await;
    assert_eq!(
        found(scene, &third, "AGENTS.md").await,
        Some(format!("{edited}edited by 2\n"))
    );
}

pub(super) async fn a_setup_is_discarded_and_may_be_discarded_again(scene: &mut Scene) {
    let id = Uuid::new_v4();
    scene.provide().await;
    discard(scene, id).await;
    scene.deployed(&scene.version(1)).await;
    for _ in 0..2 {
        discard(scene, id).await;
    }
}

use std::{fs, os::unix::fs::symlink};

use occ_core::{
    reason::{Pending, PreparationReason, PreparationStage, RuntimeCode},
    resource::{WorkspaceFileName, WorkspaceFiles, WorkspaceSetup},
};
use occ_runtime::{
    identity::Signal,
    status::{State, Status},
};

use crate::workload::{Workload, eventually};

const MARKER: &str = "workspace/.oce-workspace-setup.json";

fn set_up(workload: &mut Workload, files: &[(WorkspaceFileName, &str)]) {
    let files = files.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
    workload.spec.workspace.as_mut().unwrap().setup = Some(WorkspaceSetup {
        id: "123e4567-e89b-42d3-a456-426614174000".parse().unwrap(),
        defaults_id: None,
        files: Some(WorkspaceFiles(files)),
    });
}

fn with_files(flags: &[&str], files: &[(WorkspaceFileName, &str)]) -> Workload {
    let mut workload = Workload::gateway(&[]).with_workspace(flags);
    set_up(&mut workload, files);
    workload
}

fn complete(workload: &mut Workload) {
    workload.spec.workspace.as_mut().unwrap().setup.as_mut().unwrap().files = None;
}

fn stop(workload: &Workload, supervisor: &occ_runtime::identity::ProcessIdentity) {
    supervisor.signal(Signal::Terminate).unwrap();
    eventually("the end", || {
        (!supervisor.is_alive() && workload.tree_is_gone()).then_some(())
    });
}

#[track_caller]
fn assert_refused(workload: &Workload) {
    workload.launch();
    let State::Held { failure, preparation } = workload.until_held().state else {
        unreachable!()
    };
    assert_eq!(failure.check.as_str(), "workspace-setup");
    assert_eq!(failure.code, RuntimeCode::WorkspaceSetupRefused);
    let preparation = preparation.unwrap();
    assert_eq!(preparation.stage, PreparationStage::WorkspaceSetup);
    assert_eq!(preparation.reason, PreparationReason::SetupConflict);
    assert!(workload.recorded("gateway").is_empty());
}

#[test]
fn submitted_files_replace_stock_ones_once_and_later_edits_stay() {
    let mut workload = with_files(
        &[],
        &[(WorkspaceFileName::Soul, "my soul\n"), (WorkspaceFileName::User, "")],
    );
    let first = workload.launch();
    workload.until_ready();
    assert_eq!(workload.text("workspace/SOUL.md"), "my soul\n");
    assert_eq!(fs::read(workload.path("workspace/USER.md")).unwrap(), b"");
    assert_eq!(workload.text("workspace/AGENTS.md"), "stock AGENTS\n");
    let marker: serde_json::Value = serde_json::from_str(&workload.text(MARKER)).unwrap();
    let workspace = workload.spec.workspace.as_ref().unwrap();
    assert_eq!(
        marker,
        serde_json::json!({
            "id": "123e4567-e89b-42d3-a456-426614174000",
            "namespaceId": workspace.namespace_id,
            "agentId": workspace.agent_id,
        })
    );
    assert_eq!(workload.recorded("setup").len(), 2);

    fs::write(workload.path("workspace/SOUL.md"), "edited later").unwrap();
    fs::remove_file(workload.path("workspace/USER.md")).unwrap();
    stop(&workload, &first);
    let second = workload.launch();
    workload.until("ready", |status| status.supervisor == second && status.ready());
    stop(&workload, &second);
    complete(&mut workload);
    let third = workload.launch();
    workload.until("ready", |status| status.supervisor == third && status.ready());
    assert_eq!(workload.text("workspace/SOUL.md"), "edited later");
    assert!(!workload.path("workspace/USER.md").exists());
    assert_eq!(
        workload.recorded("setup").len(),
        2,
        "a marked workspace is not set up again"
    );
}

#[test]
fn a_kill_between_files_and_marker_is_finished_by_the_next_start() {
    let workload = with_files(&["block=2"], &[(WorkspaceFileName::Soul, "my soul\n")]);
    let first = workload.launch();
    eventually("the second native run", || {
        (workload.recorded("setup").len() == 2).then_some(())
    });
    assert_eq!(workload.text("workspace/SOUL.md"), "my soul\n");
    assert!(!workload.path(MARKER).exists());
    first.signal(Signal::Kill).unwrap();
    eventually("no process", || {
        workload.recorded("setup").iter().all(|p| !p.is_alive()).then_some(())
    });
    fs::write(workload.path("workspace/.oce-workspace-setup.tmp"), "half a fi").unwrap();
    let second = workload.launch();
    workload.until("ready", |status| status.supervisor == second && status.ready());
    assert_eq!(workload.text("workspace/SOUL.md"), "my soul\n");
    assert!(workload.path(MARKER).exists());
    assert!(!workload.path("workspace/.oce-workspace-setup.tmp").exists());
}

#[test]
fn another_text_than_stock_and_submitted_is_refused_and_left_alone() {
    let workload = with_files(&[], &[(WorkspaceFileName::Soul, "my soul\n")]);
    fs::create_dir(workload.path("workspace")).unwrap();
    fs::write(workload.path("workspace/SOUL.md"), "somebody's own").unwrap();
    assert_refused(&workload);
    assert_eq!(workload.text("workspace/SOUL.md"), "somebody's own");
    assert!(
        workload.recorded("setup").is_empty(),
        "what will be refused is refused before the native command runs"
    );
    assert!(!workload.path(MARKER).exists());
}

#[test]
fn stock_and_submitted_texts_that_stand_already_are_accepted() {
    let workload = with_files(
        &[],
        &[
            (WorkspaceFileName::Soul, "my soul\n"),
            (WorkspaceFileName::User, "me\n"),
        ],
    );
    fs::create_dir(workload.path("workspace")).unwrap();
    fs::write(workload.path("workspace/SOUL.md"), "stock SOUL\n").unwrap();
    fs::write(workload.path("workspace/USER.md"), "me\n").unwrap();
    fs::write(
        workload.path("workspace/AGENTS.md"),
        "an own text under a name that was not submitted",
    )
    .unwrap();
    workload.launch();
    workload.until_ready();
    assert_eq!(workload.text("workspace/SOUL.md"), "my soul\n");
    assert_eq!(workload.text("workspace/USER.md"), "me\n");
    assert!(workload.text("workspace/AGENTS.md").starts_with("an own text"));
}

#[test]
fn a_text_that_the_native_command_has_just_made_is_stock_whatever_the_templates_say() {
    let workload = with_files(&["own-stock=1"], &[(WorkspaceFileName::Soul, "my soul\n")]);
    workload.launch();
    workload.until_ready();
    assert_eq!(workload.text("workspace/SOUL.md"), "my soul\n");
    assert_eq!(workload.text("workspace/USER.md"), "own stock USER\n");
}

#[test]
fn links_further_names_and_other_kinds_of_files_are_refused() {
    for kind in [
        "symlink",
        "dangling",
        "hardlink",
        "directory",
        "marker-symlink",
        "workspace-symlink",
    ] {
        let workload = with_files(&[], &[(WorkspaceFileName::Soul, "my soul\n")]);
        let outside = workload.path("outside");
        fs::write(&outside, "stock SOUL\n").unwrap();
        let workspace = workload.path("workspace");
        if kind == "workspace-symlink" {
            fs::create_dir(workload.path("elsewhere")).unwrap();
            symlink(workload.path("elsewhere"), &workspace).unwrap();
        } else {
            fs::create_dir(&workspace).unwrap();
        }
        let soul = workspace.join("SOUL.md");
        match kind {
            "symlink" => symlink(&outside, soul).unwrap(),
            "dangling" => symlink(workload.path("nowhere"), soul).unwrap(),
            "hardlink" => fs::hard_link(&outside, soul).unwrap(),
            "directory" => fs::create_dir(soul).unwrap(),
            "marker-symlink" => symlink(&outside, workload.path(MARKER)).unwrap(),
            _ => {}
        }
        assert_refused(&workload);
        assert_eq!(fs::read_to_string(&outside).unwrap(), "stock SOUL\n", "{kind}");
        assert!(!workload.path("nowhere").exists(), "{kind}");
    }
}

#[test]
fn a_marker_of_another_setup_or_a_completed_one_without_marker_is_refused() {
    let other = with_files(&[], &[(WorkspaceFileName::Soul, "my soul\n")]);
    fs::create_dir(other.path("workspace")).unwrap();
    fs::write(other.path(MARKER), "{\"id\":\"another\"}").unwrap();
    assert_refused(&other);

    let mut lost = with_files(&[], &[(WorkspaceFileName::Soul, "my soul\n")]);
    complete(&mut lost);
    assert_refused(&lost);
    assert!(!lost.path("workspace/SOUL.md").exists(), "a lost text is not made up");
}

#[test]
fn other_defaults_than_the_caller_saw_are_refused() {
    let mut workload = with_files(&[], &[(WorkspaceFileName::Soul, "my soul\n")]);
    let list = r#"[["AGENTS.md","stock AGENTS\n"],["SOUL.md","stock SOUL\n"],["IDENTITY.md","stock IDENTITY\n"],["USER.md","stock USER\n"]]"#;
    let right = occ_core::digest::hex(list.as_bytes());
    let setup = |workload: &mut Workload, id: &str| {
        workload
            .spec
            .workspace
            .as_mut()
            .unwrap()
            .setup
            .as_mut()
            .unwrap()
            .defaults_id = Some(id.to_owned());
    };
    setup(&mut workload, &"0".repeat(64));
    assert_refused(&workload);
    let mut workload = with_files(&[], &[(WorkspaceFileName::Soul, "my soul\n")]);
    setup(&mut workload, &right);
    workload.launch();
    workload.until_ready();
    assert!(workload.text(MARKER).contains(&right));
}

#[test]
fn a_failed_native_command_is_repeated_and_said_to_be_so() {
    let workload = with_files(&["fail=2"], &[(WorkspaceFileName::Soul, "my soul\n")]);
    workload.launch();
    let retrying = |status: &Status| status.pending() == Some(Pending::WorkspaceSetupRetrying);
    workload.until("retrying", retrying);
    workload.until_ready();
    assert_eq!(workload.text("workspace/SOUL.md"), "my soul\n");
    assert_eq!(workload.recorded("setup").len(), 4);
}

#[test]
fn a_native_command_that_keeps_failing_is_held_with_its_status() {
    let workload = with_files(&["fail=99"], &[(WorkspaceFileName::Soul, "my soul\n")]);
    workload.launch();
    let State::Held { failure, preparation } = workload.until_held().state else {
        unreachable!()
    };
    assert_eq!(
        (failure.check.as_str(), failure.code),
        ("workspace-setup", RuntimeCode::Unavailable)
    );
    let preparation = preparation.unwrap();
    assert_eq!(preparation.reason, PreparationReason::SetupFailed);
    assert_eq!(preparation.exit_status, Some(4));
    assert_eq!(workload.recorded("setup").len(), 5);
}

#[test]
fn without_initial_files_an_empty_workspace_gets_its_stock_ones_and_another_one_is_left_alone() {
    let workload = Workload::gateway(&[]).with_workspace(&[]);
    let first = workload.launch();
    workload.until_ready();
    assert_eq!(workload.text("workspace/SOUL.md"), "stock SOUL\n");
    assert!(!workload.path(MARKER).exists());
    fs::remove_file(workload.path("workspace/SOUL.md")).unwrap();
    stop(&workload, &first);
    let second = workload.launch();
    workload.until("ready", |status| status.supervisor == second && status.ready());
    assert!(!workload.path("workspace/SOUL.md").exists());
    assert_eq!(workload.recorded("setup").len(), 1);
}

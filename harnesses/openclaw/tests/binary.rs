//! What is planned, against the real `OpenClaw`: where `OCC_NODE` and `OCC_OPENCLAW` say it is.

mod rig;

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use occ_core::{
    digest,
    driver::Listen,
    plan::{Component, Directory, EnvValue, Layout, PlannedFile},
    resource::WorkspaceFileName,
};
use rig::{harness, layout, plan, snapshot, usual, with};
use serde_json::json;
use tempfile::TempDir;

struct Binary {
    node: String,
    openclaw: String,
}

/// The tools, or a word that they are not there.
fn binary() -> Option<Binary> {
    let tool = |name: &str| std::env::var(name).ok().filter(|path| Path::new(path).is_file());
    let found = tool("OCC_NODE")
        .zip(tool("OCC_OPENCLAW"))
        .map(|(node, openclaw)| Binary { node, openclaw });
    if found.is_none() {
        eprintln!("skipped: OCC_NODE and OCC_OPENCLAW name no OpenClaw (see scripts/runtime.sh)");
    }
    found
}

fn place(files: &[PlannedFile], directory: Directory, layout: &Layout) -> Vec<String> {
    let root = Path::new(&layout.directories[&directory]);
    let mut placed = Vec::new();
    for file in files {
        let path = root.join(&file.name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, file.content.resolve(layout).expect("resolved")).expect("written");
        placed.push(path.display().to_string());
    }
    placed
}

/// A component's environment with a stand-in for each secret.
fn environment(planned: &std::collections::BTreeMap<String, EnvValue>, layout: &Layout) -> Vec<(String, String)> {
    let filled = |value: &EnvValue| match value {
        EnvValue::Text(text) => text.resolve(layout).expect("resolved"),
        EnvValue::Secret(_) => "stand-in".to_owned(),
    };
    planned
        .iter()
        .map(|(name, value)| (name.clone(), filled(value)))
        .collect()
}

/// Runs `openclaw ARGUMENTS` in the environment of a component's check or of the component itself; its whole output.
fn run(binary: &Binary, environment: Vec<(String, String)>, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(&binary.node)
        .arg(&binary.openclaw)
        .args(arguments)
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn component(value: serde_json::Value) -> Component {
    plan(&snapshot(value, &[]), Listen::Loopback)
        .expect("a plan")
        .components
        .remove(0)
}

fn directories(root: &TempDir, binary: &Binary) -> Layout {
    let layout = layout(root.path().to_str().expect("UTF-8"), &binary.node, &binary.openclaw);
    layout
        .directories
        .values()
        .for_each(|path| fs::create_dir_all(path).expect("a directory"));
    layout
}

#[test]
fn the_real_binary_accepts_the_planned_documents() {
    let Some(binary) = binary() else { return };
    // Everything that a document may say and OpenClaw itself would not accept.
    let value = with(
        usual(),
        "/agents/entries",
        json!({ "main": { "agentRuntime": { "id": "openclaw" } } }),
    );
    let value = with(value, "/agents/list", json!([]));
    let value = with(value, "/logging/redactSensitive", json!("off"));
    let value = with(value, "/diagnostics/otel/enabled", json!(false));
    for value in [usual(), value] {
        let component = component(value);
        let root = TempDir::new().expect("a directory");
        let layout = directories(&root, &binary);
        place(&component.files, Directory::Files, &layout);
        let (accepted, said) = run(
            &binary,
            environment(&component.environment, &layout),
            &["config", "validate"],
        );
        assert!(accepted, "the gateway's document: {said}");
        let probe = component.probe.expect("a probe");
        place(&probe.files, Directory::State, &layout);
        let (accepted, said) = run(
            &binary,
            environment(&probe.environment, &layout),
            &["config", "validate"],
        );
        assert!(accepted, "the check's document: {said}");
    }
}

#[test]
fn the_real_setup_makes_the_stock_files_that_the_harness_knows() {
    let Some(binary) = binary() else { return };
    let component = component(usual());
    let root = TempDir::new().expect("a directory");
    let layout = directories(&root, &binary);
    let document = place(&component.files, Directory::Files, &layout).remove(0);
    let before = fs::read(&document).expect("read");
    let workspace = component.workspace.expect("an initialization");
    let arguments: Vec<_> = workspace.command[2..]
        .iter()
        .map(|text| text.resolve(&layout).expect("resolved"))
        .collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (done, said) = run(&binary, environment(&workspace.environment, &layout), &arguments);
    assert!(done, "{said}");
    let read = |name: WorkspaceFileName| {
        let path = Path::new(&layout.directories[&Directory::Workspace]).join(name.as_str());
        (name.as_str(), fs::read_to_string(path).expect("made"))
    };
    let stock = WorkspaceFileName::ALL.map(read);
    let identity = digest::hex(&serde_json::to_vec(&stock).expect("JSON"));
    assert_eq!(harness().workspace_defaults(), Some(identity.as_str()));
    assert_eq!(
        fs::read(&document).expect("read"),
        before,
        "the version's document was rewritten"
    );
    let templates = workspace.templates.resolve(&layout).expect("resolved");
    assert!(Path::new(&templates).join("SOUL.md").is_file(), "{templates}");
}

//! From a planned component to a launch spec, as any Compute does it.

use std::collections::BTreeMap;

use occ_core::{
    id::{AgentId, NamespaceId, RevisionId},
    plan::{
        Component, Directory, EnvValue, Layout, PlannedFile, Probe, Readiness, Role, SecretSlot, StopPolicy, Text,
        Unresolved, WorkspaceInit,
    },
    reason::Token,
};
use occ_runtime::spec::{self, EnvSource, Files, LaunchSpec, Limits, LogPolicy, Placement};

fn component() -> Component {
    let script = Text(vec![
        occ_core::plan::Segment::Tool("package".into()),
        occ_core::plan::Segment::Literal("/main.js".into()),
    ]);
    let environment = |secret: SecretSlot| {
        BTreeMap::from([
            ("HOME".to_owned(), EnvValue::Text(Text::directory(Directory::Home))),
            ("KEY".to_owned(), EnvValue::Secret(secret)),
        ])
    };
    Component {
        name: Token::known("gateway"),
        role: Role::Combined,
        command: vec![
            Text::tool("node"),
            script.clone(),
            "--port".into(),
            Text::port("gateway"),
        ],
        environment: environment(SecretSlot::GatewayPassword),
        files: vec![PlannedFile {
            name: "a.json".into(),
            content: Text::directory(Directory::Workspace),
        }],
        ports: vec!["gateway".into()],
        mounts: vec![Directory::State],
        working_directory: Directory::Workspace,
        readiness: Readiness {
            port: "gateway".into(),
            path: "/readyz".into(),
            start_timeout_ms: 1000,
        },
        probe: Some(Probe {
            reader: "report/1".into(),
            expect: BTreeMap::new(),
            command: vec![Text::tool("node"), script.clone(), "probe".into()],
            environment: environment(SecretSlot::HarnessCredential),
            files: vec![PlannedFile {
                name: "config.json".into(),
                content: Text::directory(Directory::State),
            }],
            base_timeout_ms: 20_000,
            cpu_budget_ms: 45_000,
        }),
        workspace: Some(WorkspaceInit {
            command: vec![Text::tool("node"), script, "setup".into()],
            environment: BTreeMap::new(),
            timeout_ms: 120_000,
            templates: "/package/templates".into(),
        }),
        stop: StopPolicy { grace_ms: 330_000 },
    }
}

fn layout() -> Layout {
    Layout {
        tools: [("node", "/opt/node"), ("package", "/opt/package")]
            .map(|(k, v)| (k.into(), v.into()))
            .into(),
        directories: [
            (Directory::Home, "/a/home".into()),
            (Directory::State, "/a/state".into()),
            (Directory::Workspace, "/a/workspace".into()),
        ]
        .into(),
        ports: [("gateway".into(), 40123)].into(),
    }
}

fn placement(layout: &Layout) -> Placement<'_> {
    Placement {
        namespace_id: NamespaceId::random(),
        agent_id: AgentId::random(),
        revision_id: RevisionId::random(),
        layout,
        files: Files {
            status: "/a/status".into(),
            lock: "/a/lock".into(),
            log: "/a/log".into(),
        },
        log: LogPolicy::default(),
        limits: Limits::default(),
        setup: None,
        status_listen: None,
    }
}

#[test]
fn every_place_of_a_component_is_filled() {
    let spec = LaunchSpec::from_component(&component(), placement(&layout())).unwrap();
    assert_eq!(spec.validate(), Ok(()));
    assert_eq!(spec.command, ["/opt/node", "/opt/package/main.js", "--port", "40123"]);
    assert_eq!(spec.readiness.url, "http://127.0.0.1:40123/readyz");
    assert_eq!(spec.working_directory, "/a/workspace");
    assert_eq!(spec.environment["HOME"], EnvSource::Text("/a/home".into()));
    assert_eq!(spec.environment["KEY"], EnvSource::Secret("gatewayPassword".into()));
    assert_eq!(spec.requires, ["/opt/node", "/opt/package/main.js"]);
    assert_eq!(spec.stop_grace_ms, 330_000);
    assert_eq!(
        spec::files(&component().files, &layout()).unwrap()["a.json"],
        "/a/workspace"
    );
}

#[test]
fn a_check_has_directories_of_its_own() {
    let spec = LaunchSpec::from_component(&component(), placement(&layout())).unwrap();
    let probe = spec.probe.unwrap();
    assert_eq!(probe.directory, "/a/lock.probe");
    assert_eq!(probe.environment["HOME"], EnvSource::Text("/a/lock.probe/home".into()));
    assert_eq!(probe.files["config.json"], "/a/lock.probe/state");
}

#[test]
fn the_secrets_to_send_are_those_that_the_spec_names() {
    let spec = LaunchSpec::from_component(&component(), placement(&layout())).unwrap();
    let slots = spec::secrets(&component());
    assert_eq!(
        slots.keys().map(String::as_str).collect::<Vec<_>>(),
        ["gatewayPassword", "harnessCredential"]
    );
    assert!(spec.secret_keys().into_iter().eq(slots.keys().map(String::as_str)));
    assert_eq!(slots["harnessCredential"], SecretSlot::HarnessCredential);
}

#[test]
fn a_place_that_the_compute_cannot_fill_is_named() {
    let mut layout = layout();
    layout.tools.remove("package");
    let missing = LaunchSpec::from_component(&component(), placement(&layout)).unwrap_err();
    assert_eq!(missing, Unresolved::Tool("package".into()));
}

#[test]
fn a_spec_reads_back_as_it_was_written() {
    let spec = LaunchSpec::from_component(&component(), placement(&layout())).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spec.json");
    std::fs::write(&path, serde_json::to_vec(&spec).unwrap()).unwrap();
    assert_eq!(LaunchSpec::read(&path), Ok(spec));
}

//! Plans for the fixture component.

use std::{collections::BTreeMap, path::Path};

use occ_core::{
    plan::{
        Component, Directory, EnvValue, PlannedFile, Probe, Readiness, Role, SecretSlot, StopPolicy, Text,
        WorkloadPlan, WorkspaceInit,
    },
    reason::Token,
};

fn environment(version: &str, control: &Path) -> BTreeMap<String, EnvValue> {
    BTreeMap::from([
        ("VERSION".to_owned(), EnvValue::Text(version.into())),
        ("CONTROL".to_owned(), EnvValue::Text(control.to_str().unwrap().into())),
        ("KEY".to_owned(), EnvValue::Secret(SecretSlot::HarnessCredential)),
    ])
}

/// A gateway that says that it is `version`.
pub fn of(version: &str, control: &Path) -> WorkloadPlan {
    let mut gateway = environment(version, control);
    gateway.insert("PASSWORD".to_owned(), EnvValue::Secret(SecretSlot::GatewayPassword));
    gateway.insert("HOME".to_owned(), EnvValue::Text(Text::directory(Directory::Home)));
    let component = Component {
        name: Token::known("gateway"),
        role: Role::Combined,
        command: vec![
            Text::tool("python"),
            Text::tool("component"),
            "gateway".into(),
            Text::port("gateway"),
        ],
        environment: gateway,
        files: vec![PlannedFile {
            name: "config.json".to_owned(),
            content: Text::port("gateway"),
        }],
        ports: vec!["gateway".to_owned()],
        mounts: vec![
            Directory::Files,
            Directory::State,
            Directory::Workspace,
            Directory::Home,
        ],
        working_directory: Directory::Workspace,
        readiness: Readiness {
            port: "gateway".to_owned(),
            path: "/readyz".to_owned(),
            start_timeout_ms: 60_000,
        },
        probe: Some(Probe {
            reader: "report/1".to_owned(),
            expect: BTreeMap::new(),
            command: vec![Text::tool("python"), Text::tool("component"), "check".into()],
            environment: environment(version, control),
            files: Vec::new(),
            base_timeout_ms: 60_000,
            cpu_budget_ms: 60_000,
        }),
        workspace: None,
        stop: StopPolicy { grace_ms: 20_000 },
    };
    WorkloadPlan {
        components: vec![component],
    }
}

/// The same with a native initialization of the workspace.
pub fn with_workspace(mut plan: WorkloadPlan) -> WorkloadPlan {
    let component = &mut plan.components[0];
    component.workspace = Some(WorkspaceInit {
        command: vec![Text::tool("python"), Text::tool("component"), "setup".into()],
        environment: component.environment.clone(),
        timeout_ms: 60_000,
        templates: Text::path(Directory::Files, "no-templates"),
    });
    plan
}

//! From a planned component to a spec, for any Compute.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use occ_core::{
    id::{AgentId, NamespaceId, RevisionId},
    plan::{self, Component, Directory, EnvValue, Layout, PlannedFile, SecretSlot, Segment, Text, Unresolved},
    resource::WorkspaceSetup,
};
use serde::{Deserialize, Serialize};

use super::{EnvSource, Environment, LaunchSpec, Limits, LogPolicy, Probe, Readiness, Workspace};

/// The supervisor's own files. Their directories must exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Files {
    /// Where the status is written.
    pub status: String,
    /// Locked while a supervisor lives, and holds its identity. One per Agent and component over all versions, so that there
    /// is never a second gateway. `LOCK.tree` beside it is locked while any process of the component lives.
    pub lock: String,
    /// The component's log.
    pub log: String,
}

/// What a Compute knows and a plan does not.
#[derive(Debug, Clone)]
pub struct Placement<'a> {
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// The Agent.
    pub agent_id: AgentId,
    /// The version.
    pub revision_id: RevisionId,
    /// Tools, directories and ports of the component.
    pub layout: &'a Layout,
    /// The supervisor's own files.
    pub files: Files,
    /// How the log is kept.
    pub log: LogPolicy,
    /// What the component's processes may use.
    pub limits: Limits,
    /// The Agent's initial workspace files; for a component that initializes the workspace.
    pub setup: Option<WorkspaceSetup>,
    /// Where the status is also served over HTTP.
    pub status_listen: Option<SocketAddr>,
}

impl LaunchSpec {
    /// Fills the component's places.
    pub fn from_component(component: &Component, placement: Placement<'_>) -> Result<Self, Unresolved> {
        let layout = placement.layout;
        let directory = |directory| Text::directory(directory).resolve(layout);
        let mut requires = BTreeSet::new();
        let command = resolve_command(&component.command, layout, &mut requires)?;
        let port = Text::port(&component.readiness.port).resolve(layout)?;
        let probe = match &component.probe {
            Some(probe) => Some(resolve_probe(probe, &placement.files.lock, layout, &mut requires)?),
            None => None,
        };
        let workspace = match &component.workspace {
            Some(init) => Some(Workspace {
                command: resolve_command(&init.command, layout, &mut requires)?,
                environment: environment(&init.environment, layout)?,
                timeout_ms: init.timeout_ms,
                directory: directory(Directory::Workspace)?,
                templates: init.templates.resolve(layout)?,
                setup: placement.setup,
                namespace_id: placement.namespace_id,
                agent_id: placement.agent_id,
            }),
            None => None,
        };
        Ok(Self {
            revision_id: placement.revision_id,
            component: component.name.clone(),
            command,
            environment: environment(&component.environment, layout)?,
            working_directory: directory(component.working_directory)?,
            requires: requires.into_iter().collect(),
            files: placement.files,
            log: placement.log,
            readiness: Readiness {
                url: format!("http://127.0.0.1:{port}{}", component.readiness.path),
                start_timeout_ms: component.readiness.start_timeout_ms,
            },
            probe,
            workspace,
            limits: placement.limits,
            stop_grace_ms: component.stop.grace_ms,
            status_listen: placement.status_listen,
            check_only: false,
        })
    }
}

fn resolve_probe(
    probe: &plan::Probe,
    lock: &str,
    layout: &Layout,
    requires: &mut BTreeSet<String>,
) -> Result<Probe, Unresolved> {
    // Beside the lock, because whoever holds the lock is alone there: what a killed check left is removed by the next one.
    let root = format!("{lock}.probe");
    let mut own = layout.clone();
    for (directory, name) in [
        (Directory::Home, "home"),
        (Directory::State, "state"),
        (Directory::Temporary, "tmp"),
    ] {
        own.directories.insert(directory, format!("{root}/{name}"));
    }
    Ok(Probe {
        reader: probe.reader.clone(),
        expect: probe.expect.clone(),
        command: resolve_command(&probe.command, &own, requires)?,
        environment: environment(&probe.environment, &own)?,
        files: files(&probe.files, &own)?,
        directory: root,
        base_timeout_ms: probe.base_timeout_ms,
        cpu_budget_ms: probe.cpu_budget_ms,
    })
}

fn resolve_command(
    command: &[Text],
    layout: &Layout,
    requires: &mut BTreeSet<String>,
) -> Result<Vec<String>, Unresolved> {
    let mut resolved = Vec::with_capacity(command.len());
    for text in command {
        let value = text.resolve(layout)?;
        // A path of, or inside, a tool: without it the program that is given it fails in words of its own.
        if matches!(text.0.first(), Some(Segment::Tool(_))) {
            requires.insert(value.clone());
        }
        resolved.push(value);
    }
    Ok(resolved)
}

fn environment(planned: &BTreeMap<String, EnvValue>, layout: &Layout) -> Result<Environment, Unresolved> {
    let source = |value: &EnvValue| match value {
        EnvValue::Text(text) => text.resolve(layout).map(EnvSource::Text),
        EnvValue::Secret(slot) => Ok(EnvSource::Secret(secret_key(slot))),
    };
    planned
        .iter()
        .map(|(name, value)| Ok((name.clone(), source(value)?)))
        .collect()
}

/// The contents of planned files by name, with their places filled; the Compute writes a component's own.
pub fn files(planned: &[PlannedFile], layout: &Layout) -> Result<BTreeMap<String, String>, Unresolved> {
    planned
        .iter()
        .map(|file| Ok((file.name.clone(), file.content.resolve(layout)?)))
        .collect()
}

/// The key under which a secret travels to the supervisor.
pub fn secret_key(slot: &SecretSlot) -> String {
    match slot {
        SecretSlot::HarnessCredential => "harnessCredential".to_owned(),
        SecretSlot::GatewayPassword => "gatewayPassword".to_owned(),
        SecretSlot::Binding(name) => format!("binding:{}", name.as_str()),
    }
}

/// Every secret that the component, its check or its initialization needs, by slot key: exactly what a Compute sends.
pub fn secrets(component: &Component) -> BTreeMap<String, SecretSlot> {
    let environments = [
        Some(&component.environment),
        component.probe.as_ref().map(|probe| &probe.environment),
        component.workspace.as_ref().map(|workspace| &workspace.environment),
    ];
    let values = environments.into_iter().flatten().flat_map(BTreeMap::values);
    values
        .filter_map(|value| match value {
            EnvValue::Secret(slot) => Some((secret_key(slot), slot.clone())),
            EnvValue::Text(_) => None,
        })
        .collect()
}

//! What a version needs on disk before a supervisor can start it: directories, files, ports, and the spec.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use occ_core::{
    driver::{RevisionContext, Terminal},
    plan::{Component, Directory, Layout, Role, SecretSlot, Unresolved, WorkloadPlan},
    reason::{PreparationReason, PreparationStage},
};
use occ_runtime::spec::{self, Files, LaunchSpec, Limits, LogPolicy, Placement};

use crate::{
    cgroup,
    error::{Error, Result},
    naming::{self, AgentPaths, RevisionPaths, RunPaths},
    ownership,
    place::Instance,
    ports::{self, Ports},
    settings, storage,
};

/// A run that can be launched.
#[derive(Debug)]
pub(crate) struct Staged {
    /// The spec's file.
    pub(crate) spec: PathBuf,
    /// Held by the launcher.
    pub(crate) launch_lock: PathBuf,
    /// The secrets that go to the supervisor, by slot key.
    pub(crate) secrets: BTreeMap<String, SecretSlot>,
}

/// The one component that this Compute runs: a gateway with its built-in Harness.
pub(crate) fn component(plan: &WorkloadPlan) -> Result<&Component> {
    match plan.components.as_slice() {
        [component] if component.role == Role::Combined => Ok(component),
        _ => Err(Error::Terminal(Terminal::ConfigurationInvalid)),
    }
}

/// Stages the run that serves. The Agent runs nothing now, so its ports can be looked at.
pub(crate) fn serving(
    instance: &Instance,
    agent: &AgentPaths,
    revision: &RevisionPaths,
    context: &RevisionContext,
    checked: bool,
) -> Result<Staged> {
    let component = component(&context.plan)?;
    let ports = claim_ports(instance, agent, component, false)?;
    // Nobody uses the scratch space of an Agent that runs nothing.
    storage::remove_tree(&agent.temporary())?;
    storage::private_dir(&agent.temporary())?;
    let run = revision.serving(agent);
    let group = group(instance, context, false)?;
    let mut spec = spec(instance, agent, revision, context, &ports, &run, group.as_deref())?;
    if checked {
        spec.probe = None;
    }
    stage(instance, agent, revision, component, &ports, &run, &spec)
}

/// Stages the run that checks the version beside a predecessor that serves.
pub(crate) fn checking(
    instance: &Instance,
    agent: &AgentPaths,
    revision: &RevisionPaths,
    context: &RevisionContext,
) -> Result<Staged> {
    let component = component(&context.plan)?;
    let ports = claim_ports(instance, agent, component, true)?;
    let run = revision.checking();
    let group = group(instance, context, true)?;
    let mut spec = spec(instance, agent, revision, context, &ports, &run, group.as_deref())?;
    spec.check_only = true;
    stage(instance, agent, revision, component, &ports, &run, &spec)
}

/// Whether the check on disk was made with what it would be made with now.
pub(crate) fn check_is_current(
    instance: &Instance,
    agent: &AgentPaths,
    revision: &RevisionPaths,
    context: &RevisionContext,
) -> Result<bool> {
    let run = revision.checking();
    let ports = ports::chosen(agent)?;
    let Ok(made) = LaunchSpec::read(&run.spec) else {
        return Ok(false);
    };
    match spec(instance, agent, revision, context, &ports, &run, None) {
        Ok(wanted) => Ok(same_check(&made, &wanted)),
        // A port that was not chosen yet.
        Err(_) => Ok(false),
    }
}

/// Setup contents are forgotten once they are applied, and limits bound a check; neither changes what it finds.
fn same_check(made: &LaunchSpec, wanted: &LaunchSpec) -> bool {
    let bare = |spec: &LaunchSpec| {
        let mut spec = spec.clone();
        spec.check_only = true;
        spec.limits = Limits::default();
        if let Some(workspace) = &mut spec.workspace {
            workspace.setup = None;
        }
        spec
    };
    bare(made) == bare(wanted)
}

fn claim_ports(instance: &Instance, agent: &AgentPaths, component: &Component, serves: bool) -> Result<Ports> {
    ports::claim(
        &instance.root,
        agent,
        &component.ports,
        instance.settings.port_range,
        serves,
    )
}

fn spec(
    instance: &Instance,
    agent: &AgentPaths,
    revision: &RevisionPaths,
    context: &RevisionContext,
    ports: &Ports,
    run: &RunPaths,
    group: Option<&Path>,
) -> Result<LaunchSpec> {
    let settings = &instance.settings;
    let component = component(&context.plan)?;
    let layout = layout(instance, agent, revision, ports)?;
    let placement = Placement {
        namespace_id: context.target.agent.namespace_id,
        agent_id: context.target.agent.id,
        revision_id: context.target.id,
        layout: &layout,
        files: Files {
            status: text(&run.status)?,
            lock: text(&run.lock)?,
            log: text(&run.log)?,
        },
        log: LogPolicy {
            max_bytes: settings.log.max_bytes,
            keep: u32::from(settings.log.keep),
        },
        limits: limits(settings.limits, group)?,
        setup: context.workspace_setup.clone(),
        status_listen: None,
    };
    let mut spec = LaunchSpec::from_component(component, placement).map_err(|place| unresolved(&place))?;
    if let Some(cap) = settings.stop_grace_seconds {
        spec.stop_grace_ms = spec.stop_grace_ms.min(u64::from(cap) * 1000);
    }
    Ok(spec)
}

/// With a control group the limits are its own; without one they are those that a process can have.
fn limits(limits: settings::Limits, group: Option<&Path>) -> Result<Limits> {
    let open_files = limits.open_files;
    Ok(match group {
        Some(group) => Limits {
            open_files,
            processes: None,
            memory_bytes: None,
            cgroup: Some(text(group)?),
        },
        None => Limits {
            open_files,
            processes: limits.processes,
            memory_bytes: limits.memory_bytes,
            cgroup: None,
        },
    })
}

/// The control group of a run, if groups were delegated. A check has one of its own, so that it takes nothing from the version
/// that serves.
fn group(instance: &Instance, context: &RevisionContext, check: bool) -> Result<Option<PathBuf>> {
    let limits = &instance.settings.limits;
    let agent = context.target.agent.id.short_hash();
    let name = if check { format!("{agent}-check") } else { agent };
    cgroup::delegated(limits)
        .map(|delegated| delegated.claim(&name, limits))
        .transpose()
}

fn layout(instance: &Instance, agent: &AgentPaths, revision: &RevisionPaths, ports: &Ports) -> Result<Layout> {
    let mut tools = BTreeMap::new();
    for (name, path) in &instance.settings.tools {
        tools.insert(name.clone(), text(path)?);
    }
    let directories = BTreeMap::from([
        (Directory::Files, text(&revision.files())?),
        (Directory::State, text(&agent.state())?),
        (Directory::Workspace, text(&agent.workspace())?),
        (Directory::Home, text(&agent.home())?),
        (Directory::Temporary, text(&agent.temporary())?),
    ]);
    Ok(Layout {
        tools,
        directories,
        ports: ports.clone(),
    })
}

fn stage(
    instance: &Instance,
    agent: &AgentPaths,
    revision: &RevisionPaths,
    component: &Component,
    ports: &Ports,
    run: &RunPaths,
    spec: &LaunchSpec,
) -> Result<Staged> {
    let layout = layout(instance, agent, revision, ports)?;
    for (name, content) in spec::files(&component.files, &layout).map_err(|place| unresolved(&place))? {
        // A plan names plain files; anything else would leave the directory.
        if name.contains('/') || name.starts_with('.') || name.is_empty() {
            return Err(Error::Terminal(Terminal::ConfigurationInvalid));
        }
        storage::write_read_only(&revision.files().join(name), content.as_bytes())?;
    }
    spec.validate()
        .map_err(|_| Error::Terminal(Terminal::ConfigurationInvalid))?;
    // What an earlier run said and was told is of no concern to the new one.
    storage::remove_file(&run.status)?;
    storage::remove_file(&run.stopping)?;
    storage::write(&run.spec, &ownership::encode(spec)?)?;
    Ok(Staged {
        spec: run.spec.clone(),
        launch_lock: naming::launch_lock(&run.lock),
        secrets: spec::secrets(component),
    })
}

fn unresolved(unresolved: &Unresolved) -> Error {
    match unresolved {
        Unresolved::Tool(_) => Error::refused(PreparationStage::Layout, PreparationReason::ToolNotConfigured),
        Unresolved::Directory(_) | Unresolved::Port(_) => Error::Terminal(Terminal::ConfigurationInvalid),
    }
}

fn text(path: &Path) -> Result<String> {
    // The settings and the data directory were checked when the driver was built.
    path.to_str()
        .map(str::to_owned)
        .ok_or(Error::Terminal(Terminal::ConfigurationInvalid))
}

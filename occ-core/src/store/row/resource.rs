//! Resources, as their rows have them.

use serde::Deserialize as _;

use super::{Columns, Corrupt, Row};
use crate::{
    driver::ResourceKind,
    resource::{
        Agent, AgentCredentialSource, AgentRevision, Approver, ComputeIdentity, EnvName, ExecutionMode, HarnessAuth,
        HarnessAuthSnapshot, HarnessIdentity, Installation, Namespace, NamespaceStatus, Plugins, PluginsSnapshot,
        Secret, SecretSnapshot, Snapshot, WorkspaceSetup,
    },
    store::{AgentRow, ConfigurationRow, NamespaceRow, OwnedRow, RevisionHead, RevisionRow, SavedField, SavedRevision},
};

pub(in crate::store) fn installation(row: &impl Row) -> Result<Installation, Corrupt> {
    let row = Columns {
        row,
        of: "Installation",
    };
    Ok(Installation {
        id: row.parsed("id")?,
        name: row.parsed("name")?,
        created_at: row.moment("created_at")?,
    })
}

pub(in crate::store) fn namespace(row: &impl Row) -> Result<NamespaceRow, Corrupt> {
    let row = Columns { row, of: "Namespace" };
    let status: NamespaceStatus = row.word("status")?;
    let namespace = Namespace {
        id: row.parsed("id")?,
        name: row.parsed("name")?,
        existing_namespace: row.optional_text("existing_namespace")?,
        status,
        created_at: row.moment("created_at")?,
    };
    Ok(NamespaceRow {
        namespace,
        version: row.number("version")?,
        deletion_actor: row.optional_parsed("deletion_actor")?,
    })
}

/// Something that a Namespace owns: its kind and its id.
pub(in crate::store) fn content(row: &impl Row) -> Result<(&'static str, String), Corrupt> {
    let row = Columns { row, of: "resource" };
    let kind: ResourceKind = row.word("kind")?;
    Ok((kind.as_str(), row.text("id")?))
}

pub(in crate::store) fn configuration(row: &impl Row) -> Result<ConfigurationRow, Corrupt> {
    let row = Columns {
        row,
        of: "Configuration",
    };
    Ok(ConfigurationRow {
        id: row.parsed("id")?,
        namespace_id: row.parsed("namespace_id")?,
        kind: row.word("kind")?,
        generation: row.number("generation")?,
        secret_bindings: row.json("secret_bindings")?,
        deleting: row.flag("deleting")?,
        created_at: row.moment("created_at")?,
    })
}

pub(in crate::store) fn secret(row: &impl Row) -> Result<Secret, Corrupt> {
    let row = Columns { row, of: "Secret" };
    Ok(Secret {
        id: row.parsed("id")?,
        namespace_id: row.parsed("namespace_id")?,
        name: row.parsed("name")?,
        driver_id: row.text("driver_id")?,
        backend_ref: row.json("backend_ref")?,
        version: row.number("version")?,
        deleting: row.flag("deleting")?,
        created_at: row.moment("created_at")?,
    })
}

/// A small resource; the Secrets that it names are kept beside it.
pub(in crate::store) fn owned(row: &impl Row) -> Result<OwnedRow, Corrupt> {
    let row = Columns { row, of: "resource" };
    Ok(OwnedRow {
        kind: row.word("kind")?,
        id: row.text("id")?,
        namespace_id: row.parsed("namespace_id")?,
        name: row.parsed("name")?,
        body: row.json("body")?,
        secrets: Vec::new(),
        version: row.number("version")?,
        created_at: row.moment("created_at")?,
    })
}

/// What a draft holds as JSON.
struct Settings {
    plugins: Option<Plugins>,
    plugin_approvers: Option<Vec<Approver>>,
    credential_sources: Option<Vec<AgentCredentialSource>>,
    harness_auth: Option<HarnessAuth>,
}

/// An Agent whose saved settings may not decode: those that do not are named.
pub(in crate::store) fn agent(row: &impl Row) -> Result<AgentRow, Corrupt> {
    let columns = Columns { row, of: "Agent" };
    let plugins = columns.optional_json("plugins");
    let plugin_approvers = columns.optional_json("plugin_approvers");
    let credential_sources = columns.optional_json("credential_sources");
    let harness_auth = columns.optional_json("harness_auth");
    let unreadable = [
        (plugins.is_err(), SavedField::Plugins),
        (plugin_approvers.is_err(), SavedField::PluginApprovers),
        (credential_sources.is_err(), SavedField::CredentialSources),
        (harness_auth.is_err(), SavedField::HarnessAuth),
    ];
    let settings = Settings {
        plugins: plugins.unwrap_or_default(),
        plugin_approvers: plugin_approvers.unwrap_or_default(),
        credential_sources: credential_sources.unwrap_or_default(),
        harness_auth: harness_auth.unwrap_or_default(),
    };
    Ok(AgentRow {
        agent: agent_with(row, settings)?,
        version: columns.number("version")?,
        unreadable: unreadable
            .into_iter()
            .filter_map(|(fails, field)| fails.then_some(field))
            .collect(),
    })
}

/// A version whose saved settings may not decode.
pub(in crate::store) fn saved_revision(row: &impl Row) -> Result<SavedRevision, Corrupt> {
    if let Ok(row) = revision(row) {
        return Ok(SavedRevision::Whole(Box::new(row.revision)));
    }
    let row = Columns {
        row,
        of: "AgentRevision",
    };
    let saved: serde_json::Value = serde_json::from_slice(&row.bytes("snapshot")?).unwrap_or_default();
    let reads =
        |name: &str, reads: fn(serde_json::Value) -> bool| saved.get(name).is_some_and(|part| reads(part.clone()));
    let optional =
        |name: &str, decodes: fn(serde_json::Value) -> bool| saved.get(name).is_some() && !reads(name, decodes);
    let field = if optional("plugins", |part| {
        serde_json::from_value::<PluginsSnapshot>(part).is_ok()
    }) {
        SavedField::Plugins
    } else if optional("pluginApprovers", |part| {
        serde_json::from_value::<Vec<Approver>>(part).is_ok()
    }) {
        SavedField::PluginApprovers
    } else if !reads("harnessAuth", |part| {
        serde_json::from_value::<HarnessAuthSnapshot>(part).is_ok()
    }) {
        SavedField::HarnessAuth
    } else if optional("secretBindings", |part| {
        serde_json::from_value::<std::collections::BTreeMap<EnvName, SecretSnapshot>>(part).is_ok()
    }) {
        SavedField::SecretBindings
    } else {
        SavedField::Configuration
    };
    Ok(SavedRevision::Unreadable {
        id: row.parsed("id")?,
        namespace_id: row.parsed("namespace_id")?,
        agent_id: row.parsed("agent_id")?,
        revision: row.number("number")?,
        backend_id: saved.get("backendId").and_then(|id| id.as_str()?.parse().ok()),
        created_at: row.moment("created_at")?,
        field,
    })
}

fn agent_with(row: &impl Row, settings: Settings) -> Result<Agent, Corrupt> {
    let row = Columns { row, of: "Agent" };
    Ok(Agent {
        id: row.parsed("id")?,
        namespace_id: row.parsed("namespace_id")?,
        name: row.parsed("name")?,
        service_principal_id: row.parsed("service_principal_id")?,
        configuration_id: row.parsed("configuration_id")?,
        backend_id: row.optional_parsed("backend_id")?,
        harness_auth: settings.harness_auth,
        credential_sources: settings.credential_sources.unwrap_or_default(),
        plugins: settings.plugins.unwrap_or_default(),
        plugin_approvers: settings.plugin_approvers,
        execution_mode: row.word("execution_mode")?,
        desired_runtime_state: row.word("desired")?,
        active_revision_id: row.optional_parsed("active_revision_id")?,
        status: row.word("status")?,
        created_at: row.moment("created_at")?,
    })
}

pub(in crate::store) fn revision(row: &impl Row) -> Result<RevisionRow, Corrupt> {
    let row = Columns {
        row,
        of: "AgentRevision",
    };
    let snapshot: Snapshot = serde_json::from_slice(&row.bytes("snapshot")?).map_err(|_| row.corrupt())?;
    let revision = AgentRevision {
        id: row.parsed("id")?,
        namespace_id: row.parsed("namespace_id")?,
        agent_id: row.parsed("agent_id")?,
        revision: row.number("number")?,
        snapshot,
        digest: row.text("digest")?,
        created_at: row.moment("created_at")?,
    };
    Ok(RevisionRow {
        revision,
        live: row.flag("live")?,
    })
}

/// The target of a pass, or what keeps it from being read: its pass says so, and acts upon what else is known of it.
pub(in crate::store) fn target(row: &impl Row) -> Result<Result<RevisionRow, SavedField>, Corrupt> {
    match saved_revision(row)? {
        SavedRevision::Whole(revision) => {
            let of = "AgentRevision";
            let live = Columns { row, of }.flag("live")?;
            let revision = *revision;
            Ok(Ok(RevisionRow { revision, live }))
        }
        SavedRevision::Unreadable { id, field, .. } => {
            tracing::error!(%id, ?field, "a stored AgentRevision does not decode");
            Ok(Err(field))
        }
    }
}

/// A version as far as it takes to stop it.
pub(in crate::store) fn head(row: &impl Row) -> Result<RevisionHead, Corrupt> {
    /// What a snapshot says of it. The rest is skipped, not kept.
    #[derive(serde::Deserialize)]
    struct Runs {
        compute: ComputeIdentity,
        harness: HarnessIdentity,
    }
    let row = Columns {
        row,
        of: "AgentRevision",
    };
    let snapshot = row.bytes("snapshot")?;
    let (mode, compute) = if let Ok(runs) = serde_json::from_slice::<Runs>(&snapshot) {
        (Some(runs.harness.mode), Some(runs.compute))
    } else {
        let saved: serde_json::Value = serde_json::from_slice(&snapshot).unwrap_or_default();
        let mode = ExecutionMode::deserialize(&saved["harness"]["mode"]).ok();
        (mode, ComputeIdentity::deserialize(&saved["compute"]).ok())
    };
    Ok(RevisionHead {
        id: row.parsed("id")?,
        agent_id: row.parsed("agent_id")?,
        revision: row.number("number")?,
        mode,
        compute,
        live: row.flag("live")?,
    })
}

pub(in crate::store) fn setup(row: &impl Row) -> Result<WorkspaceSetup, Corrupt> {
    let row = Columns {
        row,
        of: "workspace setup",
    };
    Ok(WorkspaceSetup {
        id: row.parsed("id")?,
        defaults_id: row.optional_text("defaults_id")?,
        files: row.optional_json("files")?,
    })
}

/// The Secret of a binding, for looking up from the Secret.
pub(in crate::store) fn secret_of(auth: Option<&HarnessAuth>) -> Option<String> {
    auth.and_then(HarnessAuth::secret).map(|(_, id)| id.to_string())
}

/// What an Agent's row keeps of its plugins: nothing when it selects none.
pub(in crate::store) fn plugins_of(agent: &Agent) -> Option<&Plugins> {
    Some(&agent.plugins).filter(|plugins| !plugins.is_empty())
}

/// What an Agent's row keeps of its credential sources: nothing when it uses none.
pub(in crate::store) fn sources_of(agent: &Agent) -> Option<&Vec<AgentCredentialSource>> {
    Some(&agent.credential_sources).filter(|sources| !sources.is_empty())
}

/// The Secrets that a version froze, each once.
pub(in crate::store) fn secrets_of(revision: &AgentRevision) -> std::collections::BTreeSet<String> {
    let bound = revision.snapshot.secret_bindings.values();
    let all = revision.snapshot.harness_auth.secret.iter().chain(bound);
    all.map(|secret| secret.id.to_string()).collect()
}

//! Agent: the editable draft and the stable identity (spec/engine 1.9).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Approver, BackendId, HarnessAuth, Name, Plugins, PrincipalId};
use crate::{
    id::{AgentId, ConfigurationId, CredentialSourceId, NamespaceId, RevisionId},
    time::Timestamp,
};

/// How the Harness runs (seed: execution mode).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionMode {
    /// One gateway process with its built-in Harness.
    #[default]
    Embedded,
    /// An Agent-owned gateway and a Harness workload of its own.
    Dedicated,
}

impl ExecutionMode {
    /// The wire spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Dedicated => "dedicated",
        }
    }
}

/// What the Agent's owner last asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DesiredRuntimeState {
    /// The selected version should run.
    Running,
    /// Nothing should run.
    Stopped,
}

/// Whether the Agent exists or is being removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentStatus {
    /// It exists.
    Active,
    /// It is being removed; implies a stopped desired state.
    Deleting,
}

/// A credential source that an Agent uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentCredentialSource {
    /// The source.
    pub source_id: CredentialSourceId,
}

/// An Agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// The Namespace that owns it.
    pub namespace_id: NamespaceId,
    /// Its name, unique in the Namespace.
    pub name: Name,
    /// The service principal that this Agent alone owns; immutable, and not derivable from the id by callers.
    pub service_principal_id: PrincipalId,
    /// The Configuration that the next deployment snapshots.
    pub configuration_id: ConfigurationId,
    /// The associated Backend.
    pub backend_id: Option<BackendId>,
    /// How the model credential is obtained.
    pub harness_auth: Option<HarnessAuth>,
    /// How the Harness runs.
    pub execution_mode: ExecutionMode,
    /// The credential sources that the next deployment uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credential_sources: Vec<AgentCredentialSource>,
    /// The plugins that the next deployment enables, by their catalogue id.
    #[serde(default, skip_serializing_if = "Plugins::is_empty")]
    pub plugins: Plugins,
    /// Who may approve for plugins that say nothing themselves; nobody when it is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_approvers: Option<Vec<Approver>>,
    /// What the owner last asked for.
    pub desired_runtime_state: DesiredRuntimeState,
    /// The version that the worker last committed to run. Not a health result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_revision_id: Option<RevisionId>,
    /// Whether the Agent exists or is being removed.
    pub status: AgentStatus,
    /// When it was created.
    pub created_at: Timestamp,
}

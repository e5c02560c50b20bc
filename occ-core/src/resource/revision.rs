//! AgentRevision: what one deployment froze (seed: Agent revisions; spec/engine 1.11).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Approver, BackendId, ConfigurationKind, Document, EnvName, ExecutionMode, HarnessAuthSnapshot, Plugins,
    PrincipalId, SecretSnapshot, SourceSnapshot,
};
use crate::{
    id::{AgentId, ConfigurationId, NamespaceId, RevisionId},
    time::Timestamp,
};

/// The Harness that a revision was admitted with.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HarnessIdentity {
    /// The Harness's id, such as `openclaw`.
    pub id: String,
    /// The descriptor's version.
    pub version: String,
    /// How it runs.
    pub mode: ExecutionMode,
}

/// The Compute that a revision was admitted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ComputeIdentity {
    /// The operator's instance id.
    pub id: String,
    /// Who wrote it; a compatibility line, not an exact version, so that an upgrade strands no revision.
    pub implementation: String,
}

/// The plugins of a version, and the driver that said that it can carry out their policies (its identity is internal).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginsSnapshot {
    /// The selected Plugin Driver.
    pub driver: PluginDriverIdentity,
    /// What was requested, with its policies.
    pub plugins: Plugins,
}

/// The Plugin Driver that a revision was admitted with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginDriverIdentity {
    /// The operator's instance id.
    pub id: String,
    /// Who wrote it.
    pub implementation: String,
}

/// Everything that a deployment freezes. Its canonical JSON is stored once, with its SHA-256, and never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Snapshot {
    /// The associated Backend.
    pub backend_id: Option<BackendId>,
    /// The Configuration that was read.
    pub configuration_id: ConfigurationId,
    /// Its kind.
    pub configuration_kind: ConfigurationKind,
    /// Its generation at admission.
    pub configuration_generation: u64,
    /// The effective document: the Configuration's, after a Sandbox Driver's transformation of a copy.
    pub configuration: Document,
    /// The approved Harness.
    pub harness: HarnessIdentity,
    /// The selected Compute.
    pub compute: ComputeIdentity,
    /// The selected Sandbox Driver (internal).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_driver_id: Option<String>,
    /// The requested plugins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugins: Option<PluginsSnapshot>,
    /// Who may approve for plugins that say nothing themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_approvers: Option<Vec<Approver>>,
    /// The model credential's binding and its private source. References only.
    pub harness_auth: HarnessAuthSnapshot,
    /// The credential sources that the version uses. References only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credential_sources: Vec<SourceSnapshot>,
    /// The Secrets that the gateway's environment receives. References only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_bindings: BTreeMap<EnvName, SecretSnapshot>,
    /// The Agent's service principal (internal).
    pub service_principal_id: PrincipalId,
}

/// One immutable version of an Agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRevision {
    /// Its id; also the deployment id.
    pub id: RevisionId,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// The owning Agent.
    pub agent_id: AgentId,
    /// 1 for the Agent's first, then one more each.
    pub revision: u64,
    /// What was frozen.
    pub snapshot: Snapshot,
    /// SHA-256 of the snapshot's stored bytes, in hexadecimal.
    pub digest: String,
    /// When it was admitted.
    pub created_at: Timestamp,
}

//! What callers see. Private parts (locators, driver ids, principals inside snapshots) have no field here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    driver::{Check, SourceCondition},
    id::{
        AgentId, ConfigurationId, CredentialSourceId, NamespaceId, RevisionId, SecretId, ServiceAccountId, ServiceKeyId,
    },
    reason::Token,
    resource::{
        AccountCredentialKind, Agent, AgentCredentialSource, AgentRevision, Approver, BackendId, ComputeIdentity,
        ConfigurationKind, CredentialSource, Document, HarnessAuth, HarnessIdentity, Installation, Name, Namespace,
        Plugins, PrincipalId, Secret, SecretBinding, SecretBindings, SecretDelivery, SecretSource, SecretSourceKind,
        ServiceAccount, SourceField, SourceState, SourceType,
    },
    secret_value::SecretValue,
    store::{AgentRow, ConfigurationRow, NewServiceKey, SavedField, SavedRevision},
    time::Timestamp,
};

/// A Configuration without its document, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationSummary {
    /// Its id.
    pub id: ConfigurationId,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// What it is for.
    pub kind: ConfigurationKind,
    /// Grows with each change.
    pub generation: u64,
    /// The Secrets that it binds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_bindings: SecretBindings,
    /// Its deletion was begun and not finished: delete it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

impl From<ConfigurationRow> for ConfigurationSummary {
    fn from(row: ConfigurationRow) -> Self {
        let ConfigurationRow {
            id,
            namespace_id,
            kind,
            generation,
            secret_bindings,
            deleting,
            created_at,
        } = row;
        Self {
            id,
            namespace_id,
            kind,
            generation,
            secret_bindings,
            deleting,
            created_at,
        }
    }
}

/// A Secret, without its locator (spec/engine 1.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretView {
    /// Its id.
    pub id: SecretId,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// Its name.
    pub name: Name,
    /// How others refer to it.
    #[serde(rename = "ref")]
    pub reference: SecretSource,
    /// Its deletion was begun and not finished: delete it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    /// Who refers to it; only when one Secret is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumers: Option<ConsumersView>,
}

impl From<&Secret> for SecretView {
    fn from(secret: &Secret) -> Self {
        let (id, namespace_id) = (secret.id, secret.namespace_id);
        let reference = SecretSource {
            kind: SecretSourceKind::Secret,
            namespace_id,
            id,
        };
        Self {
            id,
            namespace_id,
            name: secret.name.clone(),
            reference,
            deleting: secret.deleting,
            consumers: None,
        }
    }
}

/// Who refers to a Secret, as far as the caller may read them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumersView {
    /// Agents.
    pub agents: Vec<AgentId>,
    /// Configurations.
    pub configurations: Vec<ConfigurationId>,
    /// Service accounts.
    #[serde(default)]
    pub service_accounts: Vec<ServiceAccountId>,
    /// Credential sources.
    #[serde(default)]
    pub credential_sources: Vec<CredentialSourceId>,
    /// How many more the caller may not read.
    pub unreadable: usize,
    /// Whether there are more than are listed.
    #[serde(default)]
    pub truncated: bool,
}

/// An Agent revision, without its private parts (spec/engine 1.11).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionView {
    /// Its id; also the deployment id.
    pub id: RevisionId,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// The owning Agent.
    pub agent_id: AgentId,
    /// 1 for the Agent's first, then one more each.
    pub revision: u64,
    /// The associated Backend.
    pub backend_id: Option<BackendId>,
    /// The Configuration that was read.
    pub configuration_id: ConfigurationId,
    /// Its kind.
    pub configuration_kind: ConfigurationKind,
    /// Its generation at admission.
    pub configuration_generation: u64,
    /// The effective document.
    pub configuration: Document,
    /// The approved Harness.
    pub harness: HarnessIdentity,
    /// The selected Compute.
    pub compute: ComputeIdentity,
    /// The credential sources that it uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credential_sources: Vec<AgentCredentialSource>,
    /// The requested plugins.
    #[serde(default, skip_serializing_if = "Plugins::is_empty")]
    pub plugins: Plugins,
    /// Who may approve for plugins that say nothing themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_approvers: Option<Vec<Approver>>,
    /// How the model credential is obtained.
    pub harness_auth: HarnessAuth,
    /// The Secrets that the gateway's environment receives.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_bindings: SecretBindings,
    /// SHA-256 of the saved bytes, in hexadecimal.
    pub digest: String,
    /// When it was admitted.
    pub created_at: Timestamp,
}

impl From<AgentRevision> for RevisionView {
    fn from(revision: AgentRevision) -> Self {
        let AgentRevision {
            id,
            namespace_id,
            agent_id,
            revision: number,
            snapshot,
            digest,
            created_at,
        } = revision;
        let binding = |id| SecretBinding {
            source: SecretSource {
                kind: SecretSourceKind::Secret,
                namespace_id,
                id,
            },
            delivery: SecretDelivery::Env,
        };
        Self {
            id,
            namespace_id,
            agent_id,
            revision: number,
            backend_id: snapshot.backend_id,
            configuration_id: snapshot.configuration_id,
            configuration_kind: snapshot.configuration_kind,
            configuration_generation: snapshot.configuration_generation,
            configuration: snapshot.configuration,
            harness: snapshot.harness,
            compute: snapshot.compute,
            credential_sources: snapshot
                .credential_sources
                .iter()
                .map(|frozen| AgentCredentialSource {
                    source_id: frozen.source_id,
                })
                .collect(),
            plugins: snapshot.plugins.map(|frozen| frozen.plugins).unwrap_or_default(),
            plugin_approvers: snapshot.plugin_approvers,
            harness_auth: snapshot.harness_auth.binding,
            secret_bindings: snapshot
                .secret_bindings
                .into_iter()
                .map(|(name, s)| (name, binding(s.id)))
                .collect(),
            digest,
            created_at,
        }
    }
}

/// A service key, without its secret half.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceKeyView {
    /// The public half.
    pub id: ServiceKeyId,
    /// Whose key it is.
    pub principal_id: PrincipalId,
    /// What it is called.
    pub name: String,
    /// The only Namespace that it opens; every one when none is named.
    pub namespace_id: Option<NamespaceId>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

impl From<&NewServiceKey> for ServiceKeyView {
    fn from(key: &NewServiceKey) -> Self {
        Self {
            id: key.id,
            principal_id: key.principal.clone(),
            name: key.name.clone(),
            namespace_id: key.namespace_id,
            expires_at: key.expires_at,
        }
    }
}

/// A service key that was just made.
#[derive(Debug, Clone)]
pub struct IssuedKey {
    /// What may be shown again.
    pub key: ServiceKeyView,
    /// The whole key, for the `x-api-key` header. Shown this once: only its hash is kept.
    pub value: SecretValue,
}

/// What the first set-up made.
#[derive(Debug, Clone)]
pub struct Bootstrapped {
    /// The Installation.
    pub installation: Installation,
    /// The first administrator.
    pub administrator: PrincipalId,
    /// The administrator's first key.
    pub key: IssuedKey,
    /// The Namespace `default`, being provisioned.
    pub namespace: Namespace,
}

/// Whether an Agent's generated transport credentials exist (spec/contracts 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialStatus {
    /// Whether they do. Says nothing about whether they work.
    pub transport_configured: bool,
}

/// Fresh checks of a version (seed: Current runtime diagnostics).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticsView {
    /// The version.
    pub revision_id: RevisionId,
    /// When the checks were asked for.
    pub observed_at: Timestamp,
    /// At most 32.
    pub checks: Vec<Check>,
}

/// Recent log lines of a version, redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogsView {
    /// The version.
    pub revision_id: RevisionId,
    /// The component, when one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<Token>,
    /// The lines, oldest first.
    pub lines: Vec<String>,
}

/// A service principal that a Namespace's policy can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServicePrincipalView {
    /// The principal.
    pub id: PrincipalId,
    /// The Namespace that it is confined to.
    pub namespace_id: NamespaceId,
    /// The Agent that owns it, for an Agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

/// A service account, without its Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountView {
    /// Its id.
    pub id: ServiceAccountId,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// Its name.
    pub name: Name,
    /// Its credential, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<AccountCredentialView>,
    /// Its deletion was begun and not finished: delete it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

/// What a service account's credential is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountCredentialView {
    /// What it is.
    pub kind: AccountCredentialKind,
}

impl From<&ServiceAccount> for AccountView {
    fn from(account: &ServiceAccount) -> Self {
        let credential = account.credential.as_ref();
        Self {
            id: account.id,
            namespace_id: account.namespace_id,
            name: account.name.clone(),
            credential: credential.map(|credential| AccountCredentialView { kind: credential.kind }),
            deleting: account.deleting,
            created_at: account.created_at,
        }
    }
}

/// A credential source, without its credentials (spec/engine 1.8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialSourceView {
    /// Its id.
    pub id: CredentialSourceId,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// Its name.
    pub name: Name,
    /// What it is, in the gateway's catalogue.
    #[serde(rename = "type")]
    pub kind: SourceType,
    /// Its settings.
    pub config: BTreeMap<SourceField, String>,
    /// The Secrets that its credentials were read from.
    pub secrets: BTreeMap<SourceField, SecretSource>,
    /// How far it is.
    pub state: SourceState,
    /// How the gateway sees it now; only when one source is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<CredentialSourceStatus>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// How a gateway sees a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialSourceStatus {
    /// How it is.
    pub state: SourceCondition,
}

impl From<&CredentialSource> for CredentialSourceView {
    fn from(source: &CredentialSource) -> Self {
        let from = |id: &SecretId| SecretSource {
            kind: SecretSourceKind::Secret,
            namespace_id: source.namespace_id,
            id: *id,
        };
        Self {
            id: source.id,
            namespace_id: source.namespace_id,
            name: source.name.clone(),
            kind: source.kind.clone(),
            config: source.config.clone(),
            secrets: source
                .secrets
                .iter()
                .map(|(field, id)| (field.clone(), from(id)))
                .collect(),
            state: source.state,
            status: None,
            created_at: source.created_at,
        }
    }
}

/// Which saved setting cannot be read (seed: Unreadable saved settings).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationReadError {
    /// Always `SAVED_CONFIGURATION_UNREADABLE`.
    pub code: UnreadableCode,
    /// The field that is left out.
    pub field: SavedField,
}

/// The code of a [`ConfigurationReadError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UnreadableCode {
    /// The saved value does not decode.
    SavedConfigurationUnreadable,
}

impl From<SavedField> for ConfigurationReadError {
    fn from(field: SavedField) -> Self {
        Self {
            code: UnreadableCode::SavedConfigurationUnreadable,
            field,
        }
    }
}

/// An Agent, without a saved setting that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentView {
    /// The Agent.
    pub agent: Agent,
    /// What is left out of it.
    pub error: Option<ConfigurationReadError>,
}

impl From<AgentRow> for AgentView {
    fn from(row: AgentRow) -> Self {
        Self {
            error: row.unreadable.first().copied().map(Into::into),
            agent: row.agent,
        }
    }
}

impl Serialize for AgentView {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(error) = &self.error else {
            return self.agent.serialize(serializer);
        };
        let mut agent = serde_json::to_value(&self.agent).map_err(serde::ser::Error::custom)?;
        if let Some(fields) = agent.as_object_mut() {
            for field in ["harnessAuth", "credentialSources", "plugins", "pluginApprovers"] {
                fields.remove(field);
            }
            let error = serde_json::to_value(error).map_err(serde::ser::Error::custom)?;
            fields.insert("configurationReadError".to_owned(), error);
        }
        agent.serialize(serializer)
    }
}

/// A version, or what can be read of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RevisionRead {
    /// All of it.
    Whole(Box<RevisionView>),
    /// What can be read.
    Unreadable(UnreadableRevision),
}

/// What is left of a version whose saved settings cannot be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnreadableRevision {
    /// Its id.
    pub id: RevisionId,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// The owning Agent.
    pub agent_id: AgentId,
    /// Its number.
    pub revision: u64,
    /// The associated Backend.
    pub backend_id: Option<BackendId>,
    /// When it was admitted.
    pub created_at: Timestamp,
    /// What is left out.
    pub configuration_read_error: ConfigurationReadError,
}

impl RevisionRead {
    /// Its id and its number.
    pub fn identity(&self) -> (RevisionId, u64) {
        match self {
            Self::Whole(revision) => (revision.id, revision.revision),
            Self::Unreadable(revision) => (revision.id, revision.revision),
        }
    }
}

impl From<SavedRevision> for RevisionRead {
    fn from(saved: SavedRevision) -> Self {
        match saved {
            SavedRevision::Whole(revision) => Self::Whole(Box::new((*revision).into())),
            SavedRevision::Unreadable {
                id,
                namespace_id,
                agent_id,
                revision,
                backend_id,
                created_at,
                field,
            } => Self::Unreadable(UnreadableRevision {
                id,
                namespace_id,
                agent_id,
                revision,
                backend_id,
                created_at,
                configuration_read_error: field.into(),
            }),
        }
    }
}

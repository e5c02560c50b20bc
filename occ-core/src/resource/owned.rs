//! Small resources of a Namespace, whose content the engine alone interprets: service accounts and Presets (spec/engine 1.7).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BackendId, ExecutionMode, HarnessAuth, Name};
use crate::{
    driver::ResourceKind,
    id::{ConfigurationId, NamespaceId, PresetId, SecretId, ServiceAccountId},
    time::Timestamp,
};

/// What kind of small resource it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnedKind {
    /// A [`ServiceAccount`].
    ServiceAccount,
    /// A [`Preset`].
    Preset,
}

impl OwnedKind {
    /// The wire word, which is also that of its [`ResourceKind`].
    pub const fn as_str(self) -> &'static str {
        self.resource_kind().as_str()
    }

    /// The kind that permissions name.
    pub const fn resource_kind(self) -> ResourceKind {
        match self {
            Self::ServiceAccount => ResourceKind::ServiceAccount,
            Self::Preset => ResourceKind::Preset,
        }
    }
}

/// What a service account's credential is. References only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountCredentialKind {
    /// A provider's API key, imported.
    ApiKey,
    /// An OAuth access token, imported.
    OauthAccessToken,
    /// A token that a Service Account Driver issued.
    AccessToken,
}

/// A credential and the Secret that holds it (private).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccountCredential {
    /// What it is.
    pub kind: AccountCredentialKind,
    /// The Secret of the same Namespace.
    pub secret_id: SecretId,
}

/// An account of a model provider that several Agents can share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAccount {
    /// Its id.
    pub id: ServiceAccountId,
    /// The Namespace that owns it.
    pub namespace_id: NamespaceId,
    /// Its name, unique among the Namespace's accounts.
    pub name: Name,
    /// Its credential, if it has one.
    pub credential: Option<AccountCredential>,
    /// Grows with each change.
    pub version: u64,
    /// When it was created.
    pub created_at: Timestamp,
}

/// What a Preset copies into an Agent's draft. What is not said is left to whoever creates the Agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LaunchSettings {
    /// The Configuration that deployments snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_id: Option<ConfigurationId>,
    /// How the Harness runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_mode: Option<ExecutionMode>,
    /// The associated Backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_id: Option<BackendId>,
    /// How the model credential is obtained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness_auth: Option<HarnessAuth>,
}

/// Launch settings under a name. Nothing refers to it: its settings are copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preset {
    /// Its id.
    pub id: PresetId,
    /// The Namespace that owns it.
    pub namespace_id: NamespaceId,
    /// Its name, unique among the Namespace's Presets.
    pub name: Name,
    /// What is copied.
    pub settings: LaunchSettings,
    /// When it was created.
    pub created_at: Timestamp,
}

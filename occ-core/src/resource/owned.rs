//! Small resources of a Namespace, whose content the engine alone interprets: service accounts and Presets (spec/engine 1.7).

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

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
    /// A [`CredentialSource`](super::CredentialSource).
    CredentialSource,
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
            Self::CredentialSource => ResourceKind::CredentialSource,
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

/// An account as its provider names it (private). Names only, never a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderAccount {
    /// The provider's workspace, tenant or organisation.
    pub workspace_id: String,
    /// The account there.
    pub account_id: String,
}

/// A token that a provider is asked for (private). Written before it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenRequest {
    /// What the provider knows the token by.
    pub id: Uuid,
    /// The Secret that the token's value becomes.
    pub secret_id: SecretId,
    /// When it was recorded; long ago when an earlier version did not say.
    #[serde(default = "long_ago")]
    pub since: Timestamp,
}

const fn long_ago() -> Timestamp {
    Timestamp::from_millis(0)
}

/// What a Service Account Driver has of a service account (private; spec/engine 1.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccountBinding {
    /// The Backend whose account it is.
    pub backend_id: BackendId,
    /// The Service Account Driver (instance id). Another one never touches it.
    pub driver_id: String,
    /// The provider's account, once its answer is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<ProviderAccount>,
    /// The tokens that were asked for and are not known to have ended: the issued one alone once there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<TokenRequest>,
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
    /// What a driver has of it, from the first attempt to issue a token on.
    pub binding: Option<AccountBinding>,
    /// Its deletion was begun and not finished: nothing new may refer to it, and only its deletion may be repeated.
    pub deleting: bool,
    /// Grows with each change.
    pub version: u64,
    /// When it was created.
    pub created_at: Timestamp,
}

impl ServiceAccount {
    /// The Secret that holds its issued token, and what the driver has; nothing without an issued token.
    pub fn issued(&self) -> Option<(SecretId, &AccountBinding)> {
        let credential = self.credential.as_ref()?;
        let token = credential.kind == AccountCredentialKind::AccessToken;
        let binding = self.binding.as_ref().filter(|_| token)?;
        Some((credential.secret_id, binding))
    }

    /// For how long a token that was asked for and is not known to have ended may still come: for 30 seconds an attempt begins something new, 30
    /// more of a call, and the time between the record and the first call.
    pub const LATE: Duration = Duration::from_secs(70);

    /// Whether a token may still be issued of which nobody knows, after which what was deleted at the provider would be there again.
    pub fn unsettled(&self, now: Timestamp) -> bool {
        let issued = self.issued().map(|(secret, _)| secret);
        let tokens = self.binding.iter().flat_map(|binding| &binding.tokens);
        let mut asked = tokens.filter(|token| Some(token.secret_id) != issued);
        asked.any(|token| now.since(token.since) < Self::LATE)
    }
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

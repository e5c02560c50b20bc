//! How an Agent obtains its model credential (seed: Agents, "Harness authentication"; spec/engine 1.10).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AccountBinding, BackendRef, SourceSnapshot};
use crate::id::{CredentialSourceId, NamespaceId, SecretId, ServiceAccountId};

/// The word `secret` in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecretSourceKind {
    /// A Secret.
    Secret,
}

/// A reference to a Secret of the same Namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretSource {
    /// Always `secret`.
    pub kind: SecretSourceKind,
    /// The owning Namespace; must be the referrer's.
    pub namespace_id: NamespaceId,
    /// The Secret.
    pub id: SecretId,
}

/// What a personal access token comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum TokenSource {
    /// A Secret that holds the token.
    Secret {
        /// The owning Namespace.
        namespace_id: NamespaceId,
        /// The Secret.
        id: SecretId,
    },
    /// A ServiceAccount with an issued token.
    ServiceAccount {
        /// The owning Namespace.
        namespace_id: NamespaceId,
        /// The account.
        id: ServiceAccountId,
    },
}

/// An Agent's binding, as callers write and read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "method",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum HarnessAuth {
    /// A provider's API key.
    ApiKey {
        /// The Secret that holds it.
        source: SecretSource,
    },
    /// A Codex access token; dedicated Codex only.
    CodexPat {
        /// Where it comes from.
        source: TokenSource,
    },
    /// A source that a Credential Gateway mediates; dedicated only.
    CredentialSource {
        /// The source; must also be among the Agent's `credentialSources`.
        source_id: CredentialSourceId,
    },
    /// The operator supplies credentials on the host; SSH embedded OpenClaw only.
    Runtime {},
}

/// The method alone: what a Compute judges at admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HarnessAuthMethod {
    /// See [`HarnessAuth::ApiKey`].
    ApiKey,
    /// See [`HarnessAuth::CodexPat`].
    CodexPat,
    /// See [`HarnessAuth::CredentialSource`].
    CredentialSource,
    /// See [`HarnessAuth::Runtime`].
    Runtime,
}

impl HarnessAuth {
    /// The method alone.
    pub const fn method(&self) -> HarnessAuthMethod {
        match self {
            Self::ApiKey { .. } => HarnessAuthMethod::ApiKey,
            Self::CodexPat { .. } => HarnessAuthMethod::CodexPat,
            Self::CredentialSource { .. } => HarnessAuthMethod::CredentialSource,
            Self::Runtime {} => HarnessAuthMethod::Runtime,
        }
    }

    /// The service account that the binding names, if it names one.
    pub const fn account(&self) -> Option<ServiceAccountId> {
        match self {
            Self::CodexPat {
                source: TokenSource::ServiceAccount { id, .. },
            } => Some(*id),
            _ => None,
        }
    }

    /// The credential source that the binding names, if it names one.
    pub const fn credential_source(&self) -> Option<CredentialSourceId> {
        match self {
            Self::CredentialSource { source_id } => Some(*source_id),
            _ => None,
        }
    }

    /// The Namespace and Secret that the binding names, if it names one.
    pub const fn secret(&self) -> Option<(NamespaceId, SecretId)> {
        match self {
            Self::ApiKey { source } => Some((source.namespace_id, source.id)),
            Self::CodexPat {
                source: TokenSource::Secret { namespace_id, id },
            } => Some((*namespace_id, *id)),
            _ => None,
        }
    }
}

/// A Secret as a revision froze it: the reference, never the value (spec/engine 1.10).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretSnapshot {
    /// The Secret.
    pub id: SecretId,
    /// The Secret Driver instance that owned it at admission.
    pub secret_driver_id: String,
    /// Where that driver kept it at admission.
    pub backend_ref: BackendRef,
}

/// The binding as a revision froze it, with its resolved private source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HarnessAuthSnapshot {
    /// The binding as the Agent had it.
    pub binding: HarnessAuth,
    /// The Secret behind it, when there is one: also the one that holds a service account's issued token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretSnapshot>,
    /// The credential source behind it, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceSnapshot>,
    /// What a driver had of the service account behind it, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountBinding>,
}

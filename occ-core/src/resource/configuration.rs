//! Configuration: a reusable native document and the Secrets that it binds (spec/engine 1.5).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EnvName, SecretSource};
use crate::{
    id::{ConfigurationId, NamespaceId},
    time::Timestamp,
};

/// A native configuration document: a JSON object that OCC stores without a schema of its own.
pub type Document = serde_json::Map<String, serde_json::Value>;

/// What a Configuration is for; Agents are the only users yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfigurationKind {
    /// An Agent's native document.
    Agent,
}

/// How a bound Secret reaches the workload; a variable of the gateway's environment is the only way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum SecretDelivery {
    /// As an environment variable of the gateway.
    #[default]
    Env,
}

/// One bound Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretBinding {
    /// The Secret, of the same Namespace.
    pub source: SecretSource,
    /// How it is delivered.
    #[serde(default)]
    pub delivery: SecretDelivery,
}

/// Environment name to Secret; at most 64.
pub type SecretBindings = BTreeMap<EnvName, SecretBinding>;

/// A Configuration with its document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// Its id.
    pub id: ConfigurationId,
    /// The Namespace that owns it.
    pub namespace_id: NamespaceId,
    /// What it is for.
    pub kind: ConfigurationKind,
    /// 1 at creation, one more with each change of the document or the bindings.
    pub generation: u64,
    /// The native document.
    pub values: Document,
    /// Secrets that the gateway's environment receives.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_bindings: SecretBindings,
    /// When it was created.
    pub created_at: Timestamp,
}

impl Configuration {
    /// Most bindings that one Configuration may have.
    pub const MAX_SECRET_BINDINGS: usize = 64;
}

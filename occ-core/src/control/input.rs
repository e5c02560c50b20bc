//! What callers send. Each type is the closed body of its API request; what parsed has the right form.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::{
    iam::{ExactResource, Permission},
    id::{ConfigurationId, NamespaceId},
    resource::{
        BackendId, ConfigurationKind, Document, ExecutionMode, HarnessAuth, Name, PrincipalId, SecretBindings,
        WorkspaceFiles,
    },
};

/// The first set-up of an Installation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bootstrap {
    /// The Installation's name.
    pub name: Name,
    /// What the first administrator is called.
    pub administrator: Name,
}

/// A new service key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateServiceKey {
    /// Whose key it is; never an Agent's principal.
    pub principal_id: PrincipalId,
    /// What it is called.
    pub name: Name,
    /// The only Namespace that it opens; every one when none is named.
    #[serde(default)]
    pub namespace_id: Option<NamespaceId>,
    /// How long it lasts, in seconds: 86,400 to 31,536,000; 30 days when not said.
    #[serde(default)]
    pub expires_in: Option<u64>,
}

/// A new Namespace (spec/engine 1.4).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateNamespace {
    /// Its name: unique in the Installation, and not reusable after deletion.
    pub name: Name,
    /// A namespace of the Compute to adopt instead of creating one.
    #[serde(default)]
    pub existing_namespace: Option<String>,
}

/// A new Configuration (spec/engine 1.5).
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateConfiguration {
    /// What it is for.
    pub kind: ConfigurationKind,
    /// The native document.
    pub values: Document,
    /// Secrets that the gateway's environment receives; at most 64.
    #[serde(default)]
    pub secret_bindings: SecretBindings,
}

/// A Configuration's next generation.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateConfiguration {
    /// The native document, whole.
    pub values: Document,
    /// The bindings, whole; kept as they are when not said.
    #[serde(default)]
    pub secret_bindings: Option<SecretBindings>,
}

/// A new Agent (seed: Agents, "Supported operations").
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateAgent {
    /// Its name, unique in the Namespace.
    pub name: Name,
    /// The Configuration that deployments snapshot.
    pub configuration_id: ConfigurationId,
    /// How the Harness runs.
    #[serde(default)]
    pub execution_mode: ExecutionMode,
    /// The associated Backend.
    #[serde(default)]
    pub backend_id: Option<BackendId>,
    /// How the model credential is obtained.
    #[serde(default)]
    pub harness_auth: Option<HarnessAuth>,
    /// Files that the first deployment writes into the workspace.
    #[serde(default)]
    pub initial_workspace_files: WorkspaceFiles,
    /// SHA-256 of the stock files that the caller saw, in hexadecimal.
    #[serde(default)]
    pub workspace_defaults_id: Option<String>,
}

/// A change of an Agent's draft. What is not said is kept; `null` clears.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateAgent {
    /// The Configuration that deployments snapshot; always said.
    pub configuration_id: ConfigurationId,
    /// How the Harness runs.
    #[serde(default)]
    pub execution_mode: Option<ExecutionMode>,
    /// The associated Backend.
    #[serde(default, deserialize_with = "said")]
    pub backend_id: Option<Option<BackendId>>,
    /// How the model credential is obtained.
    #[serde(default, deserialize_with = "said")]
    pub harness_auth: Option<Option<HarnessAuth>>,
}

impl UpdateAgent {
    /// A change of nothing but the Configuration.
    pub const fn configuration(configuration_id: ConfigurationId) -> Self {
        Self {
            configuration_id,
            execution_mode: None,
            backend_id: None,
            harness_auth: None,
        }
    }
}

/// A new Role of a Namespace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateRole {
    /// What it permits: 1 to 64, each once.
    pub permissions: Vec<Permission>,
}

/// A new access binding of a Namespace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateAccessBinding {
    /// Who is granted: a person, or a service principal of the Namespace.
    pub principal_id: PrincipalId,
    /// A Role of the Namespace.
    pub role_id: String,
    /// The exact resource that the grant is confined to; every one of the Namespace when none is named.
    #[serde(default)]
    pub resource: Option<ExactResource>,
}

/// Tells `null` from a field that is not there.
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

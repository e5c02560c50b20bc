//! What callers send. Each type is the closed body of its API request; what parsed has the right form.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

use crate::{
    iam::{ExactResource, Permission},
    id::{ConfigurationId, NamespaceId},
    resource::{
        AccountCredentialKind, AgentCredentialSource, Approver, BackendId, ConfigurationKind, Document, ExecutionMode,
        HarnessAuth, LaunchSettings, Name, Plugins, PrincipalId, SecretBindings, SecretSource, SourceField, SourceType,
        WorkspaceFiles,
    },
    store::SavedField,
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
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
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
    /// Credential sources that the Agent uses; at most 8.
    #[serde(default)]
    pub credential_sources: Vec<AgentCredentialSource>,
    /// Plugins, by their catalogue id; none when not said.
    #[serde(default)]
    pub plugins: Plugins,
    /// Who may approve for plugins that say nothing themselves; at most 64.
    #[serde(default)]
    pub plugin_approvers: Option<Vec<Approver>>,
    /// Files that the first deployment writes into the workspace.
    #[serde(default)]
    pub initial_workspace_files: WorkspaceFiles,
    /// SHA-256 of the stock files that the caller saw, in hexadecimal.
    #[serde(default)]
    pub workspace_defaults_id: Option<String>,
}

/// What a change says of a field that can be cleared: nothing, `null`, or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// The field is not there: what is saved is kept.
    #[default]
    Keep,
    /// `null`: what is saved is cleared.
    Clear,
    /// A value: what is saved is replaced.
    Set(T),
}

impl<T> Patch<T> {
    /// The value that the change names.
    pub const fn named(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }

    /// Changes what is saved.
    pub fn apply(self, saved: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *saved = None,
            Self::Set(value) => *saved = Some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Nullable_{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

/// What may be left out, and is something when it is said: `null` is refused.
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A change of an Agent's draft. What is not said is kept; `null` clears what can be cleared so.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateAgent {
    /// The Configuration that deployments snapshot; always said.
    pub configuration_id: ConfigurationId,
    /// How the Harness runs.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "ExecutionMode")]
    pub execution_mode: Option<ExecutionMode>,
    /// The associated Backend.
    #[serde(default)]
    pub backend_id: Patch<BackendId>,
    /// How the model credential is obtained.
    #[serde(default)]
    pub harness_auth: Patch<HarnessAuth>,
    /// Credential sources that the Agent uses, whole.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Vec<AgentCredentialSource>")]
    pub credential_sources: Option<Vec<AgentCredentialSource>>,
    /// Plugins, whole: `{}` clears them.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "Plugins")]
    pub plugins: Option<Plugins>,
    /// Who may approve for plugins that say nothing themselves; `[]` denies.
    #[serde(default)]
    pub plugin_approvers: Patch<Vec<Approver>>,
}

/// A new service account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateServiceAccount {
    /// Its name, unique among the Namespace's accounts.
    pub name: Name,
    /// A credential to import; none when not said.
    #[serde(default)]
    pub credential: Option<SetAccountCredential>,
}

/// The credential of a service account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetAccountCredential {
    /// What it is; an access token is issued, never imported.
    pub kind: AccountCredentialKind,
    /// The Secret that holds it.
    pub source: SecretSource,
}

/// A new credential source.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegisterCredentialSource {
    /// Its name, unique among the Namespace's sources.
    pub name: Name,
    /// What it is, in the gateway's catalogue.
    #[serde(rename = "type")]
    pub kind: SourceType,
    /// Its settings: exactly those of its type; at most 32, each of at most 2048 characters.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 32))]
    pub config: BTreeMap<SourceField, String>,
    /// The Secrets that its credentials are read from, now: exactly those of its type.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 16))]
    pub secrets: BTreeMap<SourceField, SecretSource>,
}

/// Reads the credentials of a source anew.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateCredentialSource {
    /// The Secrets that its credentials are read from; those that it had when not said.
    #[serde(default, deserialize_with = "said")]
    #[schemars(with = "BTreeMap<SourceField, SecretSource>", extend("maxProperties" = 16))]
    pub secrets: Option<BTreeMap<SourceField, SecretSource>>,
}

/// A new Preset.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreatePreset {
    /// Its name, unique among the Namespace's Presets.
    pub name: Name,
    /// What is copied into drafts.
    pub settings: LaunchSettings,
}

/// A change of a Preset; what is not said is kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdatePreset {
    /// Its name.
    #[serde(default)]
    pub name: Option<Name>,
    /// What is copied, whole.
    #[serde(default)]
    pub settings: Option<LaunchSettings>,
}

impl UpdateAgent {
    /// The saved settings that the change replaces or clears, so that it matters no more whether they can be read.
    pub(super) fn replaced(&self) -> Vec<SavedField> {
        let said = [
            (self.plugins.is_some(), SavedField::Plugins),
            (self.plugin_approvers != Patch::Keep, SavedField::PluginApprovers),
            (self.credential_sources.is_some(), SavedField::CredentialSources),
            (self.harness_auth != Patch::Keep, SavedField::HarnessAuth),
        ];
        said.into_iter()
            .filter_map(|(said, field)| said.then_some(field))
            .collect()
    }

    /// A change of nothing but the Configuration.
    pub const fn configuration(configuration_id: ConfigurationId) -> Self {
        Self {
            configuration_id,
            execution_mode: None,
            backend_id: Patch::Keep,
            harness_auth: Patch::Keep,
            credential_sources: None,
            plugins: None,
            plugin_approvers: Patch::Keep,
        }
    }
}

/// A new Role.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateRole {
    /// What it permits: 1 to 64, each once.
    pub permissions: Vec<Permission>,
}

/// A new access binding.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateAccessBinding {
    /// Who is granted: a person, or for a Namespace one of its service principals.
    pub principal_id: PrincipalId,
    /// A Role of the Installation, or for a Namespace one of its own.
    pub role_id: String,
    /// The exact resource of the Namespace that the grant is confined to; every one when none is named.
    #[serde(default)]
    pub resource: Option<ExactResource>,
}

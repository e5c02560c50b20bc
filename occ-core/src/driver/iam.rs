//! The IAM contract: who may do what (spec/engine 11, spec/contracts 12.1).

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DriverIdentity, EffectResult, LifecycleHooks, OperationContext};
use crate::{
    id::{
        AgentId, ConfigurationId, CredentialSourceId, InstallationId, NamespaceId, PresetId, RevisionId, SecretId,
        ServiceAccountId,
    },
    resource::PrincipalId,
};

/// What is done. No action implies another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Create below a parent.
    Create,
    /// Read.
    Read,
    /// Change.
    Update,
    /// Delete.
    Delete,
    /// Deploy an Agent.
    Deploy,
    /// Use or steer at run time.
    Operate,
    /// Administer.
    Administer,
    /// Read runtime logs.
    ReadLogs,
    /// Use.
    Use,
}

impl Action {
    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Read => "read",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Deploy => "deploy",
            Self::Operate => "operate",
            Self::Administer => "administer",
            Self::ReadLogs => "read_logs",
            Self::Use => "use",
        }
    }
}

/// What kind of thing it is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// The Installation.
    Installation,
    /// A Namespace.
    Namespace,
    /// A Configuration.
    Configuration,
    /// A Preset.
    Preset,
    /// An Agent.
    Agent,
    /// An `AgentRevision`.
    AgentRevision,
    /// A Secret.
    Secret,
    /// A `CredentialSource`.
    CredentialSource,
    /// A `ServiceAccount`.
    ServiceAccount,
}

impl ResourceKind {
    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Installation => "installation",
            Self::Namespace => "namespace",
            Self::Configuration => "configuration",
            Self::Preset => "preset",
            Self::Agent => "agent",
            Self::AgentRevision => "agent_revision",
            Self::Secret => "secret",
            Self::CredentialSource => "credential_source",
            Self::ServiceAccount => "service_account",
        }
    }
}

/// One exact thing: its kind, its id and the Namespace that owns it. For `create`, the id is the parent's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceRef {
    /// Its kind.
    pub kind: ResourceKind,
    /// Its id.
    pub id: String,
    /// The owning Namespace; none for the Installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<NamespaceId>,
}

impl fmt::Display for ResourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.id)
    }
}

macro_rules! resource_refs {
    ($($(#[$doc:meta])* $name:ident($id:ty) = $kind:ident;)*) => {
        impl ResourceRef {
            $($(#[$doc])* pub fn $name(namespace: NamespaceId, id: $id) -> Self {
                Self { kind: ResourceKind::$kind, id: id.to_string(), namespace_id: Some(namespace) }
            })*

            /// The Installation.
            pub fn installation(id: InstallationId) -> Self {
                Self { kind: ResourceKind::Installation, id: id.to_string(), namespace_id: None }
            }

            /// A Namespace.
            pub fn namespace(id: NamespaceId) -> Self {
                Self { kind: ResourceKind::Namespace, id: id.to_string(), namespace_id: Some(id) }
            }

            /// The collection of `kind` below a Namespace, for `create`.
            pub fn collection(kind: ResourceKind, namespace: NamespaceId) -> Self {
                Self { kind, id: namespace.to_string(), namespace_id: Some(namespace) }
            }

            /// The collection of Namespaces, for `create`.
            pub fn namespaces(installation: InstallationId) -> Self {
                Self { kind: ResourceKind::Namespace, id: installation.to_string(), namespace_id: None }
            }
        }
    };
}

resource_refs! {
    /// A Configuration.
    configuration(ConfigurationId) = Configuration;
    /// An Agent.
    agent(AgentId) = Agent;
    /// An `AgentRevision`.
    agent_revision(RevisionId) = AgentRevision;
    /// A Secret.
    secret(SecretId) = Secret;
    /// A `CredentialSource`.
    credential_source(CredentialSourceId) = CredentialSource;
    /// A `ServiceAccount`.
    service_account(ServiceAccountId) = ServiceAccount;
    /// A Preset.
    preset(PresetId) = Preset;
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessRequest {
    /// Who acts.
    pub principal: PrincipalId,
    /// What is done.
    pub action: Action,
    /// To what.
    pub resource: ResourceRef,
}

/// What a decision rests on; sorted, without repetition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Evidence {
    /// The identity that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_id: Option<String>,
    /// Groups that applied.
    pub group_ids: Vec<String>,
    /// Bindings that granted it.
    pub binding_ids: Vec<String>,
    /// Roles that granted it.
    pub role_ids: Vec<String>,
    /// Restrictions that forbade it.
    pub restriction_ids: Vec<String>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Whether it may be done.
    pub allowed: bool,
    /// The driver that decided. Another id than the selected driver's is never an allow.
    pub driver_id: String,
    /// What it rests on.
    pub evidence: Evidence,
}

/// What sort of identity a principal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentityKind {
    /// A person; of the whole Installation.
    Human,
    /// A service principal: of the Installation, of one Namespace, or of one Agent. Never granted anything through a group.
    Service,
}

/// An identity, as far as the engine needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The principal.
    pub id: PrincipalId,
    /// What sort it is.
    pub kind: IdentityKind,
    /// The Namespace that a service principal is confined to.
    pub namespace_id: Option<NamespaceId>,
    /// The Agent that owns it, for an Agent's service principal.
    pub agent_id: Option<AgentId>,
}

/// Decides who may do what. Used by the API and by the worker; an error is never an allow.
#[async_trait]
pub trait IamDriver: Send + Sync {
    /// Who this instance is.
    fn identity(&self) -> &DriverIdentity;

    /// The identity of a principal; `None` when there is none.
    async fn lookup(&self, cx: &OperationContext, principal: &PrincipalId) -> EffectResult<Option<Identity>>;

    /// Decides one question.
    async fn authorize(&self, cx: &OperationContext, request: &AccessRequest) -> EffectResult<Decision>;

    /// Decides several questions about the same state of the policy, in order.
    async fn authorize_all(&self, cx: &OperationContext, requests: &[AccessRequest]) -> EffectResult<Vec<Decision>> {
        let mut decisions = Vec::with_capacity(requests.len());
        for request in requests {
            decisions.push(self.authorize(cx, request).await?);
        }
        Ok(decisions)
    }

    /// Whether it decides by the Installation's own policy. The engine then reads that together with the rows that an admission needs,
    /// and hands it in: [`OperationContext::known_grants`].
    fn decides_by_stored_policy(&self) -> bool {
        false
    }

    /// Hooks that it wants around workloads.
    fn lifecycle_hooks(&self) -> Option<Arc<dyn LifecycleHooks>> {
        None
    }
}

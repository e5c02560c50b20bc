//! The control plane as a service: every operation that the HTTP API, the command line and embedders share.
//!
//! An operation asks the IAM Driver first, gathers what it needs with no transaction open, decides purely
//! ([`admission`](crate::admission)), and commits one [`Change`](crate::store::Change) with what the decision rests on as
//! preconditions. When something changed meanwhile it gathers again. Denials are recorded before they are answered.

mod caller;
mod input;
mod view;

use std::sync::Arc;

pub use caller::Caller;
pub use input::{
    Bootstrap, CreateAccessBinding, CreateAgent, CreateConfiguration, CreateNamespace, CreateRole, CreateServiceKey,
    UpdateAgent, UpdateConfiguration,
};
pub use view::{
    Bootstrapped, ConfigurationSummary, ConsumersView, CredentialStatus, DiagnosticsView, IssuedKey, LogsView,
    RevisionView, SecretView, ServiceKeyView, ServicePrincipalView,
};

use crate::{
    admission::Refusal,
    driver::{GatewayEndpoint, LogQuery},
    iam::{AccessBinding, Role},
    id::{AgentId, ConfigurationId, NamespaceId, RequestId, RevisionId, SecretId, ServiceKeyId},
    installation::Drivers,
    reason::ApiCode,
    resource::{Agent, Configuration, Installation, Name, Namespace},
    secret_value::SecretValue,
    status::Deployment,
    store::Store,
};

/// What every operation answers with.
pub type Answer<T> = Result<T, Refusal>;

/// The control plane. A cheap handle: clone it freely.
#[derive(Clone)]
pub struct ControlPlane {
    store: Arc<dyn Store>,
    drivers: Arc<Drivers>,
}

macro_rules! skeleton {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {
        impl ControlPlane {$(
            $(#[$doc])*
            #[allow(clippy::unused_async, clippy::missing_errors_doc)]
            pub async fn $name(&self, $($arg: $ty),*) -> Answer<$out> {
                $(let _ = $arg;)*
                Err(Refusal::new(ApiCode::NotImplemented))
            }
        )*}
    };
}

impl ControlPlane {
    /// Over this store and these drivers.
    pub fn new(store: Arc<dyn Store>, drivers: Arc<Drivers>) -> Self {
        Self { store, drivers }
    }

    /// The selected drivers.
    pub fn drivers(&self) -> &Arc<Drivers> {
        &self.drivers
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }
}

skeleton! {
    /// Sets the Installation up: an administrator with a key, and the Namespace `default`. Once a database.
    fn bootstrap(input: Bootstrap) -> Bootstrapped;
    /// Who presents this key (`x-api-key`). Every failure reads the same.
    fn authenticate(presented: &str, request: RequestId) -> Caller;
    /// The Installation.
    fn installation(caller: &Caller) -> Installation;
    /// Makes a service key.
    fn create_service_key(caller: &Caller, input: CreateServiceKey) -> IssuedKey;
    /// Ends a service key.
    fn revoke_service_key(caller: &Caller, id: ServiceKeyId) -> ();
    /// Creates a Namespace and queues its provisioning.
    fn create_namespace(caller: &Caller, input: CreateNamespace) -> Namespace;
    /// A Namespace.
    fn namespace(caller: &Caller, id: NamespaceId) -> Namespace;
    /// The Namespaces that the caller may read.
    fn namespaces(caller: &Caller) -> Vec<Namespace>;
    /// Deletes an empty Namespace, or repeats a failed deletion.
    fn delete_namespace(caller: &Caller, id: NamespaceId) -> Namespace;
    /// Creates a Configuration.
    fn create_configuration(caller: &Caller, namespace: NamespaceId, input: CreateConfiguration) -> Configuration;
    /// A Configuration with its document.
    fn configuration(caller: &Caller, namespace: NamespaceId, id: ConfigurationId) -> Configuration;
    /// The Configurations that the caller may read, without their documents.
    fn configurations(caller: &Caller, namespace: NamespaceId) -> Vec<ConfigurationSummary>;
    /// Makes a Configuration's next generation.
    fn update_configuration(caller: &Caller, namespace: NamespaceId, id: ConfigurationId, input: UpdateConfiguration) -> Configuration;
    /// Deletes a Configuration that no Agent refers to.
    fn delete_configuration(caller: &Caller, namespace: NamespaceId, id: ConfigurationId) -> ();
    /// Creates a Secret.
    fn create_secret(caller: &Caller, namespace: NamespaceId, name: Name, value: SecretValue) -> SecretView;
    /// A Secret and who refers to it; never its value.
    fn secret(caller: &Caller, namespace: NamespaceId, id: SecretId) -> SecretView;
    /// The Secrets that the caller may read.
    fn secrets(caller: &Caller, namespace: NamespaceId) -> Vec<SecretView>;
    /// Replaces a Secret's value.
    fn update_secret(caller: &Caller, namespace: NamespaceId, id: SecretId, value: SecretValue) -> SecretView;
    /// Deletes a Secret that nobody refers to.
    fn delete_secret(caller: &Caller, namespace: NamespaceId, id: SecretId) -> ();
    /// Creates an Agent; starts nothing.
    fn create_agent(caller: &Caller, namespace: NamespaceId, input: CreateAgent) -> Agent;
    /// An Agent.
    fn agent(caller: &Caller, namespace: NamespaceId, id: AgentId) -> Agent;
    /// The Agents that the caller may read.
    fn agents(caller: &Caller, namespace: NamespaceId) -> Vec<Agent>;
    /// Changes an Agent's draft; changes no version and queues nothing.
    fn update_agent(caller: &Caller, namespace: NamespaceId, id: AgentId, input: UpdateAgent) -> Agent;
    /// Saves the draft as the next version and queues its deployment.
    fn deploy_agent(caller: &Caller, namespace: NamespaceId, id: AgentId) -> RevisionView;
    /// Sets the desired state to stopped and queues the stop.
    fn stop_agent(caller: &Caller, namespace: NamespaceId, id: AgentId) -> Agent;
    /// Begins the deletion of an Agent, or repeats a failed one.
    fn delete_agent(caller: &Caller, namespace: NamespaceId, id: AgentId) -> Agent;
    /// The versions of an Agent that the caller may read, oldest first.
    fn revisions(caller: &Caller, namespace: NamespaceId, agent: AgentId) -> Vec<RevisionView>;
    /// A version.
    fn revision(caller: &Caller, namespace: NamespaceId, agent: AgentId, id: RevisionId) -> RevisionView;
    /// What became of a deployment, from saved rows alone.
    fn deployment(caller: &Caller, namespace: NamespaceId, agent: AgentId, id: RevisionId) -> Deployment;
    /// Fresh checks of a version.
    fn diagnose(caller: &Caller, namespace: NamespaceId, agent: AgentId, id: RevisionId) -> DiagnosticsView;
    /// A version's recent log lines, redacted.
    fn runtime_logs(caller: &Caller, namespace: NamespaceId, agent: AgentId, id: RevisionId, query: LogQuery) -> LogsView;
    /// Where the selected version's gateway is, for administrators of the Agent.
    fn gateway_endpoint(caller: &Caller, namespace: NamespaceId, agent: AgentId) -> GatewayEndpoint;
    /// Whether the Agent's generated transport credentials exist.
    fn runtime_credentials(caller: &Caller, namespace: NamespaceId, agent: AgentId) -> CredentialStatus;
    /// Creates the Agent's transport credentials before its first version.
    fn provision_runtime_credentials(caller: &Caller, namespace: NamespaceId, agent: AgentId) -> CredentialStatus;
    /// Creates a Role of a Namespace; it never changes.
    fn create_role(caller: &Caller, namespace: NamespaceId, input: CreateRole) -> Role;
    /// A Role of a Namespace.
    fn role(caller: &Caller, namespace: NamespaceId, id: &str) -> Role;
    /// The Roles of a Namespace.
    fn roles(caller: &Caller, namespace: NamespaceId) -> Vec<Role>;
    /// Deletes a Role that no binding names.
    fn delete_role(caller: &Caller, namespace: NamespaceId, id: &str) -> ();
    /// Grants a Role of a Namespace; the binding never changes.
    fn create_access_binding(caller: &Caller, namespace: NamespaceId, input: CreateAccessBinding) -> AccessBinding;
    /// An access binding of a Namespace.
    fn access_binding(caller: &Caller, namespace: NamespaceId, id: &str) -> AccessBinding;
    /// The access bindings of a Namespace.
    fn access_bindings(caller: &Caller, namespace: NamespaceId) -> Vec<AccessBinding>;
    /// Deletes an access binding.
    fn delete_access_binding(caller: &Caller, namespace: NamespaceId, id: &str) -> ();
    /// The service principals that a Namespace's policy can name; its Agents' are among them.
    fn service_principals(caller: &Caller, namespace: NamespaceId) -> Vec<ServicePrincipalView>;
}

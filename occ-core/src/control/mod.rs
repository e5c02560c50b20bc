//! The control plane as a service: every operation that the HTTP API, the command line and embedders share.
//!
//! An operation asks the IAM Driver first, gathers what it needs with no transaction open, decides purely
//! ([`admission`](crate::admission)), and commits one [`Change`](crate::store::Change) with what the decision rests on as
//! preconditions. When something changed meanwhile it gathers again. Denials are recorded before they are answered.

mod accounts;
mod agent_token;
mod agents;
mod audit;
mod backends;
mod caller;
mod capabilities;
mod commit;
mod conditions;
mod configurations;
mod credentials;
mod deploy;
mod input;
mod installation;
mod issuing;
mod key;
mod lifecycle;
mod namespaces;
mod news;
mod operation;
mod page;
mod people;
mod plugins;
mod policy;
mod presets;
mod redaction;
mod retry;
mod revisions;
mod runtime;
mod secrets;
mod sources;
mod token;
mod view;
mod workspace;

use std::sync::{Arc, OnceLock};

pub use agent_token::{AgentToken, CreateAgentToken};
pub use audit::AuditVerification;
pub use caller::{Caller, Credential};
pub use capabilities::{InstallationCapabilities, InstallationView, PluginPoliciesView};
pub use conditions::{Conditions, IfMatch, Once, Tag};
pub use input::{
    Bootstrap, CreateAccessBinding, CreateAgent, CreateConfiguration, CreateNamespace, CreatePreset, CreateRole,
    CreateServiceAccount, CreateServiceKey, Patch, RegisterCredentialSource, SetAccountCredential, UpdateAgent,
    UpdateConfiguration, UpdateCredentialSource, UpdatePreset,
};
pub use lifecycle::{StopError, StopRequest, StopView};
pub use news::News;
pub use page::{Cursor, InvalidCursor, PAGE_DEFAULT, PAGE_MAX, Page, PageQuery};
pub use people::{
    AccountCode, CodeAttempt, CreateAccount, CreatedAccount, FederatedAttempt, FirstSignIn, Origin, PasswordAttempt,
    PasswordChange, PersonView, SessionToken, SessionView, SignedIn, VerifiedIdentity,
};
pub use plugins::{NamedPlugin, PluginCatalogView};
pub use sources::WithdrawalView;
pub(crate) use sources::source_identity;
pub use view::{
    AccountCredentialView, AccountView, AgentView, Bootstrapped, ConfigurationReadError, ConfigurationSummary,
    ConsumersView, CredentialSourceStatus, CredentialSourceView, CredentialStatus, DiagnosticsView, IssuedKey,
    LogsView, RevisionRead, RevisionView, SecretView, ServiceKeyView, ServicePrincipalView, UnreadableRevision,
};
pub use workspace::{WorkspaceFileView, WrittenFile};

use crate::{admission::Refusal, installation::Drivers, resource::Installation, store::Store};

/// What every operation answers with.
pub type Answer<T> = Result<T, Refusal>;

/// The control plane. A cheap handle: clone it freely.
#[derive(Clone)]
pub struct ControlPlane {
    store: Arc<dyn Store>,
    drivers: Arc<Drivers>,
    /// It never changes once it exists.
    installation: Arc<OnceLock<Installation>>,
    people: Arc<people::SignIn>,
    agent_tokens: Arc<agent_token::AgentTokens>,
}

impl ControlPlane {
    /// Over this store and these drivers.
    pub fn new(store: Arc<dyn Store>, drivers: Arc<Drivers>) -> Self {
        Self {
            store,
            drivers,
            installation: Arc::default(),
            people: Arc::default(),
            agent_tokens: Arc::default(),
        }
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

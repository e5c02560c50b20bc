//! The control plane as a service: every operation that the HTTP API, the command line and embedders share.
//!
//! An operation asks the IAM Driver first, gathers what it needs with no transaction open, decides purely
//! ([`admission`](crate::admission)), and commits one [`Change`](crate::store::Change) with what the decision rests on as
//! preconditions. When something changed meanwhile it gathers again. Denials are recorded before they are answered.

mod agents;
mod caller;
mod commit;
mod configurations;
mod credentials;
mod deploy;
mod input;
mod installation;
mod key;
mod lifecycle;
mod namespaces;
mod operation;
mod policy;
mod redaction;
mod retry;
mod revisions;
mod runtime;
mod secrets;
mod view;

use std::sync::{Arc, OnceLock};

pub use caller::Caller;
pub use input::{
    Bootstrap, CreateAccessBinding, CreateAgent, CreateConfiguration, CreateNamespace, CreateRole, CreateServiceKey,
    Patch, UpdateAgent, UpdateConfiguration,
};
pub use view::{
    Bootstrapped, ConfigurationSummary, ConsumersView, CredentialStatus, DiagnosticsView, IssuedKey, LogsView,
    RevisionView, SecretView, ServiceKeyView, ServicePrincipalView,
};

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
}

impl ControlPlane {
    /// Over this store and these drivers.
    pub fn new(store: Arc<dyn Store>, drivers: Arc<Drivers>) -> Self {
        Self {
            store,
            drivers,
            installation: Arc::default(),
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

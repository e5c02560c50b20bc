//! What a driver's author gives the suite.

use std::sync::Arc;

use async_trait::async_trait;
use occ_core::{
    driver::{AgentRef, ComputeDriver, GatewayEndpoint, SecretAccess},
    plan::WorkloadPlan,
    resource::ExecutionMode,
};

use super::{http, plan, secrets::Canaries};

/// One fresh place for a Compute to work in, such as a data directory; gone with the value.
#[async_trait]
pub trait Subject: Send + Sync {
    /// A driver over this place. Each call makes another one, as the control plane does when it starts again.
    fn driver(&self) -> Arc<dyn ComputeDriver>;

    /// What runs for a version. Ordinarily [`python_server`](plan::python_server); a plan of your own must do what the wish says
    /// and answer what [`plan`] says.
    fn plan(&self, wish: &Wish) -> WorkloadPlan {
        plan::python_server(wish)
    }

    /// How versions run. A dedicated one needs a [`Subject::plan`] of two components.
    fn mode(&self) -> ExecutionMode {
        ExecutionMode::Embedded
    }

    /// The secrets of a version. A Compute that refers to a backend's own objects needs them to exist there, with the values that
    /// [`Canaries`] answers.
    fn secrets(&self) -> Arc<dyn SecretAccess> {
        Arc::new(Canaries)
    }

    /// Asks a version's gateway for `path` as a client would: the body of a 200, `None` when nothing answers. Ordinarily over plain
    /// HTTP at the endpoint's URL.
    async fn get(&self, endpoint: &GatewayEndpoint, path: &str) -> Option<Vec<u8>> {
        http::get(&endpoint.url, path).await
    }

    /// A look at what the driver keeps, when you can give one.
    fn inventory(&self) -> Option<&dyn Inventory> {
        None
    }

    /// A way to put somebody else's object into the driver's way, when you can give one.
    fn foreign(&self) -> Option<&dyn Foreign> {
        None
    }
}

/// A look at what the driver keeps, past the driver.
#[async_trait]
pub trait Inventory: Send + Sync {
    /// Every object in the subject's place, by a name that is its alone, with its bytes where it has any.
    async fn items(&self) -> Vec<(String, Vec<u8>)>;
}

/// Somebody else's objects.
#[async_trait]
pub trait Foreign: Inventory {
    /// Puts an object where the driver would keep this Agent: with the right name and with other ownership labels, or none. The
    /// Agent's Namespace is provided already.
    async fn plant(&self, agent: &AgentRef);
}

/// What the suite wants a version to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// What the component answers when it is asked for its version.
    pub version: String,
    /// The check of the model finds that the credential is refused.
    pub refused: bool,
    /// The component receives the password that the Compute generated, as `PASSWORD`.
    pub password: bool,
    /// The workspace is initialized natively before the component starts.
    pub workspace: bool,
}

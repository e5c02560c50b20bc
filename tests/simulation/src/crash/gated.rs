//! A store and a Compute whose every answer is a point at which the worker may die.

use std::sync::Arc;

use async_trait::async_trait;
use occ_core::{
    driver::{
        ActivationOrder, AgentRef, ComputeAdmission, ComputeDriver, ComputeProfile, DriverIdentity, EffectResult,
        Maintenance, NamespaceState, OperationContext, PreflightWarning, RevisionContext, RevisionObservation,
        RevisionRef, RuntimeCredentials, StateEntry, StateReader, Stop,
    },
    iam::{Grants, PolicyReader},
    resource::{Namespace, PrincipalId},
    store::{Change, CommitError, PassRead, Store, StoreResult, Wait},
    work::{Claim, ClaimToken, Lease, Target},
};
use tokio::sync::watch;

use super::gate::Gate;

/// The worker's way to the store.
pub(super) struct GatedStore {
    pub inner: Arc<dyn Store>,
    pub gate: Arc<Gate>,
}

#[async_trait]
impl StateReader for GatedStore {
    async fn read(&self, driver: &str, key: &str) -> EffectResult<Option<StateEntry>> {
        StateReader::read(&*self.inner, driver, key).await
    }
}

#[async_trait]
impl PolicyReader for GatedStore {
    async fn grants(&self, principal: &PrincipalId) -> EffectResult<Grants> {
        self.gate.point().await;
        self.inner.grants(principal).await
    }
}

macro_rules! passed_on {
    ($(fn $name:ident(&self $(, $arg:ident: $ty:ty)*) -> $out:ty;)*) => {
        #[async_trait]
        impl Store for GatedStore {
            $(async fn $name(&self $(, $arg: $ty)*) -> $out {
                self.inner.$name($($arg),*).await
            })*

            async fn pass_read(&self, target: &Target) -> StoreResult<PassRead> {
                self.gate.point().await;
                self.inner.pass_read(target).await
            }

            async fn claim(&self, limit: usize, lease: Lease) -> StoreResult<Vec<Claim>> {
                let claims = self.inner.claim(limit, lease).await?;
                if !claims.is_empty() {
                    self.gate.point().await;
                }
                Ok(claims)
            }

            fn movements(&self) -> watch::Receiver<()> {
                self.inner.movements()
            }

            async fn commit(&self, change: Change) -> Result<(), CommitError> {
                self.gate.point().await;
                let committed = self.inner.commit(change).await;
                self.gate.point().await;
                committed
            }
        }
    };
}

occ_test_support::store_reads! { passed_on
    fn renew(&self, token: ClaimToken, lease: Lease) -> StoreResult<bool>;
    fn recover(&self, lease: Lease) -> StoreResult<usize>;
    fn postpone(&self, waits: &[Wait]) -> StoreResult<Vec<bool>>;
    fn work_arrived(&self) -> ();
}

/// The worker's way to the Compute.
pub(super) struct GatedCompute {
    pub inner: Arc<dyn ComputeDriver>,
    pub gate: Arc<Gate>,
}

macro_rules! effects {
    ($(fn $name:ident($arg:ident: $ty:ty) -> $out:ty;)*) => {
        #[async_trait]
        impl ComputeDriver for GatedCompute {
            $(async fn $name(&self, cx: &OperationContext, $arg: $ty) -> EffectResult<$out> {
                self.gate.point().await;
                let answer = self.inner.$name(cx, $arg).await;
                self.gate.point().await;
                answer
            })*

            fn identity(&self) -> &DriverIdentity {
                self.inner.identity()
            }

            fn profile(&self) -> ComputeProfile {
                self.inner.profile()
            }

            fn admission(&self) -> &dyn ComputeAdmission {
                self.inner.admission()
            }

            async fn preflight(&self, cx: &OperationContext) -> EffectResult<Vec<PreflightWarning>> {
                self.inner.preflight(cx).await
            }

            fn activation_order(&self) -> ActivationOrder {
                self.inner.activation_order()
            }

            fn requires_stopped_predecessors(&self, revision: &RevisionRef) -> bool {
                self.inner.requires_stopped_predecessors(revision)
            }

            fn runtime_credentials(&self) -> Option<&dyn RuntimeCredentials> {
                self.inner.runtime_credentials()
            }

            fn maintenance(&self) -> Option<&dyn Maintenance> {
                self.inner.maintenance()
            }
        }
    };
}

effects! {
    fn ensure_namespace(namespace: &Namespace) -> NamespaceState;
    fn delete_namespace(namespace: &Namespace) -> NamespaceState;
    fn prepare_revision(revision: &RevisionContext) -> RevisionObservation;
    fn activate_revision(revision: &RevisionContext) -> RevisionObservation;
    fn deactivate_revision(revision: &RevisionRef) -> ();
    fn stop_revision(revision: &RevisionRef) -> Stop;
    fn retire_revision(revision: &RevisionRef) -> Stop;
    fn delete_agent(agent: &AgentRef) -> Stop;
}

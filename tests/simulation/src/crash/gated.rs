//! A store and a Compute whose every answer is a point at which the worker may die.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use occ_core::{
    audit::chain::{AuditQuery, AuditRecord},
    driver::{
        ActivationOrder, AgentRef, ComputeAdmission, ComputeDriver, ComputeProfile, DriverIdentity, EffectResult,
        Identity, Maintenance, NamespaceState, OperationContext, PreflightWarning, RevisionContext,
        RevisionObservation, RevisionRef, RuntimeCredentials, StateEntry, StateReader, Stop,
    },
    iam::{AccessBinding, Grants, PolicyReader, Role},
    id::{AgentId, ConfigurationId, NamespaceId, RevisionId, SecretId, ServiceKeyId},
    resource::{Installation, Namespace, OwnedKind, PrincipalId, Secret},
    store::{
        AgentRow, Change, CommitError, ConfigurationRow, Consumers, DeployRead, DeploymentRow, FirstAnswer,
        NamespaceRow, OwnedRow, PassRead, QueueDepth, RevisionRow, ServiceKeyRow, Store, StoreResult, WorkState,
    },
    time::Timestamp,
    work::{Claim, ClaimToken, Lease, NewWork, Target},
};

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

            async fn commit(&self, change: Change) -> Result<(), CommitError> {
                self.gate.point().await;
                let committed = self.inner.commit(change).await;
                self.gate.point().await;
                committed
            }
        }
    };
}

passed_on! {
    fn now(&self) -> StoreResult<Timestamp>;
    fn installation(&self) -> StoreResult<Option<Installation>>;
    fn namespace(&self, id: NamespaceId) -> StoreResult<Option<NamespaceRow>>;
    fn namespaces(&self) -> StoreResult<Vec<NamespaceRow>>;
    fn namespace_contents(&self, id: NamespaceId, limit: u32) -> StoreResult<Vec<(&'static str, String)>>;
    fn configuration(&self, namespace: NamespaceId, id: ConfigurationId) -> StoreResult<Option<ConfigurationRow>>;
    fn configurations(&self, namespace: NamespaceId) -> StoreResult<Vec<ConfigurationRow>>;
    fn secret(&self, namespace: NamespaceId, id: SecretId) -> StoreResult<Option<Secret>>;
    fn secrets(&self, namespace: NamespaceId) -> StoreResult<Vec<Secret>>;
    fn secret_consumers(&self, namespace: NamespaceId, id: SecretId) -> StoreResult<Consumers>;
    fn configuration_consumers(&self, namespace: NamespaceId, id: ConfigurationId) -> StoreResult<Vec<AgentId>>;
    fn agent(&self, namespace: NamespaceId, id: AgentId) -> StoreResult<Option<AgentRow>>;
    fn agents(&self, namespace: NamespaceId) -> StoreResult<Vec<AgentRow>>;
    fn revision(&self, namespace: NamespaceId, agent: AgentId, id: RevisionId) -> StoreResult<Option<RevisionRow>>;
    fn revisions(&self, namespace: NamespaceId, agent: AgentId) -> StoreResult<Vec<RevisionRow>>;
    fn deploy_read(&self, namespace: NamespaceId, agent: AgentId) -> StoreResult<DeployRead>;
    fn deployment(&self, namespace: NamespaceId, agent: AgentId, revision: RevisionId) -> StoreResult<Option<DeploymentRow>>;
    fn work_state(&self, key: &str) -> StoreResult<Option<WorkState>>;
    fn service_key(&self, id: ServiceKeyId) -> StoreResult<Option<ServiceKeyRow>>;
    fn roles(&self, namespace: NamespaceId) -> StoreResult<Vec<Role>>;
    fn access_bindings(&self, namespace: NamespaceId) -> StoreResult<Vec<AccessBinding>>;
    fn service_principals(&self, namespace: NamespaceId) -> StoreResult<Vec<Identity>>;
    fn revision_owner(&self, namespace: NamespaceId, id: RevisionId) -> StoreResult<Option<AgentId>>;
    fn renew(&self, token: ClaimToken, lease: Lease) -> StoreResult<bool>;
    fn recover(&self, lease: Lease) -> StoreResult<usize>;
    fn owned(&self, namespace: NamespaceId, kind: OwnedKind, id: &str) -> StoreResult<Option<OwnedRow>>;
    fn all_owned(&self, namespace: NamespaceId, kind: OwnedKind) -> StoreResult<Vec<OwnedRow>>;
    fn first_answer(&self, principal: &PrincipalId, key: &str) -> StoreResult<Option<FirstAnswer>>;
    fn audit_records(&self, query: &AuditQuery) -> StoreResult<Vec<AuditRecord>>;
    fn sealed_audit(&self, after: u64, limit: u32) -> StoreResult<Vec<AuditRecord>>;
    fn seal_audit(&self, limit: u32) -> StoreResult<u32>;
    fn selected(&self) -> StoreResult<Vec<NewWork>>;
    fn next_due(&self) -> StoreResult<Option<Duration>>;
    fn queue_depth(&self) -> StoreResult<QueueDepth>;
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

//! A store around another one: it shows what was recorded, and fails or is raced when a test says so.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use occ_core::{
    audit::{
        AuditEvent,
        chain::{AuditQuery, AuditRecord},
    },
    driver::{EffectResult, Identity, StateEntry, StateReader},
    iam::{AccessBinding, Grants, PolicyReader, Role},
    id::{AgentId, ConfigurationId, NamespaceId, RevisionId, SecretId, ServiceKeyId},
    resource::{Installation, OwnedKind, PrincipalId, Secret},
    store::{
        AgentRow, Change, CommitError, ConfigurationRow, Consumers, DeployRead, DeploymentRow, FirstAnswer,
        NamespaceRow, OwnedRow, PassRead, QueueDepth, RevisionRow, SavedAgent, SavedRevision, ServiceKeyRow, Store,
        StoreResult, WorkState, Write,
    },
    time::Timestamp,
    work::{Claim, ClaimToken, Lease, NewWork, Target},
};

type Race = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// What happens to a commit.
enum Fate {
    /// It is not tried, and this is answered.
    Fails(CommitError),
    /// It happens, and yet nobody knows.
    LosesItsAnswer,
    /// Somebody else comes first.
    IsRaced(Race),
}

/// Sees what happens in a store, while it happens.
pub trait Watch: Send + Sync {
    /// A method is called.
    fn called(&self, _method: &'static str) {}

    /// Work was claimed.
    fn claimed(&self, _claims: &[Claim]) {}

    /// A change was committed.
    fn committed(&self, _change: &Change) {}
}

/// Passes everything on; see the module.
pub struct RecordingStore {
    inner: Arc<dyn Store>,
    fates: Mutex<VecDeque<Fate>>,
    audit: Mutex<Vec<AuditEvent>>,
    work: Mutex<Vec<NewWork>>,
    watch: Mutex<Option<Arc<dyn Watch>>>,
}

impl RecordingStore {
    /// Around this store.
    pub fn around(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            fates: Mutex::default(),
            audit: Mutex::default(),
            work: Mutex::default(),
            watch: Mutex::default(),
        }
    }

    /// From now on this one sees what happens, and no earlier one.
    pub fn watch(&self, watch: Arc<dyn Watch>) {
        *lock(&self.watch) = Some(watch);
    }

    fn seen(&self, see: impl FnOnce(&dyn Watch)) {
        let watch = lock(&self.watch).clone();
        if let Some(watch) = watch {
            see(&*watch);
        }
    }

    /// The next commit fails so; nothing of it happens.
    pub fn fail(&self, error: CommitError) {
        lock(&self.fates).push_back(Fate::Fails(error));
    }

    /// The next commit happens, and its answer is lost.
    pub fn lose_answer(&self) {
        lock(&self.fates).push_back(Fate::LosesItsAnswer);
    }

    /// Before the next commit, this happens to its end.
    pub fn race(&self, other: impl Future<Output = ()> + Send + 'static) {
        lock(&self.fates).push_back(Fate::IsRaced(Box::new(move || Box::pin(other))));
    }

    /// What was recorded since the last look.
    pub fn take_audit(&self) -> Vec<AuditEvent> {
        std::mem::take(&mut lock(&self.audit))
    }

    /// What was queued since the last look.
    pub fn take_work(&self) -> Vec<NewWork> {
        std::mem::take(&mut lock(&self.work))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl StateReader for RecordingStore {
    async fn read(&self, driver: &str, key: &str) -> EffectResult<Option<StateEntry>> {
        self.seen(|watch| watch.called("read"));
        StateReader::read(&*self.inner, driver, key).await
    }
}

#[async_trait]
impl PolicyReader for RecordingStore {
    async fn grants(&self, principal: &PrincipalId) -> EffectResult<Grants> {
        self.seen(|watch| watch.called("grants"));
        self.inner.grants(principal).await
    }
}

macro_rules! passed_on {
    ($(fn $name:ident(&self $(, $arg:ident: $ty:ty)*) -> $out:ty;)*) => {
        #[async_trait]
        impl Store for RecordingStore {
            $(async fn $name(&self $(, $arg: $ty)*) -> $out {
                self.seen(|watch| watch.called(stringify!($name)));
                self.inner.$name($($arg),*).await
            })*

            async fn claim(&self, limit: usize, lease: Lease) -> StoreResult<Vec<Claim>> {
                self.seen(|watch| watch.called("claim"));
                let claims = self.inner.claim(limit, lease).await?;
                self.seen(|watch| watch.claimed(&claims));
                Ok(claims)
            }

            async fn commit(&self, change: Change) -> Result<(), CommitError> {
                self.seen(|watch| watch.called("commit"));
                let fate = lock(&self.fates).pop_front();
                match fate {
                    Some(Fate::Fails(error)) => return Err(error),
                    Some(Fate::IsRaced(race)) => race().await,
                    Some(Fate::LosesItsAnswer) => {
                        self.inner.commit(change).await?;
                        return Err(CommitError::UnknownOutcome);
                    }
                    None => {}
                }
                let committed = change.clone();
                self.inner.commit(change).await?;
                self.seen(|watch| watch.committed(&committed));
                let Change { audit, writes, .. } = committed;
                lock(&self.audit).extend(audit);
                lock(&self.work).extend(writes.into_iter().filter_map(|write| match write {
                    Write::Enqueue(work) | Write::Requeue(work) => Some(work),
                    _ => None,
                }));
                Ok(())
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
    fn pass_read(&self, target: &Target) -> StoreResult<PassRead>;
    fn deployment(&self, namespace: NamespaceId, agent: AgentId, revision: RevisionId) -> StoreResult<Option<DeploymentRow>>;
    fn work_state(&self, key: &str) -> StoreResult<Option<WorkState>>;
    fn service_key(&self, id: ServiceKeyId) -> StoreResult<Option<ServiceKeyRow>>;
    fn roles(&self, namespace: NamespaceId) -> StoreResult<Vec<Role>>;
    fn access_bindings(&self, namespace: NamespaceId) -> StoreResult<Vec<AccessBinding>>;
    fn service_principals(&self, namespace: NamespaceId) -> StoreResult<Vec<Identity>>;
    fn revision_owner(&self, namespace: NamespaceId, id: RevisionId) -> StoreResult<Option<AgentId>>;
    fn saved_agents(&self, namespace: NamespaceId, id: Option<AgentId>) -> StoreResult<Vec<SavedAgent>>;
    fn saved_revisions(&self, namespace: NamespaceId, agent: AgentId, id: Option<RevisionId>) -> StoreResult<Vec<SavedRevision>>;
    fn owned(&self, namespace: NamespaceId, kind: OwnedKind, id: &str) -> StoreResult<Option<OwnedRow>>;
    fn all_owned(&self, namespace: NamespaceId, kind: OwnedKind) -> StoreResult<Vec<OwnedRow>>;
    fn first_answer(&self, principal: &PrincipalId, key: &str) -> StoreResult<Option<FirstAnswer>>;
    fn audit_records(&self, query: &AuditQuery) -> StoreResult<Vec<AuditRecord>>;
    fn seal_audit(&self, limit: u32) -> StoreResult<u32>;
    fn sealed_audit(&self, after: u64, limit: u32) -> StoreResult<Vec<AuditRecord>>;
    fn renew(&self, token: ClaimToken, lease: Lease) -> StoreResult<bool>;
    fn recover(&self, lease: Lease) -> StoreResult<usize>;
    fn selected(&self) -> StoreResult<Vec<NewWork>>;
    fn next_due(&self) -> StoreResult<Option<Duration>>;
    fn queue_depth(&self) -> StoreResult<QueueDepth>;
    fn work_arrived(&self) -> ();
}

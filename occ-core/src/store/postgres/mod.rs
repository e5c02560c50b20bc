//! The store for several processes: one `PostgreSQL` database, any number of API servers and workers.
//!
//! Every read is one statement and every write one call of a function of the schema (`migrations/0001_functions.sql`): one round
//! trip, one transaction, nothing held over a wait for the caller. See docs/adr/0008 for what that buys and costs.

mod account;
mod admit;
mod change;
mod claim;
mod commit;
mod connections;
mod deploy;
mod fault;
mod locks;
mod open;
mod owned;
mod pass;
mod policy;
mod read;
mod record;
mod retention;
mod schema;
mod settings;
mod settle;
mod together;
mod wake;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::watch;

pub use open::OpenError;
pub use settings::PostgresSettings;

use self::{
    admit::Admission, claim::Claims, connections::Connections, fault::Fault, pass::PassQuery, settle::Settling,
    together::Together, wake::Wake,
};
use crate::{
    audit::chain::{AuditQuery, AuditRecord, Seal},
    driver::Identity,
    iam::{AccessBinding, Grants, Role},
    id::{AgentId, AgentTokenKeyId, ConfigurationId, NamespaceId, RevisionId, SecretId, ServiceKeyId, SessionId},
    resource::{Installation, OwnedKind, PrincipalId, Secret},
    store::{
        AccountName, AccountRow, AgentRow, AgentTokenKeyRow, BindingsOf, Change, CommitError, ConfigurationRow,
        Consumers, DeployQuery, DeployRead, DeploymentRow, FirstAnswer, NamespaceRow, OwnedRow, PassRead, QueueDepth,
        RevisionRow, SavedRevision, SchemaVersion, ServiceKeyRow, SessionRow, Slice, Store, StoreResult, Wait,
        WorkState, Write, detached::detached,
    },
    time::Timestamp,
    work::{Claim, ClaimToken, Lease, NewWork, Target},
};

/// What a statement's `$1`, `$2`, ... are.
macro_rules! arguments {
    () => { sqlx::postgres::PgArguments::default() };
    ($($value:expr),+ $(,)?) => {{
        let mut arguments = sqlx::postgres::PgArguments::default();
        $(sqlx::Arguments::add(&mut arguments, $value)
            .map_err(|_| $crate::store::postgres::fault::Fault::Corrupt("argument"))?;)+
        arguments
    }};
}
use arguments;

/// Connections for the queue alone: claims and renewals must not wait behind the statements of the passes that they are for.
const QUEUE_CONNECTIONS: usize = 2;

/// A store in a `PostgreSQL` database. Clones share its connections.
#[derive(Clone)]
pub struct PostgresStore {
    connections: Arc<Connections>,
    queue: Arc<Connections>,
    claims: Arc<Claims>,
    wake: Arc<Wake>,
    asked: Arc<Asked>,
}

/// What bears on each of some principals.
type PolicyOf = Vec<(PrincipalId, Grants)>;

/// What is asked of the database together when it comes at once.
#[derive(Default)]
struct Asked {
    admissions: Together<Admission, Result<bool, Fault>>,
    settlings: Together<Settling, Result<bool, Fault>>,
    deploys: Together<DeployQuery, Result<DeployRead, Fault>>,
    passes: Together<PassQuery, Result<PassRead, Fault>>,
    grants: Together<Vec<PrincipalId>, Result<PolicyOf, Fault>>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens a database that [`migrate`](Self::migrate) has brought to this program's version of the schema.
    pub async fn open(settings: &PostgresSettings) -> Result<Self, OpenError> {
        open::check(settings).await?;
        let at_most = |most| Arc::new(Connections::new(settings.session(), most, settings.query_timeout));
        let (connections, queue) = if settings.connections > QUEUE_CONNECTIONS {
            let others = at_most(settings.connections - QUEUE_CONNECTIONS);
            (others, at_most(QUEUE_CONNECTIONS))
        } else {
            let all = at_most(settings.connections);
            (Arc::clone(&all), all)
        };
        Ok(Self {
            queue,
            claims: Arc::default(),
            asked: Arc::default(),
            wake: Arc::new(Wake::new(settings, &connections)),
            connections,
        })
    }

    /// Brings the schema of a database to this program's version, and says what it found. A newer one is refused.
    ///
    /// Creates the role `occ_application`, which may read everything and write only through the schema's functions; when the user
    /// may not create roles, an administrator creates it and the migration is repeated.
    pub async fn migrate(settings: &PostgresSettings) -> Result<SchemaVersion, OpenError> {
        open::migrate(settings).await
    }

    /// Looks at the schema without changing anything.
    pub async fn schema(settings: &PostgresSettings) -> Result<SchemaVersion, OpenError> {
        open::look(settings).await
    }

    /// Closes every connection that is not in use. Later calls find the store unavailable.
    pub async fn close(&self) {
        self.connections.close().await;
        self.queue.close().await;
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        Ok(self.read_now().await?)
    }

    async fn installation(&self) -> StoreResult<Option<Installation>> {
        Ok(self.read_installation().await?)
    }

    async fn namespace(&self, id: NamespaceId) -> StoreResult<Option<NamespaceRow>> {
        Ok(self.read_namespace(id).await?)
    }

    async fn namespaces(&self, slice: &Slice) -> StoreResult<Vec<NamespaceRow>> {
        Ok(self.read_namespaces(slice).await?)
    }

    async fn namespace_contents(&self, id: NamespaceId, limit: u32) -> StoreResult<Vec<(&'static str, String)>> {
        Ok(self.read_contents(id, limit).await?)
    }

    async fn configuration(
        &self,
        namespace: NamespaceId,
        id: ConfigurationId,
    ) -> StoreResult<Option<ConfigurationRow>> {
        Ok(self.read_configuration(namespace, id).await?)
    }

    async fn configurations(&self, namespace: NamespaceId, slice: &Slice) -> StoreResult<Vec<ConfigurationRow>> {
        Ok(self.read_configurations(namespace, slice).await?)
    }

    async fn secret(&self, namespace: NamespaceId, id: SecretId) -> StoreResult<Option<Secret>> {
        Ok(self.read_secret(namespace, id).await?)
    }

    async fn secrets(&self, namespace: NamespaceId, slice: &Slice) -> StoreResult<Vec<Secret>> {
        Ok(self.read_secrets(namespace, slice).await?)
    }

    async fn secret_consumers(&self, namespace: NamespaceId, id: SecretId) -> StoreResult<Consumers> {
        Ok(self.read_secret_consumers(namespace, id).await?)
    }

    async fn configuration_consumers(&self, namespace: NamespaceId, id: ConfigurationId) -> StoreResult<Vec<AgentId>> {
        Ok(self.read_configuration_consumers(namespace, id).await?)
    }

    async fn agent(&self, namespace: NamespaceId, id: AgentId) -> StoreResult<Option<AgentRow>> {
        Ok(self.read_agent(namespace, id).await?)
    }

    async fn agents(&self, namespace: NamespaceId) -> StoreResult<Vec<AgentRow>> {
        Ok(self.read_agents(namespace).await?)
    }

    async fn agents_in(&self, namespace: NamespaceId, slice: &Slice) -> StoreResult<Vec<AgentRow>> {
        Ok(self.read_agents_in(namespace, slice).await?)
    }

    async fn saved_revision(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> StoreResult<Option<SavedRevision>> {
        Ok(self.read_saved_revision(namespace, agent, id).await?)
    }

    async fn saved_revisions(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        slice: &Slice,
    ) -> StoreResult<Vec<SavedRevision>> {
        Ok(self.read_saved_revisions(namespace, agent, slice).await?)
    }

    async fn owned(&self, namespace: NamespaceId, kind: OwnedKind, id: &str) -> StoreResult<Option<OwnedRow>> {
        Ok(self.read_owned(namespace, kind, id).await?)
    }

    async fn all_owned(&self, namespace: NamespaceId, kind: OwnedKind, slice: &Slice) -> StoreResult<Vec<OwnedRow>> {
        Ok(self.read_all_owned(namespace, kind, slice).await?)
    }

    async fn first_answer(&self, principal: &PrincipalId, key: &str) -> StoreResult<Option<FirstAnswer>> {
        Ok(self.read_answer(principal, key).await?)
    }

    async fn audit_records(&self, query: &AuditQuery) -> StoreResult<Vec<AuditRecord>> {
        Ok(self.read_records(query).await?)
    }

    async fn seal_audit(&self, limit: u32) -> StoreResult<u32> {
        let store = self.clone();
        Ok(detached(async move { store.seal(limit).await }).await?)
    }

    async fn sealed_audit(&self, after: u64, limit: u32) -> StoreResult<Vec<AuditRecord>> {
        Ok(self.read_sealed(after, limit).await?)
    }

    async fn audit_anchor(&self) -> StoreResult<Option<Seal>> {
        Ok(self.read_anchor().await?)
    }

    async fn prunable_audit(&self, older_than: Duration) -> StoreResult<u64> {
        Ok(self.count_audit(older_than).await?)
    }

    async fn prune_audit(&self, older_than: Duration, limit: u32) -> StoreResult<u64> {
        let store = self.clone();
        Ok(detached(async move { store.remove_audit(older_than, limit).await }).await?)
    }

    async fn prunable_work(&self, older_than: Duration) -> StoreResult<u64> {
        Ok(self.count_work(older_than).await?)
    }

    async fn prune_work(&self, older_than: Duration, limit: u32) -> StoreResult<u64> {
        let store = self.clone();
        Ok(detached(async move { store.remove_work(older_than, limit).await }).await?)
    }

    async fn revision(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> StoreResult<Option<RevisionRow>> {
        Ok(self.read_revision(namespace, agent, id).await?)
    }

    async fn revisions(&self, namespace: NamespaceId, agent: AgentId) -> StoreResult<Vec<RevisionRow>> {
        Ok(self.read_revisions(namespace, agent).await?)
    }

    async fn deploy_read(&self, query: &DeployQuery) -> StoreResult<DeployRead> {
        Ok(self.read_deploy(query).await?)
    }

    async fn pass_read(&self, target: &Target) -> StoreResult<PassRead> {
        Ok(self.read_pass(target).await?)
    }

    async fn deployment(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        revision: RevisionId,
    ) -> StoreResult<Option<DeploymentRow>> {
        Ok(self.read_deployment(namespace, agent, revision).await?)
    }

    async fn work_state(&self, key: &str) -> StoreResult<Option<WorkState>> {
        Ok(self.read_work_state(key).await?)
    }

    async fn service_key(&self, id: ServiceKeyId) -> StoreResult<Option<ServiceKeyRow>> {
        Ok(self.read_service_key(id).await?)
    }

    async fn account(&self, name: AccountName<'_>) -> StoreResult<Option<AccountRow>> {
        Ok(self.read_account(name).await?)
    }

    async fn accounts(&self, slice: &Slice) -> StoreResult<Vec<AccountRow>> {
        Ok(self.read_accounts(slice).await?)
    }

    async fn session(&self, id: SessionId) -> StoreResult<Option<SessionRow>> {
        Ok(self.read_session(id).await?)
    }

    async fn agent_token_key(&self, id: AgentTokenKeyId) -> StoreResult<Option<AgentTokenKeyRow>> {
        Ok(self.read_token_key(id).await?)
    }

    async fn roles(&self, scope: Option<NamespaceId>) -> StoreResult<Vec<Role>> {
        Ok(self.read_roles(scope).await?)
    }

    async fn role(&self, scope: Option<NamespaceId>, id: &str) -> StoreResult<Option<Role>> {
        Ok(self.read_role(scope, id).await?)
    }

    async fn access_bindings(&self, scope: Option<NamespaceId>, of: BindingsOf<'_>) -> StoreResult<Vec<AccessBinding>> {
        Ok(self.read_access_bindings(scope, of).await?)
    }

    async fn service_principals(&self, namespace: NamespaceId) -> StoreResult<Vec<Identity>> {
        Ok(self.read_service_principals(namespace).await?)
    }

    async fn revision_owner(&self, namespace: NamespaceId, id: RevisionId) -> StoreResult<Option<AgentId>> {
        Ok(self.read_owner(namespace, id).await?)
    }

    async fn commit(&self, change: Change) -> Result<(), CommitError> {
        let store = self.clone();
        detached(async move {
            let committed = store.commit_change(&change).await;
            for write in &change.writes {
                if let Write::Settle(token, _) = write {
                    store.claims.forget(*token);
                }
            }
            committed
        })
        .await
    }

    async fn claim(&self, limit: usize, lease: Lease) -> StoreResult<Vec<Claim>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let store = self.clone();
        let claimed = detached(async move { store.take(limit, lease).await }).await?;
        if !claimed.is_empty() {
            self.wake.moved();
        }
        Ok(claimed)
    }

    async fn renew(&self, token: ClaimToken, lease: Lease) -> StoreResult<bool> {
        Ok(self.extend(token, lease).await?)
    }

    async fn postpone(&self, waits: &[Wait]) -> StoreResult<Vec<bool>> {
        Ok(self.put_off(waits).await?)
    }

    async fn recover(&self, lease: Lease) -> StoreResult<usize> {
        let store = self.clone();
        Ok(detached(async move { store.recover_lost(lease).await }).await?)
    }

    async fn selected(&self) -> StoreResult<Vec<NewWork>> {
        Ok(self.read_selected().await?)
    }

    async fn next_due(&self) -> StoreResult<Option<Duration>> {
        Ok(self.wait_for_due().await?)
    }

    async fn queue_depth(&self) -> StoreResult<QueueDepth> {
        Ok(self.read_depth().await?)
    }

    async fn work_arrived(&self) {
        self.wake.arrived().await;
    }

    fn movements(&self) -> watch::Receiver<()> {
        self.wake.movements()
    }

    fn hears(&self) -> bool {
        self.wake.hears()
    }
}

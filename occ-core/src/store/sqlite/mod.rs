//! The embedded store: one `SQLite` file in write-ahead mode, `synchronous=FULL` (docs/adr/0005).
//!
//! One connection writes, a few read. A second process may open the same file: the database's own lock then serialises the
//! writers, and each process hears only of its own work at once, of the other's at the next poll.

mod account;
mod audit;
mod claim;
mod column;
mod commit;
mod connection;
mod copy;
mod enqueue;
mod expect;
mod fault;
mod open;
mod owned;
#[cfg(test)]
mod plans;
mod policy;
mod read;
mod recover;
mod remove;
mod retention;
mod schema;
mod selected;
mod settle;
mod status;
mod version;
mod write;

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::{Notify, watch};

pub use copy::CopyError;
pub use open::OpenError;

use self::connection::Connections;
use crate::{
    audit::chain::{AuditQuery, AuditRecord, Seal},
    driver::Identity,
    iam::{AccessBinding, Role},
    id::{AgentId, AgentTokenKeyId, ConfigurationId, NamespaceId, RevisionId, SecretId, ServiceKeyId, SessionId},
    resource::{Installation, OwnedKind, PrincipalId, Secret},
    store::{
        AccountName, AccountRow, AgentRow, AgentTokenKeyRow, BindingsOf, Change, CommitError, ConfigurationRow,
        Consumers, DeployQuery, DeployRead, DeploymentRow, FirstAnswer, NamespaceRow, OwnedRow, PassRead, QueueDepth,
        RevisionRow, SavedRevision, SchemaVersion, ServiceKeyRow, SessionRow, Slice, Store, StoreResult, Wait,
        WorkState, detached::detached,
    },
    time::Timestamp,
    work::{Claim, ClaimToken, Lease, NewWork, Target},
};

/// The database's present, in milliseconds: the only clock of the store.
macro_rules! now {
    () => {
        "CAST(round(unixepoch('subsec') * 1000.0) AS INTEGER)"
    };
}
use now;

/// A store in one `SQLite` file, or in memory. Clones share it.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    connections: Arc<Connections>,
    arrived: Arc<Notify>,
    moved: watch::Sender<()>,
}

impl SqliteStore {
    /// Opens the database in this file, which is created (mode 0600) in an existing directory, and migrates it.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Ok(Self::over(open::file(path.as_ref()).await?))
    }

    /// A database of this process alone that is gone when its last clone is dropped.
    pub async fn open_in_memory() -> Result<Self, OpenError> {
        Ok(Self::over(open::memory().await?))
    }

    /// Looks at the schema of a database without changing anything. A file that does not exist has version 0.
    pub async fn schema(path: impl AsRef<Path>) -> Result<SchemaVersion, OpenError> {
        copy::schema(path.as_ref()).await
    }

    /// Writes a copy of one moment of a database into a new private file, also while the database is in use.
    pub async fn backup(database: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), CopyError> {
        copy::backup(database.as_ref(), to.as_ref()).await
    }

    /// Puts a backup in the place of a database. Refuses while another process has the database open, and when the database
    /// records more than the backup does.
    pub async fn restore(backup: impl AsRef<Path>, database: impl AsRef<Path>) -> Result<(), CopyError> {
        copy::restore(backup.as_ref(), database.as_ref()).await
    }

    fn over(connections: Connections) -> Self {
        Self {
            connections: Arc::new(connections),
            arrived: Arc::default(),
            moved: watch::Sender::default(),
        }
    }

    /// Waits for the running write, moves everything into the main file and closes it. Later calls find the store unavailable.
    pub async fn close(&self) {
        self.connections.close().await;
    }

    /// Somebody may be waiting now, or come in a moment.
    fn wake(&self) {
        self.moved.send_replace(());
        self.arrived.notify_waiters();
        self.arrived.notify_one();
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        Ok(read::now(&mut *self.connections.read().await?).await?)
    }

    async fn installation(&self) -> StoreResult<Option<Installation>> {
        Ok(read::installation(&mut *self.connections.read().await?).await?)
    }

    async fn namespace(&self, id: NamespaceId) -> StoreResult<Option<NamespaceRow>> {
        Ok(read::namespace(&mut *self.connections.read().await?, id).await?)
    }

    async fn namespaces(&self, slice: &Slice) -> StoreResult<Vec<NamespaceRow>> {
        Ok(read::namespaces(&mut *self.connections.read().await?, slice).await?)
    }

    async fn namespace_contents(&self, id: NamespaceId, limit: u32) -> StoreResult<Vec<(&'static str, String)>> {
        Ok(read::namespace_contents(&mut *self.connections.read().await?, id, limit).await?)
    }

    async fn configuration(
        &self,
        namespace: NamespaceId,
        id: ConfigurationId,
    ) -> StoreResult<Option<ConfigurationRow>> {
        Ok(read::configuration(&mut *self.connections.read().await?, namespace, id).await?)
    }

    async fn configurations(&self, namespace: NamespaceId, slice: &Slice) -> StoreResult<Vec<ConfigurationRow>> {
        Ok(read::configurations(&mut *self.connections.read().await?, namespace, slice).await?)
    }

    async fn secret(&self, namespace: NamespaceId, id: SecretId) -> StoreResult<Option<Secret>> {
        Ok(read::secret(&mut *self.connections.read().await?, namespace, id).await?)
    }

    async fn secrets(&self, namespace: NamespaceId, slice: &Slice) -> StoreResult<Vec<Secret>> {
        Ok(read::secrets(&mut *self.connections.read().await?, namespace, slice).await?)
    }

    async fn secret_consumers(&self, namespace: NamespaceId, id: SecretId) -> StoreResult<Consumers> {
        let mut snapshot = self.connections.snapshot().await?;
        let consumers = read::secret_consumers(&mut snapshot, namespace, id).await?;
        snapshot.end().await?;
        Ok(consumers)
    }

    async fn configuration_consumers(&self, namespace: NamespaceId, id: ConfigurationId) -> StoreResult<Vec<AgentId>> {
        Ok(read::configuration_consumers(&mut *self.connections.read().await?, namespace, id).await?)
    }

    async fn agent(&self, namespace: NamespaceId, id: AgentId) -> StoreResult<Option<AgentRow>> {
        Ok(read::agent(&mut *self.connections.read().await?, namespace, id).await?)
    }

    async fn agents(&self, namespace: NamespaceId) -> StoreResult<Vec<AgentRow>> {
        Ok(read::agents(&mut *self.connections.read().await?, namespace).await?)
    }

    async fn agents_in(&self, namespace: NamespaceId, slice: &Slice) -> StoreResult<Vec<AgentRow>> {
        Ok(read::agents_in(&mut *self.connections.read().await?, namespace, slice).await?)
    }

    async fn saved_revision(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> StoreResult<Option<SavedRevision>> {
        Ok(version::saved(&mut *self.connections.read().await?, namespace, agent, id).await?)
    }

    async fn saved_revisions(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        slice: &Slice,
    ) -> StoreResult<Vec<SavedRevision>> {
        Ok(version::all_saved(&mut *self.connections.read().await?, namespace, agent, slice).await?)
    }

    async fn owned(&self, namespace: NamespaceId, kind: OwnedKind, id: &str) -> StoreResult<Option<OwnedRow>> {
        Ok(owned::one(&mut *self.connections.read().await?, namespace, kind, id).await?)
    }

    async fn all_owned(&self, namespace: NamespaceId, kind: OwnedKind, slice: &Slice) -> StoreResult<Vec<OwnedRow>> {
        Ok(owned::all(&mut *self.connections.read().await?, namespace, kind, slice).await?)
    }

    async fn first_answer(&self, principal: &PrincipalId, key: &str) -> StoreResult<Option<FirstAnswer>> {
        Ok(owned::answer(&mut *self.connections.read().await?, principal, key).await?)
    }

    async fn audit_records(&self, query: &AuditQuery) -> StoreResult<Vec<AuditRecord>> {
        Ok(audit::records(&mut *self.connections.read().await?, query).await?)
    }

    async fn seal_audit(&self, limit: u32) -> StoreResult<u32> {
        if !audit::is_due(&mut *self.connections.read().await?).await? {
            return Ok(0);
        }
        let store = self.clone();
        detached(async move { audit::seal(&store.connections, limit).await }).await
    }

    async fn sealed_audit(&self, after: u64, limit: u32) -> StoreResult<Vec<AuditRecord>> {
        Ok(audit::sealed(&mut *self.connections.read().await?, after, limit).await?)
    }

    async fn audit_anchor(&self) -> StoreResult<Option<Seal>> {
        Ok(retention::anchor(&mut *self.connections.read().await?).await?)
    }

    async fn prunable_audit(&self, older_than: Duration) -> StoreResult<u64> {
        let mut snapshot = self.connections.snapshot().await?;
        let count = retention::prunable_audit(&mut snapshot, older_than).await?;
        snapshot.end().await?;
        Ok(count)
    }

    async fn prune_audit(&self, older_than: Duration, limit: u32) -> StoreResult<u64> {
        let store = self.clone();
        detached(async move { retention::prune_audit(&store.connections, older_than, limit).await }).await
    }

    async fn prunable_work(&self, older_than: Duration) -> StoreResult<u64> {
        Ok(retention::prunable_work(&mut *self.connections.read().await?, older_than).await?)
    }

    async fn prune_work(&self, older_than: Duration, limit: u32) -> StoreResult<u64> {
        let store = self.clone();
        detached(async move { retention::prune_work(&store.connections, older_than, limit).await }).await
    }

    async fn revision(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> StoreResult<Option<RevisionRow>> {
        Ok(version::revision(&mut *self.connections.read().await?, namespace, agent, id).await?)
    }

    async fn revisions(&self, namespace: NamespaceId, agent: AgentId) -> StoreResult<Vec<RevisionRow>> {
        Ok(version::revisions(&mut *self.connections.read().await?, namespace, agent).await?)
    }

    async fn deploy_read(&self, query: &DeployQuery) -> StoreResult<DeployRead> {
        let mut snapshot = self.connections.snapshot().await?;
        let read = version::deploy_read(&mut snapshot, query).await?;
        snapshot.end().await?;
        Ok(read)
    }

    async fn pass_read(&self, target: &Target) -> StoreResult<PassRead> {
        let mut snapshot = self.connections.snapshot().await?;
        let read = version::pass_read(&mut snapshot, target).await?;
        snapshot.end().await?;
        Ok(read)
    }

    async fn deployment(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        revision: RevisionId,
    ) -> StoreResult<Option<DeploymentRow>> {
        Ok(status::deployment(&mut *self.connections.read().await?, namespace, agent, revision).await?)
    }

    async fn work_state(&self, key: &str) -> StoreResult<Option<WorkState>> {
        Ok(status::work_state(&mut *self.connections.read().await?, key).await?)
    }

    async fn service_key(&self, id: ServiceKeyId) -> StoreResult<Option<ServiceKeyRow>> {
        Ok(policy::service_key(&mut *self.connections.read().await?, id).await?)
    }

    async fn account(&self, name: AccountName<'_>) -> StoreResult<Option<AccountRow>> {
        Ok(account::one(&mut *self.connections.read().await?, name).await?)
    }

    async fn accounts(&self, slice: &Slice) -> StoreResult<Vec<AccountRow>> {
        Ok(account::all(&mut *self.connections.read().await?, slice).await?)
    }

    async fn session(&self, id: SessionId) -> StoreResult<Option<SessionRow>> {
        Ok(account::session(&mut *self.connections.read().await?, id).await?)
    }

    async fn agent_token_key(&self, id: AgentTokenKeyId) -> StoreResult<Option<AgentTokenKeyRow>> {
        Ok(account::token_key(&mut *self.connections.read().await?, id).await?)
    }

    async fn roles(&self, scope: Option<NamespaceId>) -> StoreResult<Vec<Role>> {
        Ok(policy::roles(&mut *self.connections.read().await?, scope).await?)
    }

    async fn role(&self, scope: Option<NamespaceId>, id: &str) -> StoreResult<Option<Role>> {
        Ok(policy::role(&mut *self.connections.read().await?, scope, id).await?)
    }

    async fn access_bindings(&self, scope: Option<NamespaceId>, of: BindingsOf<'_>) -> StoreResult<Vec<AccessBinding>> {
        Ok(policy::access_bindings(&mut *self.connections.read().await?, scope, of).await?)
    }

    async fn service_principals(&self, namespace: NamespaceId) -> StoreResult<Vec<Identity>> {
        Ok(policy::service_principals(&mut *self.connections.read().await?, namespace).await?)
    }

    async fn revision_owner(&self, namespace: NamespaceId, id: RevisionId) -> StoreResult<Option<AgentId>> {
        Ok(version::owner(&mut *self.connections.read().await?, namespace, id).await?)
    }

    async fn commit(&self, change: Change) -> Result<(), CommitError> {
        let store = self.clone();
        detached(async move { commit::commit(&store, change).await }).await
    }

    async fn claim(&self, limit: usize, lease: Lease) -> StoreResult<Vec<Claim>> {
        if limit == 0 || !claim::is_due(&mut *self.connections.read().await?, lease).await? {
            return Ok(Vec::new());
        }
        let store = self.clone();
        let claimed = detached(async move { claim::claim(&store.connections, limit, lease).await }).await?;
        self.moved.send_replace(());
        Ok(claimed)
    }

    async fn renew(&self, token: ClaimToken, lease: Lease) -> StoreResult<bool> {
        let store = self.clone();
        detached(async move { claim::renew(&store.connections, token, lease).await }).await
    }

    async fn postpone(&self, waits: &[Wait]) -> StoreResult<Vec<bool>> {
        let (store, waits) = (self.clone(), waits.to_vec());
        detached(async move {
            let held = claim::postpone(&store.connections, &waits).await?;
            if Wait::any_due(&waits, &held) {
                store.wake();
            }
            Ok(held)
        })
        .await
    }

    async fn recover(&self, lease: Lease) -> StoreResult<usize> {
        if !recover::is_due(&mut *self.connections.read().await?, lease).await? {
            return Ok(0);
        }
        let store = self.clone();
        let recovered = detached(async move { recover::recover(&store.connections, lease).await }).await?;
        self.wake();
        Ok(recovered)
    }

    async fn selected(&self) -> StoreResult<Vec<NewWork>> {
        Ok(selected::selected(&mut *self.connections.read().await?).await?)
    }

    async fn next_due(&self) -> StoreResult<Option<Duration>> {
        Ok(claim::next_due(&mut *self.connections.read().await?).await?)
    }

    async fn queue_depth(&self) -> StoreResult<QueueDepth> {
        Ok(claim::depth(&mut *self.connections.read().await?).await?)
    }

    async fn work_arrived(&self) {
        self.arrived.notified().await;
    }

    fn movements(&self) -> watch::Receiver<()> {
        self.moved.subscribe()
    }
}

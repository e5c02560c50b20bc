//! The Store contract: the only truth, and the only clock.
//!
//! Reads return consistent snapshots. Every write is one [`Change`]: what must still hold ([`Expect`]), what is written
//! ([`Write`]), what drivers staged, and the audit events, committed together or not at all. Nothing holds a transaction
//! open over a driver call: callers gather, decide purely, and commit; a [`CommitError::Conflict`] means gather again.
//!
//! `SQLite` is the embedded default, `PostgreSQL` the store for several processes; both pass the same suite.

mod account;
mod bindings;
mod change;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod detached;
mod owned;
#[cfg(feature = "postgres")]
pub mod postgres;
mod provisioning;
mod record;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod row;
mod slice;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod wait;

pub use account::{
    AccountName, AccountRow, AgentTokenKeyRow, CodeRow, NewAccount, NewAgentTokenKey, NewCode, NewSession,
    PasswordHash, SessionRow,
};
pub use bindings::BindingsOf;
pub use change::{Change, CommitError, Expect, Taken, Write};
pub use owned::OwnedRow;
pub(crate) use provisioning::Provisioning;
pub use record::{
    AgentRow, ConfigurationRow, Consumers, DeployQuery, DeployRead, DeploymentRow, FirstAnswer, LeftOver, NamespaceRow,
    NewServiceKey, PassRead, QueueDepth, RevisionHead, RevisionRow, SavedField, SavedRevision, SchemaVersion,
    ServiceKeyRow, WorkState,
};
pub use slice::Slice;
pub use wait::Wait;

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{
    audit::chain::{AuditQuery, AuditRecord, Seal},
    driver::{Identity, StateReader},
    iam::{AccessBinding, PolicyReader, Role},
    id::{AgentId, AgentTokenKeyId, ConfigurationId, NamespaceId, RevisionId, SecretId, ServiceKeyId, SessionId},
    resource::{Installation, OwnedKind, PrincipalId, Secret},
    time::Timestamp,
    work::{Claim, ClaimToken, Lease, NewWork, Target},
};

/// The result of a read.
pub type StoreResult<T> = Result<T, StoreError>;

/// Why a read failed. Holds no text of the database: it may quote values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database does not answer, or is locked for too long.
    #[error("the database is unavailable")]
    Unavailable,
    /// The disk of the database is full, or a quota on it.
    #[error("the database has no space left")]
    NoSpace,
    /// A stored row does not decode.
    #[error("a stored {0} does not decode")]
    Corrupt(&'static str),
    /// The database's user may not do this: only the owner of the schema may.
    #[error("the database's user may not do that")]
    NotAllowed,
}

/// Keeps everything. All instants that it returns and compares are of its own clock.
#[async_trait]
pub trait Store: StateReader + PolicyReader + Send + Sync {
    /// The present moment by the database's clock.
    async fn now(&self) -> StoreResult<Timestamp>;

    /// The Installation, once it was bootstrapped.
    async fn installation(&self) -> StoreResult<Option<Installation>>;

    /// One Namespace; a tombstone is none.
    async fn namespace(&self, id: NamespaceId) -> StoreResult<Option<NamespaceRow>>;

    /// The Namespaces but the tombstones, by creation.
    async fn namespaces(&self, slice: &Slice) -> StoreResult<Vec<NamespaceRow>>;

    /// What a Namespace still owns, as `(kind, id)`, at most `limit`.
    async fn namespace_contents(&self, id: NamespaceId, limit: u32) -> StoreResult<Vec<(&'static str, String)>>;

    /// A Configuration's record, without its document.
    async fn configuration(&self, namespace: NamespaceId, id: ConfigurationId)
    -> StoreResult<Option<ConfigurationRow>>;

    /// The Configurations of a Namespace, by creation.
    async fn configurations(&self, namespace: NamespaceId, slice: &Slice) -> StoreResult<Vec<ConfigurationRow>>;

    /// A Secret's record.
    async fn secret(&self, namespace: NamespaceId, id: SecretId) -> StoreResult<Option<Secret>>;

    /// The Secrets of a Namespace, by creation.
    async fn secrets(&self, namespace: NamespaceId, slice: &Slice) -> StoreResult<Vec<Secret>>;

    /// Who refers to a Secret.
    async fn secret_consumers(&self, namespace: NamespaceId, id: SecretId) -> StoreResult<Consumers>;

    /// Agents that refer to a Configuration.
    async fn configuration_consumers(&self, namespace: NamespaceId, id: ConfigurationId) -> StoreResult<Vec<AgentId>>;

    /// An Agent.
    async fn agent(&self, namespace: NamespaceId, id: AgentId) -> StoreResult<Option<AgentRow>>;

    /// Every Agent of a Namespace, by creation.
    async fn agents(&self, namespace: NamespaceId) -> StoreResult<Vec<AgentRow>>;

    /// The Agents of a Namespace in this slice, by creation.
    async fn agents_in(&self, namespace: NamespaceId, slice: &Slice) -> StoreResult<Vec<AgentRow>> {
        let rows = self.agents(namespace).await?;
        Ok(slice.of(rows, |row| (row.agent.created_at.as_millis(), row.agent.id.to_string())))
    }

    /// A version as far as it can be read.
    async fn saved_revision(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> StoreResult<Option<SavedRevision>> {
        let row = self.revision(namespace, agent, id).await?;
        Ok(row.map(|row| SavedRevision::Whole(Box::new(row.revision))))
    }

    /// The versions of an Agent as far as they can be read, by number: the oldest first.
    async fn saved_revisions(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        slice: &Slice,
    ) -> StoreResult<Vec<SavedRevision>> {
        let rows = self.revisions(namespace, agent).await?;
        let place = |row: &RevisionRow| {
            let number = i64::try_from(row.revision.revision).unwrap_or(i64::MAX);
            (number, row.revision.id.to_string())
        };
        let whole = |row: RevisionRow| SavedRevision::Whole(Box::new(row.revision));
        Ok(slice.of(rows, place).into_iter().map(whole).collect())
    }

    /// A small resource.
    async fn owned(&self, namespace: NamespaceId, kind: OwnedKind, id: &str) -> StoreResult<Option<OwnedRow>>;

    /// The small resources of this kind in a Namespace, by creation.
    async fn all_owned(&self, namespace: NamespaceId, kind: OwnedKind, slice: &Slice) -> StoreResult<Vec<OwnedRow>>;

    /// The first result of the caller's request with this key, within a day.
    async fn first_answer(&self, principal: &PrincipalId, key: &str) -> StoreResult<Option<FirstAnswer>>;

    /// Recorded events, the newest first.
    async fn audit_records(&self, query: &AuditQuery) -> StoreResult<Vec<AuditRecord>>;

    /// Seals up to `limit` records that have no seal yet, in the order of their sequence; returns how many. A record whose
    /// transaction committed after a later one was sealed gets the next position.
    async fn seal_audit(&self, limit: u32) -> StoreResult<u32>;

    /// Sealed records after this position of the chain, in its order.
    async fn sealed_audit(&self, after: u64, limit: u32) -> StoreResult<Vec<AuditRecord>>;

    /// The seal after which the chain is followed, when records were pruned: the last one whose record is gone.
    async fn audit_anchor(&self) -> StoreResult<Option<Seal>>;

    /// How many sealed records, from the oldest in a row, are older than this. The newest seal of all is never among them: it is the
    /// head of the chain.
    async fn prunable_audit(&self, older_than: Duration) -> StoreResult<u64>;

    /// Moves the anchor over at most `limit` of them and removes them, in one short transaction. Returns how many.
    async fn prune_audit(&self, older_than: Duration, limit: u32) -> StoreResult<u64>;

    /// How many pieces of work have been over for longer than this and are read by nothing any more: maintenance, stops, and
    /// removals that were done. The work of a deployment is never among them: its status is read as long as its version exists.
    async fn prunable_work(&self, older_than: Duration) -> StoreResult<u64>;

    /// Removes at most `limit` of them, the oldest first, in one short transaction. Returns how many.
    async fn prune_work(&self, older_than: Duration, limit: u32) -> StoreResult<u64>;

    /// A version.
    async fn revision(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> StoreResult<Option<RevisionRow>>;

    /// Every version of an Agent, oldest first.
    async fn revisions(&self, namespace: NamespaceId, agent: AgentId) -> StoreResult<Vec<RevisionRow>>;

    /// All that admission of a deployment reads, of one moment.
    async fn deploy_read(&self, query: &DeployQuery) -> StoreResult<DeployRead>;

    /// All that a pass reads, of one moment.
    async fn pass_read(&self, target: &Target) -> StoreResult<PassRead>;

    /// The work and its evidence behind a deployment, judged by the database's clock. `None` when no such version exists.
    async fn deployment(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        revision: RevisionId,
    ) -> StoreResult<Option<DeploymentRow>>;

    /// The state of one piece of work by its key.
    async fn work_state(&self, key: &str) -> StoreResult<Option<WorkState>>;

    /// A service key by its public id.
    async fn service_key(&self, id: ServiceKeyId) -> StoreResult<Option<ServiceKeyRow>>;

    /// The account of a person.
    async fn account(&self, name: AccountName<'_>) -> StoreResult<Option<AccountRow>>;

    /// Every account, by creation.
    async fn accounts(&self, slice: &Slice) -> StoreResult<Vec<AccountRow>>;

    /// A session by its public id, judged by the database's clock.
    async fn session(&self, id: SessionId) -> StoreResult<Option<SessionRow>>;

    /// What verifies tokens of Agents, judged by the database's clock.
    async fn agent_token_key(&self, id: AgentTokenKeyId) -> StoreResult<Option<AgentTokenKeyRow>>;

    /// The Roles that are confined to a Namespace, or the Installation's own, which are confined to none; by id.
    async fn roles(&self, scope: Option<NamespaceId>) -> StoreResult<Vec<Role>>;

    /// One of them.
    async fn role(&self, scope: Option<NamespaceId>, id: &str) -> StoreResult<Option<Role>>;

    /// Access bindings that are confined to a Namespace, or to none; by id. Without a Namespace, those that grant a Role are all that
    /// there are of it, wherever they are confined to.
    async fn access_bindings(&self, scope: Option<NamespaceId>, of: BindingsOf<'_>) -> StoreResult<Vec<AccessBinding>>;

    /// The service principals that are confined to a Namespace, by id; its Agents' are among them.
    async fn service_principals(&self, namespace: NamespaceId) -> StoreResult<Vec<Identity>>;

    /// The Agent whose version this is.
    async fn revision_owner(&self, namespace: NamespaceId, id: RevisionId) -> StoreResult<Option<AgentId>>;

    /// Commits a change whole, or nothing of it.
    async fn commit(&self, change: Change) -> Result<(), CommitError>;

    /// Claims up to `limit` due pieces of work, the oldest first, at most one a lane.
    async fn claim(&self, limit: usize, lease: Lease) -> StoreResult<Vec<Claim>>;

    /// Extends a claim's lease; `false` when the claim is no longer live.
    async fn renew(&self, token: ClaimToken, lease: Lease) -> StoreResult<bool>;

    /// Holds queued deployments off that need no look yet, without a claim. Tells for each whether it is: one of an Agent that changed
    /// is made due, and one that is claimed, over or in somebody's hands is left as it is. What is made due wakes whoever waits for work.
    async fn postpone(&self, waits: &[Wait]) -> StoreResult<Vec<bool>>;

    /// Takes back claims whose lease has lapsed and ends work that has spent its attempts (spec/engine 4). Returns how many.
    async fn recover(&self, lease: Lease) -> StoreResult<usize>;

    /// What a worker that starts looks after once: the selected versions of Agents that should run, as maintenance for whoever
    /// deployed them. Nothing may run of them any more: the machine may have restarted.
    async fn selected(&self) -> StoreResult<Vec<NewWork>>;

    /// How long until there is something to do: queued work of a free lane becomes due, or the lease of a claim lapses. Zero
    /// when there is something already.
    async fn next_due(&self) -> StoreResult<Option<Duration>>;

    /// How much work is live, for operators.
    async fn queue_depth(&self) -> StoreResult<QueueDepth>;

    /// Resolves when this process, or another that the store can hear, enqueued work. May resolve early.
    async fn work_arrived(&self);

    /// Marked when work moved: it was enqueued, claimed, settled or recovered, by this process or by another that the store can hear.
    /// For readers that wait for news of a deployment. May be marked without need.
    fn movements(&self) -> watch::Receiver<()>;

    /// Whether [`work_arrived`](Self::work_arrived) hears now of what every process enqueues, and
    /// [`movements`](Self::movements) of what they do. While they do not, whoever waits looks more often.
    fn hears(&self) -> bool {
        false
    }
}

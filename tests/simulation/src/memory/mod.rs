//! The Store in memory: the reference that the databases are compared with, written to be read.
//!
//! Its clock is the runtime's, from a fixed first moment: under a paused clock the whole of it is virtual. [`MemoryStore::skip`]
//! lets the store's clock run away from the workers'.

mod account;
mod data;
mod expect;
mod queue;
mod read;
mod spoilt;
mod write;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
pub use data::{Data, Key, Named, State, Table, Work};
use occ_core::{
    audit::chain::{AuditQuery, AuditRecord, Seal},
    driver::{EffectResult, Identity, StateEntry, StateReader},
    iam::{AccessBinding, Grants, PolicyReader, Role},
    id::{AgentId, AgentTokenKeyId, ConfigurationId, NamespaceId, RevisionId, SecretId, ServiceKeyId, SessionId},
    resource::{Installation, OwnedKind, PrincipalId, Secret},
    store::{
        AccountName, AccountRow, AgentRow, AgentTokenKeyRow, BindingsOf, Change, CommitError, ConfigurationRow,
        Consumers, DeployQuery, DeployRead, DeploymentRow, FirstAnswer, NamespaceRow, OwnedRow, PassRead, QueueDepth,
        RevisionRow, ServiceKeyRow, SessionRow, Slice, Store, StoreResult, Wait, WorkState, Write,
    },
    time::{Clock, Timestamp},
    work::{Claim, ClaimToken, Lease, NewWork, Target},
};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

/// The first moment of every store: 2026-01-01.
const EPOCH: Timestamp = Timestamp::from_millis(1_767_225_600_000);

struct Inner {
    data: Mutex<Data>,
    began: Instant,
    /// How far the store's clock is ahead of the runtime's, in milliseconds.
    ahead: Mutex<i64>,
    arrived: Notify,
    moved: watch::Sender<()>,
}

/// A store that is gone with its last clone.
#[derive(Clone)]
pub struct MemoryStore(Arc<Inner>);

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self(Arc::new(Inner {
            data: Mutex::default(),
            began: Instant::now(),
            ahead: Mutex::default(),
            arrived: Notify::new(),
            moved: watch::Sender::default(),
        }))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Clock for MemoryStore {
    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let millis = EPOCH.as_millis().saturating_add(elapsed);
        Timestamp::from_millis(millis.saturating_add(*lock(&self.0.ahead)))
    }
}

impl MemoryStore {
    /// What is stored now.
    pub fn data(&self) -> Data {
        lock(&self.0.data).clone()
    }

    /// Sets the store's clock so many milliseconds ahead of where it would be, or back.
    pub fn skip(&self, millis: i64) {
        *lock(&self.0.ahead) += millis;
        self.wake();
    }

    fn wake(&self) {
        self.0.moved.send_replace(());
        self.0.arrived.notify_waiters();
        self.0.arrived.notify_one();
    }

    fn look<T>(&self, read: impl FnOnce(&Data, Timestamp) -> T) -> T {
        let now = Clock::now(self);
        read(&lock(&self.0.data), now)
    }

    fn alter<T>(&self, write: impl FnOnce(&mut Data, Timestamp) -> T) -> T {
        let now = Clock::now(self);
        let mut data = lock(&self.0.data);
        let outcome = write(&mut data, now);
        data.assert_rules();
        outcome
    }

    /// Commits a change whole, or nothing of it.
    pub fn change(&self, change: &Change) -> Result<(), CommitError> {
        let now = Clock::now(self);
        let mut data = lock(&self.0.data);
        let mut next = data.clone();
        next.apply(now, change)?;
        next.assert_rules();
        *data = next;
        drop(data);
        let wakes = |write: &Write| matches!(write, Write::Enqueue(_) | Write::Requeue(_) | Write::Settle(..));
        if change.writes.iter().any(wakes) {
            self.wake();
        }
        Ok(())
    }
}

#[async_trait]
impl StateReader for MemoryStore {
    async fn read(&self, driver: &str, key: &str) -> EffectResult<Option<StateEntry>> {
        let key = (driver.to_owned(), key.to_owned());
        Ok(self.look(|data, _| data.records.get(&key).cloned()))
    }
}

#[async_trait]
impl PolicyReader for MemoryStore {
    async fn grants(&self, principal: &PrincipalId) -> EffectResult<Grants> {
        Ok(self.look(|data, _| data.grants(principal)))
    }
}

/// A part of what is sorted as every list is: by creation, then by id.
fn by_creation<T, K: ToString>(slice: &Slice, mut rows: Vec<T>, key: impl Fn(&T) -> (Timestamp, K)) -> Vec<T> {
    let place = |row: &T| {
        let (at, id) = key(row);
        (at.as_millis(), id.to_string())
    };
    rows.sort_by_key(place);
    slice.of(rows, place)
}

#[async_trait]
impl Store for MemoryStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        Ok(Clock::now(self))
    }

    async fn installation(&self) -> StoreResult<Option<Installation>> {
        Ok(self.look(|data, _| data.installation.clone()))
    }

    async fn namespace(&self, id: NamespaceId) -> StoreResult<Option<NamespaceRow>> {
        Ok(self.look(|data, _| data.namespace(id).cloned()))
    }

    async fn namespaces(&self, slice: &Slice) -> StoreResult<Vec<NamespaceRow>> {
        let rows = self.look(|data, _| {
            let live = data.namespaces.values().filter(|named| !named.tombstone);
            live.map(|named| named.row.clone()).collect::<Vec<_>>()
        });
        Ok(by_creation(slice, rows, |row| {
            (row.namespace.created_at, row.namespace.id)
        }))
    }

    async fn namespace_contents(&self, id: NamespaceId, limit: u32) -> StoreResult<Vec<(&'static str, String)>> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(self.look(|data, _| data.contents(id).take(limit).collect()))
    }

    async fn configuration(
        &self,
        namespace: NamespaceId,
        id: ConfigurationId,
    ) -> StoreResult<Option<ConfigurationRow>> {
        Ok(self
            .look(|data, _| data.configurations.get(&id).cloned())
            .filter(|row| row.namespace_id == namespace))
    }

    async fn configurations(&self, namespace: NamespaceId, slice: &Slice) -> StoreResult<Vec<ConfigurationRow>> {
        let rows = self.look(|data, _| {
            let rows = data.configurations.values().filter(|row| row.namespace_id == namespace);
            rows.cloned().collect::<Vec<_>>()
        });
        Ok(by_creation(slice, rows, |row| (row.created_at, row.id)))
    }

    async fn secret(&self, namespace: NamespaceId, id: SecretId) -> StoreResult<Option<Secret>> {
        Ok(self
            .look(|data, _| data.secrets.get(&id).cloned())
            .filter(|row| row.namespace_id == namespace))
    }

    async fn secrets(&self, namespace: NamespaceId, slice: &Slice) -> StoreResult<Vec<Secret>> {
        let rows = self.look(|data, _| {
            let rows = data.secrets.values().filter(|row| row.namespace_id == namespace);
            rows.cloned().collect::<Vec<_>>()
        });
        Ok(by_creation(slice, rows, |row| (row.created_at, row.id)))
    }

    async fn secret_consumers(&self, namespace: NamespaceId, id: SecretId) -> StoreResult<Consumers> {
        Ok(self.look(|data, _| {
            let own = data.secrets.get(&id).is_some_and(|row| row.namespace_id == namespace);
            if own { data.consumers(id) } else { Consumers::default() }
        }))
    }

    async fn configuration_consumers(&self, namespace: NamespaceId, id: ConfigurationId) -> StoreResult<Vec<AgentId>> {
        let mut agents = self.agents(namespace).await?;
        agents.retain(|row| row.agent.configuration_id == id);
        Ok(agents.into_iter().map(|row| row.agent.id).collect())
    }

    async fn agent(&self, namespace: NamespaceId, id: AgentId) -> StoreResult<Option<AgentRow>> {
        Ok(self
            .look(|data, _| data.agents.get(&id).cloned())
            .filter(|row| row.agent.namespace_id == namespace))
    }

    async fn agents(&self, namespace: NamespaceId) -> StoreResult<Vec<AgentRow>> {
        let rows = self.look(|data, _| {
            let rows = data.agents.values().filter(|row| row.agent.namespace_id == namespace);
            rows.cloned().collect::<Vec<_>>()
        });
        Ok(by_creation(&Slice::ALL, rows, |row| {
            (row.agent.created_at, row.agent.id)
        }))
    }

    async fn revision(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> StoreResult<Option<RevisionRow>> {
        self.look(|data, _| data.whole_version(namespace, agent, id))
    }

    async fn revisions(&self, namespace: NamespaceId, agent: AgentId) -> StoreResult<Vec<RevisionRow>> {
        self.look(|data, _| data.whole_versions(namespace, agent))
    }

    async fn deploy_read(&self, query: &DeployQuery) -> StoreResult<DeployRead> {
        Ok(self.look(|data, now| data.deploy_read(now, query)))
    }

    async fn pass_read(&self, target: &Target) -> StoreResult<PassRead> {
        Ok(self.look(|data, now| data.pass_read(now, target)))
    }

    async fn deployment(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        revision: RevisionId,
    ) -> StoreResult<Option<DeploymentRow>> {
        Ok(self.look(|data, now| data.deployment(now, namespace, agent, revision)))
    }

    async fn work_state(&self, key: &str) -> StoreResult<Option<WorkState>> {
        Ok(self.look(|data, now| data.work.get(key).map(|work| read::judged(work, now))))
    }

    async fn service_key(&self, id: ServiceKeyId) -> StoreResult<Option<ServiceKeyRow>> {
        Ok(self.look(|data, now| {
            data.keys.get(&id).map(|stored| ServiceKeyRow {
                key: stored.key.clone(),
                expired: stored.revoked || stored.key.expires_at.is_some_and(|end| end <= now),
                disabled: data
                    .accounts
                    .get(&stored.key.principal)
                    .is_some_and(|account| account.disabled),
            })
        }))
    }

    async fn account(&self, name: AccountName<'_>) -> StoreResult<Option<AccountRow>> {
        Ok(self.look(|data, now| data.account(now, name)))
    }

    async fn accounts(&self, slice: &Slice) -> StoreResult<Vec<AccountRow>> {
        let rows = self.look(|data, now| {
            let principals = data.accounts.values().map(|account| &account.new.principal);
            let rows = principals.filter_map(|id| data.account(now, AccountName::Principal(id)));
            rows.collect::<Vec<_>>()
        });
        Ok(by_creation(slice, rows, |row| (row.created_at, row.principal.clone())))
    }

    async fn session(&self, id: SessionId) -> StoreResult<Option<SessionRow>> {
        Ok(self.look(|data, now| data.session(now, id)))
    }

    async fn agent_token_key(&self, id: AgentTokenKeyId) -> StoreResult<Option<AgentTokenKeyRow>> {
        Ok(self.look(|data, now| data.token_key(now, id)))
    }

    async fn roles(&self, scope: Option<NamespaceId>) -> StoreResult<Vec<Role>> {
        Ok(self.look(|data, _| {
            let roles = data.roles.values().filter(|role| role.namespace_id == scope);
            roles.cloned().collect()
        }))
    }

    async fn role(&self, scope: Option<NamespaceId>, id: &str) -> StoreResult<Option<Role>> {
        Ok(self.look(|data, _| {
            let role = data.roles.get(id).filter(|role| role.namespace_id == scope);
            role.cloned()
        }))
    }

    async fn access_bindings(&self, scope: Option<NamespaceId>, of: BindingsOf<'_>) -> StoreResult<Vec<AccessBinding>> {
        Ok(self.look(|data, _| {
            let bindings = data.bindings.values().filter(|row| {
                let anywhere = scope.is_none() && matches!(of, BindingsOf::Role(_));
                (anywhere || row.namespace_id == scope) && of.has(row)
            });
            bindings.cloned().collect()
        }))
    }

    async fn service_principals(&self, namespace: NamespaceId) -> StoreResult<Vec<Identity>> {
        Ok(self.look(|data, _| {
            let own = data
                .principals
                .values()
                .filter(|row| row.namespace_id == Some(namespace));
            own.cloned().collect()
        }))
    }

    async fn revision_owner(&self, namespace: NamespaceId, id: RevisionId) -> StoreResult<Option<AgentId>> {
        Ok(self.look(|data, _| {
            data.revisions
                .get(&id)
                .filter(|row| row.revision.namespace_id == namespace)
                .map(|row| row.revision.agent_id)
        }))
    }

    async fn owned(&self, namespace: NamespaceId, kind: OwnedKind, id: &str) -> StoreResult<Option<OwnedRow>> {
        let row = self.look(|data, _| data.owned.get(id).cloned());
        Ok(row.filter(|row| row.namespace_id == namespace && row.kind == kind))
    }

    async fn all_owned(&self, namespace: NamespaceId, kind: OwnedKind, slice: &Slice) -> StoreResult<Vec<OwnedRow>> {
        let rows = self.look(|data, _| {
            let own = |row: &&OwnedRow| row.namespace_id == namespace && row.kind == kind;
            data.owned.values().filter(own).cloned().collect::<Vec<_>>()
        });
        Ok(by_creation(slice, rows, |row| (row.created_at, row.id.clone())))
    }

    async fn first_answer(&self, principal: &PrincipalId, key: &str) -> StoreResult<Option<FirstAnswer>> {
        Ok(self.look(|data, now| data.first_answer(now, principal, key).cloned()))
    }

    async fn audit_records(&self, query: &AuditQuery) -> StoreResult<Vec<AuditRecord>> {
        let wanted = |record: &AuditRecord| {
            let event = &record.event;
            query.before.is_none_or(|before| record.sequence < before)
                && query.namespace.is_none_or(|id| event.namespace_id() == Some(id))
                && query.actor.as_ref().is_none_or(|actor| event.actor == *actor)
                && query.action.as_ref().is_none_or(|action| event.action == *action)
                && query.resource.as_ref().is_none_or(|id| event.resource.id == *id)
                && query.outcome.is_none_or(|outcome| event.outcome == outcome)
        };
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        Ok(self.look(|data, _| {
            let newest = (0..data.audit.len()).rev().filter_map(|index| data.audit_record(index));
            newest.filter(wanted).take(limit).collect()
        }))
    }

    async fn seal_audit(&self, limit: u32) -> StoreResult<u32> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let sealed = self.alter(|data, _| data.seal(limit));
        Ok(u32::try_from(sealed).unwrap_or(u32::MAX))
    }

    async fn sealed_audit(&self, after: u64, limit: u32) -> StoreResult<Vec<AuditRecord>> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(self.look(|data, _| {
            let first = usize::try_from(after.saturating_sub(data.pruned())).unwrap_or(usize::MAX);
            let sealed = (first..data.seals.len()).take(limit);
            sealed.filter_map(|index| data.audit_record(index)).collect()
        }))
    }

    async fn audit_anchor(&self) -> StoreResult<Option<Seal>> {
        Ok(self.look(|data, _| data.anchor.clone()))
    }

    async fn prunable_audit(&self, older_than: Duration) -> StoreResult<u64> {
        Ok(self.look(|data, now| data.prunable_audit(now, older_than)) as u64)
    }

    async fn prune_audit(&self, older_than: Duration, limit: u32) -> StoreResult<u64> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(self.alter(|data, now| data.prune_audit(now, older_than, limit)) as u64)
    }

    async fn prunable_work(&self, older_than: Duration) -> StoreResult<u64> {
        Ok(self.look(|data, now| data.prunable_work(now, older_than).len()) as u64)
    }

    async fn prune_work(&self, older_than: Duration, limit: u32) -> StoreResult<u64> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(self.alter(|data, now| {
            let mut keys = data.prunable_work(now, older_than);
            keys.truncate(limit);
            data.work.keep(|key, _| !keys.contains(key));
            keys.len()
        }) as u64)
    }

    async fn commit(&self, change: Change) -> Result<(), CommitError> {
        self.change(&change)
    }

    async fn claim(&self, limit: usize, lease: Lease) -> StoreResult<Vec<Claim>> {
        let claims = self.alter(|data, now| data.claim(now, limit, lease));
        if !claims.is_empty() {
            self.0.moved.send_replace(());
        }
        Ok(claims)
    }

    async fn renew(&self, token: ClaimToken, lease: Lease) -> StoreResult<bool> {
        Ok(self.alter(|data, now| data.renew(now, token, lease)))
    }

    async fn postpone(&self, waits: &[Wait]) -> StoreResult<Vec<bool>> {
        let held: Vec<_> = self.alter(|data, now| waits.iter().map(|wait| data.postpone(now, wait)).collect());
        if Wait::any_due(waits, &held) {
            self.wake();
        }
        Ok(held)
    }

    async fn recover(&self, lease: Lease) -> StoreResult<usize> {
        let count = self.alter(|data, now| {
            let (count, events) = data.recover(now, lease);
            for event in events {
                // Each is new.
                let _ = data.record(now, event);
            }
            count
        });
        if count > 0 {
            self.wake();
        }
        Ok(count)
    }

    async fn selected(&self) -> StoreResult<Vec<NewWork>> {
        Ok(self.look(Data::selected))
    }

    async fn next_due(&self) -> StoreResult<Option<Duration>> {
        Ok(self.look(Data::next_due))
    }

    async fn queue_depth(&self) -> StoreResult<QueueDepth> {
        Ok(self.look(Data::depth))
    }

    fn hears(&self) -> bool {
        true
    }

    async fn work_arrived(&self) {
        self.0.arrived.notified().await;
    }

    fn movements(&self) -> watch::Receiver<()> {
        self.0.moved.subscribe()
    }
}

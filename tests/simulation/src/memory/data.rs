//! The tables. A change works on a copy, which takes their place when all of it holds.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use occ_core::{
    audit::{AuditEvent, chain::Seal},
    driver::{Identity, StateEntry},
    iam::{AccessBinding, Role},
    id::{AgentId, AgentTokenKeyId, ConfigurationId, NamespaceId, RevisionId, SecretId, ServiceKeyId, SessionId},
    resource::{Installation, PrincipalId, Secret, WorkspaceSetup},
    store::{
        AgentRow, ConfigurationRow, FirstAnswer, NamespaceRow, NewAgentTokenKey, NewServiceKey, OwnedRow, RevisionRow,
        SavedField,
    },
    time::Timestamp,
    trace::TraceContext,
    work::{Claim, ClaimToken, LastAttempt, Target, Warning},
};

use super::account::{Account, Session};
use occ_core::{
    reason::{Failure, Success},
    work::FailureData,
};

/// A table whose copy costs nothing until it is written.
#[derive(Debug)]
pub struct Table<K, V>(Arc<BTreeMap<K, V>>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K, V> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, V> Deref for Table<K, V> {
    type Target = BTreeMap<K, V>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<K: Ord + Clone, V: Clone> Table<K, V> {
    /// The table for writing.
    pub(super) fn write(&mut self) -> &mut BTreeMap<K, V> {
        Arc::make_mut(&mut self.0)
    }

    /// Removes what does not pass.
    pub(super) fn keep(&mut self, mut pass: impl FnMut(&K, &V) -> bool) {
        if !self.iter().all(|(key, value)| pass(key, value)) {
            self.write().retain(|key, value| pass(key, value));
        }
    }
}

/// A Namespace, or the tombstone of one.
#[derive(Debug, Clone)]
pub struct Named {
    /// Its row.
    pub row: NamespaceRow,
    /// Whether only its id and its name are left.
    pub tombstone: bool,
}

/// A service key and whether it was revoked.
#[derive(Debug, Clone)]
pub struct Key {
    /// The key.
    pub key: NewServiceKey,
    /// Whether it was revoked.
    pub revoked: bool,
}

/// How work stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It waits.
    Queued,
    /// A worker has it.
    Claimed {
        /// The fencing token.
        token: ClaimToken,
        /// When the lease ends.
        until: Timestamp,
    },
    /// It is done.
    Succeeded(Success, Vec<Warning>, Timestamp),
    /// It is over.
    Failed(Failure, FailureData, Timestamp),
}

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// What it is for.
    pub target: Target,
    /// Who asked for it.
    pub actor: PrincipalId,
    /// How it stands.
    pub state: State,
    /// Its earliest eligibility.
    pub available_at: Timestamp,
    /// Attempts that were spent.
    pub attempts: u32,
    /// Attempts that were granted beyond the limit.
    pub extra_attempts: u32,
    /// What the latest attempt recorded.
    pub last_attempt: Option<LastAttempt>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// Where the request that asked for it is in its trace.
    pub trace: Option<TraceContext>,
}

impl Work {
    /// Whether it has ended.
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Succeeded(..) | State::Failed(..))
    }

    /// Whether a worker has it, also under a lapsed lease.
    pub const fn is_claimed(&self) -> bool {
        matches!(self.state, State::Claimed { .. })
    }

    /// Attempts that count against the limit.
    pub const fn counted(&self) -> u32 {
        self.attempts.saturating_sub(self.extra_attempts)
    }

    pub(super) fn claim(&self, token: ClaimToken, now: Timestamp) -> Claim {
        Claim {
            token,
            target: self.target,
            actor: self.actor.clone(),
            attempt: self.attempts,
            created_at: self.created_at,
            claimed_at: now,
            last_attempt: self.last_attempt,
            trace: self.trace.clone(),
        }
    }
}

/// Everything that is stored.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)]
pub struct Data {
    pub installation: Option<Installation>,
    pub namespaces: Table<NamespaceId, Named>,
    pub principals: Table<PrincipalId, Identity>,
    pub configurations: Table<ConfigurationId, ConfigurationRow>,
    pub secrets: Table<SecretId, Secret>,
    pub agents: Table<AgentId, AgentRow>,
    pub setups: Table<AgentId, WorkspaceSetup>,
    pub revisions: Table<RevisionId, Arc<RevisionRow>>,
    /// Versions whose settings do not decode, and the field.
    pub spoilt: Table<RevisionId, SavedField>,
    pub roles: Table<String, Role>,
    pub bindings: Table<String, AccessBinding>,
    pub keys: Table<ServiceKeyId, Key>,
    pub names: Table<PrincipalId, String>,
    pub accounts: Table<PrincipalId, Account>,
    pub sessions: Table<SessionId, Session>,
    pub federated: Table<(String, String), PrincipalId>,
    pub token_keys: Table<AgentTokenKeyId, (NewAgentTokenKey, Timestamp)>,
    pub records: Table<(String, String), StateEntry>,
    pub owned: Table<String, OwnedRow>,
    pub answers: Table<(PrincipalId, String), (FirstAnswer, Timestamp)>,
    pub work: Table<String, Work>,
    /// How much of the audit is sealed, after what was pruned.
    pub seals: Arc<Vec<Seal>>,
    /// By its place in the order, after what was pruned.
    pub audit: Arc<Vec<Arc<AuditEvent>>>,
    /// When each of these was recorded.
    pub audited_at: Arc<Vec<Timestamp>>,
    /// The last seal that was pruned.
    pub anchor: Option<Seal>,
}

//! What is written, and what must hold for it.

use std::time::Duration;

use crate::{
    audit::AuditEvent,
    driver::StateWrite,
    iam::{AccessBinding, Role},
    id::{AgentId, ConfigurationId, NamespaceId, RevisionId, SecretId, ServiceKeyId, SessionId},
    resource::{
        Agent, AgentRevision, AgentStatus, DesiredRuntimeState, Installation, Namespace, NamespaceStatus, OwnedKind,
        PrincipalId, Secret, WorkspaceSetup,
    },
    store::{
        ConfigurationRow, FirstAnswer, NewAccount, NewAgentTokenKey, NewCode, NewServiceKey, NewSession, OwnedRow,
        PasswordHash,
    },
    work::{ClaimToken, NewWork, Transition},
};

/// One transaction: checked, written and audited whole, or not at all.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// What must hold when it commits. The order is the lock order: Namespace, then Agent, then the rest.
    pub expect: Vec<Expect>,
    /// What is written, in order.
    pub writes: Vec<Write>,
    /// What drivers staged during the operation.
    pub state: Vec<StateWrite>,
    /// What is recorded about it.
    pub audit: Vec<AuditEvent>,
}

/// Something that must hold when a change commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// The claim is live: claimed, this token, and its lease ends after the database's present.
    ClaimHeld(ClaimToken),
    /// The Namespace's row has this version.
    Namespace(NamespaceId, u64),
    /// The Namespace has one of these statuses.
    NamespaceStatus(NamespaceId, &'static [NamespaceStatus]),
    /// The Agent's row has this version.
    Agent(AgentId, u64),
    /// The Agent's pointer and desired state are these.
    AgentRuntime {
        /// The Agent.
        agent: AgentId,
        /// What the pointer names.
        active: Option<RevisionId>,
        /// What the owner last asked for.
        desired: DesiredRuntimeState,
    },
    /// The Configuration exists with this generation, and its deletion was not begun.
    Configuration(ConfigurationId, u64),
    /// The Secret exists with this version.
    Secret(SecretId, u64),
    /// The Agent has so many versions.
    RevisionCount(AgentId, u64),
    /// The deletion of the Configuration was begun.
    ConfigurationDeleting(ConfigurationId),
    /// The small resource exists with this version.
    Owned(String, u64),
    /// No Agent refers to the small resource.
    OwnedUnreferenced(String),
    /// The caller has not used this key within a day.
    NoAnswer(PrincipalId, String),
    /// Nobody refers to the Secret.
    SecretUnreferenced(SecretId),
    /// No Agent refers to the Configuration.
    ConfigurationUnreferenced(ConfigurationId),
    /// The Namespace owns nothing.
    NamespaceEmpty(NamespaceId),
    /// No Installation exists.
    NoInstallation,
    /// The access binding exists: what it grants is granted still, for neither it nor its Role ever changes.
    AccessBinding(String),
    /// The Role exists.
    Role(String),
    /// No access binding names the Role.
    RoleUnreferenced(String),
    /// The work of this key exists and has failed. [`Write::Requeue`] expects it by itself.
    WorkFailed(String),
    /// The work of this key is this actor's, if it exists. [`Write::Enqueue`] expects it by itself.
    WorkActor(String, PrincipalId),
    /// The account of this principal has this version.
    Account(PrincipalId, u64),
}

/// Something that is written.
#[derive(Debug, Clone)]
pub enum Write {
    /// The one Installation.
    Installation(Installation),
    /// A human principal, by its id and what it is called.
    Principal(PrincipalId, String),
    /// A Role.
    Role(Role),
    /// An access binding.
    AccessBinding(AccessBinding),
    /// Removes a Role.
    DeleteRole(String),
    /// Removes an access binding; absent is well.
    DeleteAccessBinding(String),
    /// A service key.
    ServiceKey(NewServiceKey),
    /// Ends a service key.
    RevokeServiceKey(ServiceKeyId),
    /// The account of a person who exists.
    Account(NewAccount),
    /// A one-time code of an account, in the place of an earlier one.
    AccountCode(PrincipalId, NewCode),
    /// An account's password, as its hash. Its one-time code and every session of it end.
    AccountPassword(PrincipalId, PasswordHash),
    /// Whether an account may be used. When it may not, every session of it ends.
    AccountDisabled(PrincipalId, bool),
    /// A new session of an account. Sessions that are over are removed with it.
    Session(NewSession),
    /// The session is in use now.
    TouchSession(SessionId),
    /// Ends a session; absent is well.
    EndSession(SessionId),
    /// Ends every session of an account.
    EndSessions(PrincipalId),
    /// Links an account to who an identity provider says that its person is; once for each provider.
    FederatedIdentity {
        /// The provider, exactly as it names itself.
        issuer: String,
        /// The person, exactly as the provider names them.
        subject: String,
        /// Whose account it is.
        principal: PrincipalId,
    },
    /// Takes every identity from an account. Every session of it ends, for one of them may have begun it.
    UnlinkIdentities(PrincipalId),
    /// What verifies tokens of Agents. Those that are over are removed with it.
    AgentTokenKey(NewAgentTokenKey),
    /// A new Namespace.
    Namespace(Namespace),
    /// A Namespace's new status; `deletion_actor` is kept with `deleting`.
    NamespaceStatus {
        /// The Namespace.
        id: NamespaceId,
        /// Its new status.
        status: NamespaceStatus,
        /// Who asked for its deletion.
        deletion_actor: Option<PrincipalId>,
    },
    /// Leaves of a Namespace only its id and its name; removes its policy.
    NamespaceTombstone(NamespaceId),
    /// A new Configuration's record.
    Configuration(ConfigurationRow),
    /// A Configuration's changed record.
    UpdateConfiguration(ConfigurationRow),
    /// Removes a Configuration's record, and bindings and restrictions of exactly that one.
    DeleteConfiguration(ConfigurationId),
    /// A new Secret's record.
    Secret(Secret),
    /// A Secret's changed record.
    UpdateSecret(Secret),
    /// Removes a Secret's record, and bindings and restrictions of exactly that one.
    DeleteSecret(SecretId),
    /// A new small resource.
    Owned(OwnedRow),
    /// A small resource's changed row.
    UpdateOwned(OwnedRow),
    /// Removes a small resource, and bindings and restrictions of exactly that one.
    DeleteOwned(OwnedKind, String),
    /// Keeps the first result of a request for a day.
    Answer(FirstAnswer),
    /// A new Agent with its service principal and, perhaps, its staged workspace files.
    Agent(Agent, Option<WorkspaceSetup>),
    /// An Agent's changed row: all but its identity and its pointer, which [`Write::ActiveRevision`] alone moves.
    UpdateAgent(Agent),
    /// What an Agent's owner asks of its runtime, and nothing else of its row: settings that cannot be read stay as they are saved.
    AgentState {
        /// The Agent.
        id: AgentId,
        /// Whether it should run.
        desired: DesiredRuntimeState,
        /// Whether it is being deleted.
        status: AgentStatus,
    },
    /// Removes staged workspace files that were never applied.
    DropWorkspaceSetup(AgentId),
    /// Records that the workspace files were applied, and forgets their contents.
    CompleteWorkspaceSetup(AgentId),
    /// A new version. Its snapshot's bytes are stored as they are and never change.
    Revision {
        /// The version.
        revision: Box<AgentRevision>,
        /// The snapshot's canonical bytes, of which `revision.digest` is the SHA-256.
        bytes: Vec<u8>,
    },
    /// Moves the Agent's pointer.
    ActiveRevision(AgentId, Option<RevisionId>),
    /// Compute holds nothing of this version any more.
    RevisionRetired(RevisionId),
    /// Removes the Agent, its versions, its principal, its keys, its exact bindings and restrictions, and its other work.
    RemoveAgent(AgentId),
    /// New work. The same target for the same actor is the work that exists.
    Enqueue(NewWork),
    /// The same, due after so long.
    EnqueueLater(NewWork, Duration),
    /// Queues failed work again with fresh attempts, perhaps for another actor.
    Requeue(NewWork),
    /// Publishes what becomes of claimed work, under its token.
    Settle(ClaimToken, Transition),
}

/// Why nothing was committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// This no longer holds; gather again.
    #[error("the state changed meanwhile")]
    Conflict(Expect),
    /// A name is taken.
    #[error("the name is taken by another {0}")]
    NameTaken(Taken),
    /// A driver's record changed meanwhile; gather again.
    #[error("a driver's record changed meanwhile")]
    StateConflict,
    /// It breaks a rule of the stored data that its `expect` should have named: a defect, which repeating does not mend.
    /// Nothing was committed.
    #[error("the change contradicts what is stored")]
    Refused,
    /// The database does not answer; nothing was committed.
    #[error("the database is unavailable")]
    Unavailable,
    /// The disk of the database is full, or a quota on it; nothing was committed.
    #[error("the database has no space left")]
    NoSpace,
    /// The connection was lost at the commit: it may or may not have happened. Never repeated automatically.
    #[error("the outcome of the commit is not known")]
    UnknownOutcome,
}

/// Whose name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// A Namespace, or the tombstone of one.
    Namespace,
    /// An Agent of the same Namespace.
    Agent,
    /// A Secret of the same Namespace.
    Secret,
    /// A small resource of the same kind in the same Namespace.
    Owned,
    /// An account: its email address, its principal, or who a provider says that its person is.
    Account,
}

impl std::fmt::Display for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Namespace => "Namespace",
            Self::Agent => "Agent",
            Self::Secret => "Secret",
            Self::Owned => "resource of its kind",
            Self::Account => "account",
        })
    }
}

impl Change {
    /// A change of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, when this holds.
    #[must_use]
    pub fn expect(mut self, expect: Expect) -> Self {
        self.expect.push(expect);
        self
    }

    /// The same, with this written.
    #[must_use]
    pub fn write(mut self, write: Write) -> Self {
        self.writes.push(write);
        self
    }

    /// The same, with this recorded.
    #[must_use]
    pub fn audit(mut self, event: AuditEvent) -> Self {
        self.audit.push(event);
        self
    }

    /// The same, with what drivers staged.
    #[must_use]
    pub fn state(mut self, staged: Vec<StateWrite>) -> Self {
        self.state.extend(staged);
        self
    }
}

//! What the store returns.

use std::time::Duration;

use crate::{
    driver::StoredRecord,
    iam::Grants,
    id::{AgentId, ConfigurationId, CredentialSourceId, NamespaceId, RevisionId, ServiceAccountId, ServiceKeyId},
    reason::{Failure, Success},
    resource::{
        Agent, AgentRevision, BackendId, ComputeIdentity, ConfigurationKind, CredentialSource, ExecutionMode,
        Namespace, OwnedKind, PrincipalId, Secret, SecretBindings, ServiceAccount, WorkspaceSetup,
    },
    time::Timestamp,
    work::{FailureData, LastAttempt, Warning},
};

/// A Namespace and the version of its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceRow {
    /// The Namespace.
    pub namespace: Namespace,
    /// Grows with each write.
    pub version: u64,
    /// Who asked for its deletion, while it is deleting.
    pub deletion_actor: Option<PrincipalId>,
}

/// A Configuration's record; its document is the Configuration Driver's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationRow {
    /// Its id.
    pub id: ConfigurationId,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// What it is for.
    pub kind: ConfigurationKind,
    /// Grows with each change.
    pub generation: u64,
    /// The Secrets that it binds.
    pub secret_bindings: SecretBindings,
    /// Its deletion was begun and not finished: nothing new may refer to it, and only its deletion may be repeated.
    pub deleting: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

/// An Agent, as far as its saved settings can be read, and the version of its row (seed: Unreadable saved settings).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    /// The Agent, without what cannot be read.
    pub agent: Agent,
    /// Grows with each write.
    pub version: u64,
    /// The fields whose saved values do not decode. Whoever goes by the settings, or writes them, looks here first.
    pub unreadable: Vec<SavedField>,
}

/// A version and whether Compute may still hold something of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RevisionRow {
    /// The version.
    pub revision: AgentRevision,
    /// Set at admission, cleared once Compute retired it. Keeps the cost of a pass independent of history.
    pub live: bool,
}

/// What it takes to stop and to retire a version, as far as it can be read: a version whose settings do not decode must not keep its
/// Agent from being stopped, deleted or deployed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionHead {
    /// Its id.
    pub id: RevisionId,
    /// The owning Agent.
    pub agent_id: AgentId,
    /// Its number.
    pub revision: u64,
    /// How it runs, if that can be read.
    pub mode: Option<ExecutionMode>,
    /// The Compute that it was admitted for, if that can be read.
    pub compute: Option<ComputeIdentity>,
    /// Whether Compute may still hold something of it.
    pub live: bool,
}

impl RevisionHead {
    /// Whether this Compute could hold something of it: what cannot be read may be anybody's.
    pub fn may_be_of(&self, compute: &ComputeIdentity) -> bool {
        self.compute.as_ref().is_none_or(|own| own == compute)
    }
}

impl From<&RevisionRow> for RevisionHead {
    fn from(row: &RevisionRow) -> Self {
        let revision = &row.revision;
        Self {
            id: revision.id,
            agent_id: revision.agent_id,
            revision: revision.revision,
            mode: Some(revision.snapshot.harness.mode),
            compute: Some(revision.snapshot.compute.clone()),
            live: row.live,
        }
    }
}

/// Who refers to a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consumers {
    /// Agents whose draft, or whose selected or pending version, refers to it.
    pub agents: Vec<AgentId>,
    /// Configurations that bind it.
    pub configurations: Vec<ConfigurationId>,
    /// Small resources, by kind and id.
    pub owned: Vec<(OwnedKind, String)>,
}

impl Consumers {
    /// Whether nobody does.
    pub fn is_empty(&self) -> bool {
        self.agents.is_empty() && self.configurations.is_empty() && self.owned.is_empty()
    }
}

/// What admission of a deployment asks the store for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployQuery {
    /// The Namespace of the request.
    pub namespace: NamespaceId,
    /// The Agent of the request.
    pub agent: AgentId,
    /// Whose policy is wanted, besides that of the Agent's principal. Nobody's: none is read.
    pub policy_of: Option<PrincipalId>,
    /// Drivers whose records under the id of the Configuration, or of a Secret that is named, are wanted.
    pub records_of: Vec<String>,
}

impl DeployQuery {
    /// The rows alone.
    pub const fn rows(namespace: NamespaceId, agent: AgentId) -> Self {
        Self {
            namespace,
            agent,
            policy_of: None,
            records_of: Vec::new(),
        }
    }
}

/// All that admission of a deployment reads, of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct DeployRead {
    /// The present, by the database's clock.
    pub now: Timestamp,
    /// The Namespace.
    pub namespace: Option<NamespaceRow>,
    /// The Agent, if it is the Namespace's.
    pub agent: Option<AgentRow>,
    /// The Configuration that the Agent names.
    pub configuration: Option<ConfigurationRow>,
    /// Every Secret that the Agent or that Configuration names and that exists in the Namespace.
    pub secrets: Vec<Secret>,
    /// How many versions the Agent has.
    pub revisions: u64,
    /// What bears on the caller and on the Agent's principal.
    pub policy: Vec<(PrincipalId, Grants)>,
    /// The records of drivers.
    pub records: Vec<StoredRecord>,
}

/// All that a pass reads, of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct PassRead {
    /// The present, by the database's clock.
    pub now: Timestamp,
    /// The Namespace, also while it is deleting.
    pub namespace: Option<NamespaceRow>,
    /// The Agent. What of its draft does not decode is left out: no pass looks at a draft.
    pub agent: Option<AgentRow>,
    /// The version of the target, as far as it can be read.
    pub head: Option<RevisionHead>,
    /// The same with its settings; `None` also when they do not decode.
    pub revision: Option<RevisionRow>,
    /// The field of the settings that does not decode.
    pub unreadable: Option<SavedField>,
    /// The version that the Agent's pointer names; `None` when there is no pointer, or when it names no existing version.
    pub active: Option<RevisionHead>,
    /// Versions that Compute may still hold something of, oldest first; the target's and the active one are among them if live.
    pub live: Vec<RevisionHead>,
    /// The Agent's staged workspace setup; `None` also when it does not decode and the target is no version.
    pub setup: Option<WorkspaceSetup>,
    /// Every Secret that the target's version names and that still exists.
    pub secrets: Vec<Secret>,
    /// The credential sources that the target's version froze, as far as they still exist; they may be of a moment later than the
    /// rest.
    pub sources: Vec<CredentialSource>,
    /// The service account that the target's version names, if it still exists; it may be of a moment later than the rest.
    pub account: Option<ServiceAccount>,
    /// How the deployment of the target's version ended, if it did. For maintenance.
    pub deployment: Option<WorkState>,
}

impl PassRead {
    /// The service account that the target's version names.
    pub fn account_id(&self) -> Option<ServiceAccountId> {
        let snapshot = &self.revision.as_ref()?.revision.snapshot;
        snapshot.harness_auth.binding.account()
    }

    /// The credential sources that the target's version froze.
    pub fn source_ids(&self) -> Vec<CredentialSourceId> {
        let snapshot = self.revision.as_ref().map(|row| &row.revision.snapshot);
        let frozen = snapshot.into_iter().flat_map(|snapshot| &snapshot.credential_sources);
        frozen.map(|source| source.source_id).collect()
    }
}

/// The state of a piece of work as a reader judges it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkState {
    /// Not claimed, or claimed under a lease that has lapsed.
    Queued {
        /// Its earliest eligibility.
        available_at: Timestamp,
        /// What the latest attempt recorded.
        last_attempt: Option<LastAttempt>,
    },
    /// Claimed under a live lease.
    Running {
        /// What the latest attempt recorded.
        last_attempt: Option<LastAttempt>,
    },
    /// Done.
    Succeeded {
        /// How.
        code: Success,
        /// Plugins that the version runs without.
        warnings: Vec<Warning>,
        /// When.
        at: Timestamp,
    },
    /// Over.
    Failed {
        /// Why.
        failure: Failure,
        /// Allowlisted facts.
        data: FailureData,
        /// Who asked for it.
        actor: PrincipalId,
        /// Attempts that were spent.
        attempts: u32,
        /// When.
        at: Timestamp,
    },
}

/// The persisted facts behind a deployment's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentRow {
    /// The version.
    pub revision: RevisionId,
    /// The owning Agent.
    pub agent: AgentId,
    /// The owning Namespace.
    pub namespace: NamespaceId,
    /// Its own reconciliation; `None` when the row is missing, which is a fault.
    pub work: Option<WorkState>,
    /// Set while Compute may still hold something of this version although its deployment is over and it is not selected.
    pub left_over: Option<LeftOver>,
}

/// What Compute may still hold of a version that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOver {
    /// The earliest eligibility of queued work that cleans it up: of a newer version, of a stop, or of a deletion of its Agent.
    pub next_attempt_at: Option<Timestamp>,
}

/// A service key to store: only the hash of its secret half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewServiceKey {
    /// The public half.
    pub id: ServiceKeyId,
    /// Whose key it is.
    pub principal: PrincipalId,
    /// What it is called.
    pub name: String,
    /// SHA-256 of the secret half, in hexadecimal; the secret half has 256 random bits, so no slow hash is needed.
    pub secret_hash: String,
    /// The only Namespace that it opens; every one when none is named.
    pub namespace_id: Option<NamespaceId>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// A stored service key, judged by the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceKeyRow {
    /// The key.
    pub key: NewServiceKey,
    /// Whether it has ended or was revoked.
    pub expired: bool,
    /// Whether the account of its person is disabled.
    pub disabled: bool,
}

/// How much work is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueDepth {
    /// Waits: for its time, for its lane, or for a worker.
    pub queued: u64,
    /// Is being driven, or was when its worker was lost.
    pub claimed: u64,
    /// For how long the work that has been due the longest is due; zero when none is.
    pub overdue: Duration,
}

/// A version of the schema, in the database and in this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaVersion {
    /// The database's; 0 when it has none yet.
    pub found: i64,
    /// The newest that this program knows.
    pub known: i64,
}

/// A version as far as its saved settings can be read.
#[derive(Debug, Clone, PartialEq)]
pub enum SavedRevision {
    /// All of it.
    Whole(Box<AgentRevision>),
    /// What is left when its settings do not decode.
    Unreadable {
        /// Its id.
        id: RevisionId,
        /// The owning Namespace.
        namespace_id: NamespaceId,
        /// The owning Agent.
        agent_id: AgentId,
        /// Its number.
        revision: u64,
        /// The associated Backend, if that can be read.
        backend_id: Option<BackendId>,
        /// When it was admitted.
        created_at: Timestamp,
        /// The field whose saved value does not decode.
        field: SavedField,
    },
}

/// A field of saved settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SavedField {
    /// The plugins.
    Plugins,
    /// Who may approve for plugins.
    PluginApprovers,
    /// The credential sources.
    CredentialSources,
    /// How the model credential is obtained.
    HarnessAuth,
    /// The bound Secrets.
    SecretBindings,
    /// The document, or anything else of the settings.
    Configuration,
}

impl SavedField {
    /// As it reads in a response.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plugins => "plugins",
            Self::PluginApprovers => "pluginApprovers",
            Self::CredentialSources => "credentialSources",
            Self::HarnessAuth => "harnessAuth",
            Self::SecretBindings => "secretBindings",
            Self::Configuration => "configuration",
        }
    }
}

/// The first result of a request that named itself with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstAnswer {
    /// Who asked.
    pub principal: PrincipalId,
    /// The key that the caller chose.
    pub key: String,
    /// SHA-256 of the request, in hexadecimal: another request may not use the key.
    pub fingerprint: String,
    /// What was answered.
    pub answer: serde_json::Value,
}

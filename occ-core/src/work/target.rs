//! What work is for, its key and its lane.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    driver::ResourceRef,
    id::{AgentId, NamespaceId, RevisionId},
    resource::PrincipalId,
    trace::TraceContext,
};

/// What a piece of work is for. Only these shapes exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Target {
    /// Provide a Namespace.
    NamespaceReady {
        /// The Namespace.
        namespace: NamespaceId,
    },
    /// Remove a Namespace.
    NamespaceDeleted {
        /// The Namespace.
        namespace: NamespaceId,
    },
    /// Stop an Agent.
    AgentStopped {
        /// The owning Namespace.
        namespace: NamespaceId,
        /// The Agent.
        agent: AgentId,
        /// The request; each stop is work of its own.
        operation: Uuid,
    },
    /// Remove an Agent.
    AgentDeleted {
        /// The owning Namespace.
        namespace: NamespaceId,
        /// The Agent.
        agent: AgentId,
    },
    /// Deploy a version.
    Revision {
        /// The owning Namespace.
        namespace: NamespaceId,
        /// The owning Agent.
        agent: AgentId,
        /// The version.
        revision: RevisionId,
    },
    /// Look after the selected version.
    Maintenance {
        /// The owning Namespace.
        namespace: NamespaceId,
        /// The owning Agent.
        agent: AgentId,
        /// The version.
        revision: RevisionId,
        /// Grows with each repetition.
        bucket: u64,
    },
    /// Take a credential source from a version.
    CredentialsWithdrawn {
        /// The owning Namespace.
        namespace: NamespaceId,
        /// The owning Agent.
        agent: AgentId,
        /// The version.
        revision: RevisionId,
        /// The request; each withdrawal is work of its own.
        operation: Uuid,
    },
}

/// What is serialised: at most one live claim each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// An Agent's lane.
    Agent(AgentId),
    /// A Namespace's own lane, separate from its Agents'.
    Namespace(NamespaceId),
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(id) => id.fmt(f),
            Self::Namespace(id) => id.fmt(f),
        }
    }
}

impl Target {
    /// The idempotency key: enqueueing it twice for the same actor is one piece of work (spec/engine 4).
    pub fn key(&self) -> String {
        match self {
            Self::NamespaceReady { namespace } => format!("namespace:{namespace}:reconcile:ready"),
            Self::NamespaceDeleted { namespace } => format!("namespace:{namespace}:reconcile:deleted"),
            Self::AgentStopped { agent, operation, .. } => format!("agent:{agent}:reconcile:stopped:{operation}"),
            Self::AgentDeleted { agent, .. } => format!("agent:{agent}:reconcile:deleted"),
            Self::Revision { revision, .. } => format!("agent_revision:{revision}:reconcile"),
            Self::Maintenance { revision, bucket, .. } => format!("agent_revision:{revision}:maintenance:{bucket}"),
            Self::CredentialsWithdrawn {
                revision, operation, ..
            } => {
                format!("agent_revision:{revision}:reconcile:credentials_withdrawn:{operation}")
            }
        }
    }

    /// The kind's name, the same as in its stored form.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NamespaceReady { .. } => "namespace_ready",
            Self::NamespaceDeleted { .. } => "namespace_deleted",
            Self::AgentStopped { .. } => "agent_stopped",
            Self::AgentDeleted { .. } => "agent_deleted",
            Self::Revision { .. } => "revision",
            Self::Maintenance { .. } => "maintenance",
            Self::CredentialsWithdrawn { .. } => "credentials_withdrawn",
        }
    }

    /// The owning Namespace.
    pub const fn namespace(&self) -> NamespaceId {
        match self {
            Self::NamespaceReady { namespace }
            | Self::NamespaceDeleted { namespace }
            | Self::AgentStopped { namespace, .. }
            | Self::AgentDeleted { namespace, .. }
            | Self::Revision { namespace, .. }
            | Self::Maintenance { namespace, .. }
            | Self::CredentialsWithdrawn { namespace, .. } => *namespace,
        }
    }

    /// The Agent, when it is an Agent's work.
    pub const fn agent(&self) -> Option<AgentId> {
        match self {
            Self::NamespaceReady { .. } | Self::NamespaceDeleted { .. } => None,
            Self::AgentStopped { agent, .. }
            | Self::AgentDeleted { agent, .. }
            | Self::Revision { agent, .. }
            | Self::Maintenance { agent, .. }
            | Self::CredentialsWithdrawn { agent, .. } => Some(*agent),
        }
    }

    /// The version, when it is a version's work.
    pub const fn revision(&self) -> Option<RevisionId> {
        match self {
            Self::Revision { revision, .. }
            | Self::Maintenance { revision, .. }
            | Self::CredentialsWithdrawn { revision, .. } => Some(*revision),
            _ => None,
        }
    }

    /// The lane.
    pub const fn lane(&self) -> Lane {
        match self.agent() {
            Some(agent) => Lane::Agent(agent),
            None => Lane::Namespace(self.namespace()),
        }
    }

    /// What audit evidence of this work is about.
    pub fn resource(&self) -> ResourceRef {
        match (self.revision(), self.agent()) {
            (Some(revision), _) => ResourceRef::agent_revision(self.namespace(), revision),
            (None, Some(agent)) => ResourceRef::agent(self.namespace(), agent),
            (None, None) => ResourceRef::namespace(self.namespace()),
        }
    }
}

/// Work to enqueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWork {
    /// What it is for.
    pub target: Target,
    /// Who asked for it; reauthorized at every attempt.
    pub actor: PrincipalId,
    /// Where the request that asked for it is in its trace; its passes go on from there.
    pub trace: Option<TraceContext>,
}

impl NewWork {
    /// Work that belongs to no trace.
    pub const fn new(target: Target, actor: PrincipalId) -> Self {
        Self {
            target,
            actor,
            trace: None,
        }
    }

    /// The same, in this trace.
    #[must_use]
    pub fn in_trace(mut self, trace: Option<TraceContext>) -> Self {
        self.trace = trace;
        self
    }
}

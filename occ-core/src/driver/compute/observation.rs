//! What a Compute is given and what it saw.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use crate::{
    driver::EffectResult,
    id::{AgentId, NamespaceId, RevisionId},
    plan::{SecretSlot, WorkloadPlan},
    reason::{Pending, RuntimeFailure},
    resource::{AgentRevision, BackendRef, ExecutionMode, Name, Namespace, PrincipalId, WorkspaceSetup},
    secret_value::SecretValue,
};

/// The Agent that an operation is for. Its ids are the ownership labels of every object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRef {
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// The Agent.
    pub id: AgentId,
    /// Its name, for people; never part of an object's identity.
    pub name: Name,
    /// Its service principal.
    pub service_principal_id: PrincipalId,
}

/// The version that an operation is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionRef {
    /// The Agent.
    pub agent: AgentRef,
    /// The version.
    pub id: RevisionId,
    /// Its number; grows by one.
    pub number: u64,
    /// How its Harness runs.
    pub mode: ExecutionMode,
}

/// The secrets of a version: by reference for a Compute that can refer, by value for one that must deliver.
#[async_trait]
pub trait SecretAccess: Send + Sync {
    /// Where the Secret Driver keeps the value. `None` for a slot without a Secret behind it.
    fn reference(&self, slot: &SecretSlot) -> Option<BackendRef>;

    /// The value, for immediate delivery. [`SecretSlot::GatewayPassword`] is the Compute's own and is not answered here.
    async fn value(&self, slot: &SecretSlot) -> EffectResult<SecretValue>;
}

/// All that prepare and activate need.
#[derive(Clone)]
pub struct RevisionContext {
    /// The Namespace.
    pub namespace: Namespace,
    /// The version, in short.
    pub target: RevisionRef,
    /// The version, whole and immutable.
    pub revision: AgentRevision,
    /// What its Harness wants to run.
    pub plan: WorkloadPlan,
    /// Its secrets.
    pub secrets: Arc<dyn SecretAccess>,
    /// Initial workspace files, or the record that they were applied.
    pub workspace_setup: Option<WorkspaceSetup>,
}

impl fmt::Debug for RevisionContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RevisionContext")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// How far a Namespace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamespaceState {
    /// The Namespace that was looked at; another one is refused as an invalid observation.
    pub namespace_id: NamespaceId,
    /// Whether it is as it was asked to be: provided, or gone.
    pub done: bool,
}

impl NamespaceState {
    /// `namespace` is as it was asked to be.
    pub const fn done(namespace: &Namespace) -> Self {
        Self {
            namespace_id: namespace.id,
            done: true,
        }
    }
}

/// A plugin that a ready version runs without (seed: plugin warnings).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginWarning {
    /// What happened.
    pub code: PluginWarningCode,
    /// An admitted plugin id.
    pub plugin_id: String,
}

/// The two plugin warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginWarningCode {
    /// `PLUGIN_INSTALL_FAILED`
    InstallFailed,
    /// `PLUGIN_AUTH_REQUIRED`
    AuthRequired,
}

/// What a Compute saw of a version. The ids must be the version's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionObservation {
    /// The Namespace that was seen.
    pub namespace_id: NamespaceId,
    /// The Agent that was seen.
    pub agent_id: AgentId,
    /// The version that was seen.
    pub revision_id: RevisionId,
    /// How far it is.
    pub readiness: Readiness,
}

/// How far a version is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It can take over, or (after activation) it serves.
    Ready {
        /// Plugins that it runs without.
        warnings: Vec<PluginWarning>,
    },
    /// Not yet.
    Pending {
        /// Why, in the engine's words.
        reason: Pending,
        /// What the runtime said of itself meanwhile; colours the deadline's error.
        evidence: Option<Box<RuntimeFailure>>,
    },
}

impl RevisionObservation {
    /// An observation of `target`.
    pub fn of(target: &RevisionRef, readiness: Readiness) -> Self {
        Self {
            namespace_id: target.agent.namespace_id,
            agent_id: target.agent.id,
            revision_id: target.id,
            readiness,
        }
    }

    /// `target` is ready, without warnings.
    pub fn ready(target: &RevisionRef) -> Self {
        Self::of(target, Readiness::Ready { warnings: Vec::new() })
    }

    /// `target` is not ready because of `reason`.
    pub fn pending(target: &RevisionRef, reason: Pending) -> Self {
        Self::of(target, Readiness::Pending { reason, evidence: None })
    }

    /// Whether this was seen of `target` and of nothing else.
    pub fn is_of(&self, target: &RevisionRef) -> bool {
        (self.namespace_id, self.agent_id, self.revision_id) == (target.agent.namespace_id, target.agent.id, target.id)
    }
}

/// How a stop goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Nothing of it runs any more.
    Stopped,
    /// It was told to stop and is draining. The engine does other work and asks again, without spending attempts.
    Draining,
}

/// Something that an operator should know and that does not prevent the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreflightWarning {
    /// A code, such as `CGROUP_NOT_DELEGATED`.
    pub code: &'static str,
    /// What it means and what to do.
    pub message: &'static str,
}

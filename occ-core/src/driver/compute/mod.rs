//! The Compute contract: realise any plan, know no Harness by name (spec/contracts 4).

mod ability;
mod admission;
mod observation;

pub use ability::*;
pub use admission::{
    ComputeAdmission, ComputeProfile, GatewayAuthMode, GatewaySettings, HarnessAuthRequest, Listen, Rejection,
    SettingRejection,
};
pub use observation::*;

use async_trait::async_trait;

use super::{DriverIdentity, EffectResult, OperationContext};
use crate::resource::Namespace;

/// When a Compute switches the route to a candidate (spec/contracts 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActivationOrder {
    /// The pointer moves first; activation follows and is repeated until it is done.
    AfterCommit,
    /// Activation comes first; for a Compute with a single stable runtime per Agent.
    BeforeCommit,
}

/// Runs workloads.
#[async_trait]
pub trait ComputeDriver: Send + Sync {
    /// Who this instance is.
    fn identity(&self) -> &DriverIdentity;

    /// What every workload finds on this Compute; pure.
    fn profile(&self) -> ComputeProfile;

    /// The checks that admission asks for; pure.
    fn admission(&self) -> &dyn ComputeAdmission;

    /// Looks whether the Compute can work at all, before anything is accepted. Returns warnings; an error stops the start.
    async fn preflight(&self, cx: &OperationContext) -> EffectResult<Vec<PreflightWarning>>;

    /// Provides the isolation that the Namespace's Agents will run in.
    async fn ensure_namespace(&self, cx: &OperationContext, namespace: &Namespace) -> EffectResult<NamespaceState>;

    /// Removes what [`ComputeDriver::ensure_namespace`] provided. Only ever called for a Namespace without Agents.
    async fn delete_namespace(&self, cx: &OperationContext, namespace: &Namespace) -> EffectResult<NamespaceState>;

    /// Brings the version to where it can take over, and says how far it is. Without exclusive replacement it leaves a serving
    /// predecessor alone. Repeated on every pass; it must converge.
    async fn prepare_revision(
        &self,
        cx: &OperationContext,
        revision: &RevisionContext,
    ) -> EffectResult<RevisionObservation>;

    /// Makes the prepared version the one that serves. Checks the candidate again before it touches the route.
    async fn activate_revision(
        &self,
        cx: &OperationContext,
        revision: &RevisionContext,
    ) -> EffectResult<RevisionObservation>;

    /// Takes an unpublished version off the route again; its workload stays.
    async fn deactivate_revision(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<()>;

    /// Removes route and execution; keeps workspace, credentials and gateway state. Also valid for a version that failed or was never
    /// published. Returns [`Stop::Draining`] instead of blocking.
    async fn stop_revision(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Stop>;

    /// Stops the version if it still runs and removes its artifacts; never what a newer version owns.
    async fn retire_revision(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Stop>;

    /// Removes everything that is left of an Agent whose versions are all retired: workspace, state, credentials.
    async fn delete_agent(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<Stop>;

    /// See [`ActivationOrder`].
    fn activation_order(&self) -> ActivationOrder {
        ActivationOrder::AfterCommit
    }

    /// Whether every earlier version must be stopped before this one is prepared (seed: exclusive replacement); pure.
    fn requires_stopped_predecessors(&self, _revision: &RevisionRef) -> bool {
        false
    }

    /// Generated transport credentials.
    fn runtime_credentials(&self) -> Option<&dyn RuntimeCredentials> {
        None
    }

    /// A private way to an Agent's gateway.
    fn gateway_access(&self) -> Option<&dyn GatewayAccess> {
        None
    }

    /// Initial workspace files.
    fn workspace_setup(&self) -> Option<&dyn WorkspaceSetupSupport> {
        None
    }

    /// Files of the selected version's workspace, while it runs.
    fn live_workspace(&self) -> Option<&dyn LiveWorkspace> {
        None
    }

    /// Fresh checks of a running version.
    fn diagnostics(&self) -> Option<&dyn Diagnostics> {
        None
    }

    /// A version's recent log lines.
    fn logs(&self) -> Option<&dyn RuntimeLogs> {
        None
    }

    /// The images that a version runs.
    fn images(&self) -> Option<&dyn RuntimeImages> {
        None
    }

    /// A driver binding of the Agent that is rebuilt before every operation.
    fn agent_binding(&self) -> Option<&dyn AgentBinding> {
        None
    }

    /// Periodic repetition of prepare and activate for the selected version.
    fn maintenance(&self) -> Option<&dyn Maintenance> {
        None
    }

    /// Knowing without a look that nothing changed.
    fn revision_watch(&self) -> Option<&dyn RevisionWatch> {
        None
    }

    /// Adoption of a namespace that exists on the Compute.
    fn namespace_adoption(&self) -> Option<&dyn NamespaceAdoption> {
        None
    }

    /// Sandboxes and other drivers' hooks around workloads.
    fn hook_host(&self) -> Option<&dyn HookHost> {
        None
    }
}

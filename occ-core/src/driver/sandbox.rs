//! The Sandbox contract: transforms a copy of the document and hosts the dedicated Harness (spec/contracts 8).

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;

use super::{AgentRef, DriverIdentity, EffectResult, OperationContext, RevisionContext, RevisionRef};
use crate::{
    plan::Component,
    reason::RuntimeFailure,
    resource::{Document, HarnessIdentity, Namespace},
};

/// What a Sandbox confines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SandboxFacet {
    /// Network access.
    Networking,
    /// Files.
    Filesystem,
    /// Processes.
    Process,
}

/// Where a provisioned Harness is; the same for every repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxResource {
    /// The provider's namespace.
    pub namespace_name: String,
    /// The provider's object.
    pub resource_name: String,
    /// The version that it belongs to.
    pub revision: RevisionRef,
}

/// How a gateway reaches a sandboxed Harness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HarnessEndpoint {
    /// A `ws` or `wss` URL.
    pub url: String,
    /// The workspace inside the sandbox.
    pub workspace_root: Option<String>,
}

/// What a sandboxed Harness is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HarnessState {
    /// Not serving yet.
    Starting,
    /// It answered an authenticated handshake.
    Serving,
    /// It failed by itself.
    Failed(Box<RuntimeFailure>),
    /// It is gone, and why.
    Lost(SandboxLoss),
    /// It could not be seen.
    Unknown,
}

/// Why a sandbox is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxLoss {
    /// `SANDBOX_MISSING`
    Missing,
    /// `SANDBOX_DELETING`
    Deleting,
    /// `SANDBOX_STOPPED`
    Stopped,
    /// `SANDBOX_FAILED`
    Failed,
    /// `SANDBOX_HARNESS_EXITED`
    HarnessExited,
}

/// Wraps or hosts dedicated Harnesses. Dedicated only; never tied to one Compute.
#[async_trait]
pub trait SandboxDriver: Send + Sync {
    /// Who this instance is.
    fn identity(&self) -> &DriverIdentity;

    /// What it confines; never empty.
    fn facets(&self) -> &[SandboxFacet];

    /// The Harness's home inside the sandbox: an absolute, normalized path.
    fn harness_home(&self) -> &'static str {
        "/home/node"
    }

    /// Transforms a copy of the document at admission; pure. May not change which Harness it selects.
    fn configure_agent(&self, document: Document, harness: &HarnessIdentity) -> Result<Document, super::Terminal>;

    /// Prepares the Namespace after Compute isolated it.
    async fn ensure_namespace(&self, cx: &OperationContext, namespace: &Namespace) -> EffectResult<()>;

    /// Removes a version's sandbox, or with no version all that the Namespace has. Runs even when the workload is gone.
    async fn cleanup(
        &self,
        cx: &OperationContext,
        namespace: &Namespace,
        revision: Option<&RevisionRef>,
    ) -> EffectResult<()>;

    /// Provisions Harness components itself, when it can.
    fn harness_host(&self) -> Option<&dyn HarnessHost> {
        None
    }

    /// Reads the sandbox's own log, when it can.
    fn sandbox_logs(&self) -> Option<&dyn SandboxLogs> {
        None
    }

    /// Hooks that it wants around workloads.
    fn lifecycle_hooks(&self) -> Option<Arc<dyn LifecycleHooks>> {
        None
    }
}

/// Provisioning of the dedicated Harness by the Sandbox.
#[async_trait]
pub trait HarnessHost: Send + Sync {
    /// Where the version's Harness will be; pure.
    fn resource(&self, revision: &RevisionRef) -> SandboxResource;

    /// Provisions the component; repeatable, with the same resource each time.
    async fn provision(
        &self,
        cx: &OperationContext,
        revision: &RevisionContext,
        harness: &Component,
    ) -> EffectResult<SandboxResource>;

    /// How the gateway reaches it; fails closed until that is exact.
    async fn endpoint(&self, cx: &OperationContext, resource: &SandboxResource) -> EffectResult<HarnessEndpoint>;

    /// What it is doing.
    async fn state(&self, cx: &OperationContext, resource: &SandboxResource) -> EffectResult<HarnessState>;
}

/// The sandbox's own log.
#[async_trait]
pub trait SandboxLogs: Send + Sync {
    /// The last `lines` (1 to 1000), oldest first.
    async fn read(&self, cx: &OperationContext, resource: &SandboxResource, lines: u16) -> EffectResult<Vec<String>>;
}

/// Environment that a hook adds to a workload: opaque handles, never credentials.
pub type HookEnvironment = BTreeMap<String, String>;

/// Four points around a workload at which another driver acts (spec/contracts 7). Each must be repeatable.
#[async_trait]
pub trait LifecycleHooks: Send + Sync {
    /// After Compute provided the Namespace.
    async fn after_namespace_prepared(&self, _cx: &OperationContext, _namespace: &Namespace) -> EffectResult<()> {
        Ok(())
    }

    /// Before a workload starts; may add environment.
    async fn before_workload_start(
        &self,
        _cx: &OperationContext,
        _revision: &RevisionRef,
    ) -> EffectResult<HookEnvironment> {
        Ok(HookEnvironment::new())
    }

    /// Before a workload stops.
    async fn before_workload_stop(&self, _cx: &OperationContext, _agent: &AgentRef) -> EffectResult<()> {
        Ok(())
    }

    /// Before Compute removes the Namespace.
    async fn before_namespace_delete(&self, _cx: &OperationContext, _namespace: &Namespace) -> EffectResult<()> {
        Ok(())
    }
}

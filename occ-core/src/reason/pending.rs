//! Why a deployment is not finished yet (spec/engine 8.1).

use serde::{Deserialize, Serialize};

use super::{Failure, vocabulary};

vocabulary! {
    /// Why work waits: `progress.lastAttempt.code`.
    Pending else ReconciliationPending {
        RevisionIncomplete = "REVISION_INCOMPLETE", "The version's runtime is not ready yet.";
        RevisionUnschedulable = "REVISION_UNSCHEDULABLE", "The cluster has no room for the version's workload yet. Free or add capacity; it is tried again by itself.";
        RevisionImagePullFailed = "REVISION_IMAGE_PULL_FAILED", "A container image cannot be pulled yet. Check its name, its registry and the access to it; it is tried again by itself.";
        NamespacePodQuotaExceeded = "NAMESPACE_POD_QUOTA_EXCEEDED", "The Namespace's Pod quota is full. Stop other Agents or raise the quota; it is tried again by itself.";
        WorkspaceSetupRetrying = "WORKSPACE_SETUP_RETRYING", "The setup of the workspace failed and is being repeated.";
        WorkspaceNodePending = "WORKSPACE_NODE_PENDING", "Everything is ready except the workspace node's connection to the gateway.";
        WorkspaceNodeBindingPending = "WORKSPACE_NODE_BINDING_PENDING", "The gateway has not applied the workspace node that it was handed yet.";
        AgentGatewayUnavailable = "AGENT_GATEWAY_UNAVAILABLE", "The Agent's gateway cannot be reached through its route yet.";
        KubernetesApiUnavailable = "KUBERNETES_API_UNAVAILABLE", "The Kubernetes API does not answer; it is tried again by itself.";
        SandboxAdmissionLimitReached = "SANDBOX_ADMISSION_LIMIT_REACHED", "The sandbox gateway holds its limit of request admissions and refuses more; it is tried again by itself.";
        SandboxGatewayUnavailable = "SANDBOX_GATEWAY_UNAVAILABLE", "The sandbox gateway does not answer; it is tried again by itself.";
        DependencyUnavailable = "DEPENDENCY_UNAVAILABLE", "Something that the work depends on failed; the attempt is repeated.";
        ActiveRevisionChanged = "ACTIVE_REVISION_CHANGED", "The Agent's selected version or state changed meanwhile; the attempt is repeated.";
        LeaseExpired = "LEASE_EXPIRED", "The worker was lost in the middle of an attempt; the work is taken up again.";
        ActiveRevisionRecovery = "ACTIVE_REVISION_RECOVERY", "The version is selected; it is being finished after its worker was lost.";
        RevisionFinalizationIncomplete = "REVISION_FINALIZATION_INCOMPLETE", "The version is selected; its activation is not finished yet.";
        ComputeBindingIncomplete = "COMPUTE_BINDING_INCOMPLETE", "The Compute could not bind the Agent yet.";
        RefusedCandidateStopPending = "REFUSED_CANDIDATE_STOP_PENDING", "The version was refused and its workload is not stopped yet; the stop is repeated.";
        AgentStopYielded = "AGENT_STOP_YIELDED", "The Agent is being stopped; its gateway is still draining.";
        PredecessorStopYielded = "PREDECESSOR_STOP_YIELDED", "The previous version's gateway is still draining; this version starts after it.";
        ProvisioningEffectPending = "PROVISIONING_EFFECT_PENDING", "Credentials of the Agent may still be being generated; its deletion goes on once they are there to be deleted.";
        NamespaceIncomplete = "NAMESPACE_INCOMPLETE", "The Compute has not finished the Namespace yet.";
        ReconciliationPending = "RECONCILIATION_PENDING", "The work is in progress.";
        ControllerShutdown = "CONTROLLER_SHUTDOWN", "The control plane was shut down in the middle of an attempt; the work is taken up again.";
    }
}

/// Something outside that a driver depends on and that may come back by itself (spec/contracts 4.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependency {
    /// The Agent's own gateway, through its route.
    AgentGateway,
    /// The Kubernetes API: timeout, no connection, 429 or 5xx.
    KubernetesApi,
    /// The sandbox gateway refuses because it holds its limit of admissions.
    SandboxAdmission,
    /// The sandbox gateway did not answer.
    SandboxGateway,
}

impl Dependency {
    /// The code while it is waited for.
    pub const fn pending(self) -> Pending {
        match self {
            Self::AgentGateway => Pending::AgentGatewayUnavailable,
            Self::KubernetesApi => Pending::KubernetesApiUnavailable,
            Self::SandboxAdmission => Pending::SandboxAdmissionLimitReached,
            Self::SandboxGateway => Pending::SandboxGatewayUnavailable,
        }
    }

    /// The code when it still fails at the convergence deadline.
    pub const fn failure(self) -> Failure {
        match self {
            Self::AgentGateway => Failure::AgentGatewayUnavailable,
            Self::KubernetesApi => Failure::KubernetesApiUnavailable,
            Self::SandboxAdmission => Failure::SandboxAdmissionLimitReached,
            Self::SandboxGateway => Failure::SandboxGatewayUnavailable,
        }
    }
}

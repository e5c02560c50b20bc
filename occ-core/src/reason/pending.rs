//! Why a deployment is not finished yet (spec/engine 8.1).

use serde::{Deserialize, Serialize};

use super::{Failure, vocabulary};

vocabulary! {
    /// Why work waits: `progress.lastAttempt.code`.
    Pending {
        RevisionIncomplete = "REVISION_INCOMPLETE", "The runtime is not ready yet.";
        RevisionUnschedulable = "REVISION_UNSCHEDULABLE", "The cluster has no room for the workload yet.";
        RevisionImagePullFailed = "REVISION_IMAGE_PULL_FAILED", "A container image could not be pulled yet.";
        NamespacePodQuotaExceeded = "NAMESPACE_POD_QUOTA_EXCEEDED", "The Namespace's Pod quota is full.";
        WorkspaceSetupRetrying = "WORKSPACE_SETUP_RETRYING", "Workspace setup failed and is being restarted.";
        WorkspaceNodePending = "WORKSPACE_NODE_PENDING", "Only the workspace node's connection to the gateway is outstanding.";
        WorkspaceNodeBindingPending = "WORKSPACE_NODE_BINDING_PENDING", "The gateway has not applied its workspace node yet.";
        AgentGatewayUnavailable = "AGENT_GATEWAY_UNAVAILABLE", "The Agent's gateway could not be reached through its route yet.";
        KubernetesApiUnavailable = "KUBERNETES_API_UNAVAILABLE", "The Kubernetes API did not answer.";
        SandboxAdmissionLimitReached = "SANDBOX_ADMISSION_LIMIT_REACHED", "The sandbox gateway holds its limit of request admissions.";
        SandboxGatewayUnavailable = "SANDBOX_GATEWAY_UNAVAILABLE", "The sandbox gateway did not answer.";
        DependencyUnavailable = "DEPENDENCY_UNAVAILABLE", "A dependency failed; the attempt is repeated.";
        ActiveRevisionChanged = "ACTIVE_REVISION_CHANGED", "The selected version changed meanwhile; the attempt is repeated.";
        LeaseExpired = "LEASE_EXPIRED", "The previous worker's claim expired; the work is taken up again.";
        ActiveRevisionRecovery = "ACTIVE_REVISION_RECOVERY", "A published version is being finished after its worker was lost.";
        RevisionFinalizationIncomplete = "REVISION_FINALIZATION_INCOMPLETE", "The version is selected; its activation is not finished yet.";
        ComputeBindingIncomplete = "COMPUTE_BINDING_INCOMPLETE", "Compute could not bind the Agent yet.";
        RefusedCandidateStopPending = "REFUSED_CANDIDATE_STOP_PENDING", "The version was refused; its workload is being stopped.";
        AgentStopYielded = "AGENT_STOP_YIELDED", "The Agent was stopped and its gateway is still draining.";
        PredecessorStopYielded = "PREDECESSOR_STOP_YIELDED", "The previous version's gateway is still draining.";
        NamespaceIncomplete = "NAMESPACE_INCOMPLETE", "Compute has not finished the Namespace yet.";
        ReconciliationPending = "RECONCILIATION_PENDING", "The work is in progress.";
        ControllerShutdown = "CONTROLLER_SHUTDOWN", "The controller shut down; the work is taken up again.";
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

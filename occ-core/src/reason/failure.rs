//! Why work ended without what it was for (spec/engine 8.2).

use super::vocabulary;

vocabulary! {
    /// A terminal failure: `error.code` of a deployment, or the end of Agent and Namespace work.
    Failure {
        ConvergenceDeadlineExceeded = "CONVERGENCE_DEADLINE_EXCEEDED", "The version did not become ready before its deadline.";
        RuntimeAuthenticationFailed = "RUNTIME_AUTHENTICATION_FAILED", "The model provider rejected the credential. Correct the bound credential and deploy again.";
        RuntimeCpuStarved = "RUNTIME_CPU_STARVED", "The model check did not get enough CPU time. Give the runtime more CPU and deploy again.";
        RuntimeModelProbeTimeout = "RUNTIME_MODEL_PROBE_TIMEOUT", "The model did not answer the startup check in time. Check the provider's address and deploy again.";
        RuntimeModelProbeFailed = "RUNTIME_MODEL_PROBE_FAILED", "The startup check of the model failed. See the cause, correct it and deploy again.";
        RuntimeLoginFailed = "RUNTIME_LOGIN_FAILED", "The Harness could not log in with the bound credential. Correct it and deploy again.";
        RuntimeStartupFailed = "RUNTIME_STARTUP_FAILED", "The runtime could not start. Read its log, correct the cause and deploy again.";
        WorkspaceSetupRefused = "WORKSPACE_SETUP_REFUSED", "The initial workspace files could not be applied without replacing other content. Delete and recreate the Agent.";
        AgentGatewayUnauthorized = "AGENT_GATEWAY_UNAUTHORIZED", "The gateway refuses its own command line. Set gateway.auth.password to OPENCLAW_GATEWAY_PASSWORD in the Configuration and deploy again.";
        SandboxHarnessUnsupported = "SANDBOX_HARNESS_UNSUPPORTED", "The selected Sandbox does not support this Harness.";
        SandboxSecretEnvironmentUnsupported = "SANDBOX_SECRET_ENVIRONMENT_UNSUPPORTED", "The selected Sandbox does not support Secrets in the environment.";
        CredentialSourceEnvironmentConflict = "CREDENTIAL_SOURCE_ENVIRONMENT_CONFLICT", "Two credential sources use the same environment variable.";
        AuthorizationDenied = "AUTHORIZATION_DENIED", "The deploying actor or the Agent's principal no longer has a required permission.";
        ActorRevoked = "ACTOR_REVOKED", "The actor that requested this work no longer exists.";
        InvalidAgentPrincipal = "INVALID_AGENT_PRINCIPAL", "The Agent's service principal no longer exists.";
        InvalidTarget = "INVALID_TARGET", "The work names a target that it cannot have.";
        InvalidAgentOwner = "INVALID_AGENT_OWNER", "The Agent does not belong to the work's Namespace.";
        InvalidAgentState = "INVALID_AGENT_STATE", "The Agent is not in the state that this work needs.";
        InvalidRevisionOwner = "INVALID_REVISION_OWNER", "The version does not belong to the work's Agent and Namespace.";
        InvalidAdmittedRevision = "INVALID_ADMITTED_REVISION", "The saved version no longer matches what was admitted.";
        InvalidActiveRevision = "INVALID_ACTIVE_REVISION", "The Agent's selected version does not exist.";
        NamespaceNotReady = "NAMESPACE_NOT_READY", "The Namespace is not ready.";
        HarnessDescriptorMismatch = "HARNESS_DESCRIPTOR_MISMATCH", "The version's Harness is no longer an approved one of this Installation.";
        ComputeDriverMismatch = "COMPUTE_DRIVER_MISMATCH", "The version belongs to another Compute Driver than the selected one.";
        HarnessAuthRequired = "HARNESS_AUTH_REQUIRED", "The version has no Harness authentication.";
        InvalidHarnessAuth = "INVALID_HARNESS_AUTH", "The version's saved Harness authentication is malformed.";
        InvalidSecretBindings = "INVALID_SECRET_BINDINGS", "The version's saved Secret bindings are malformed.";
        BackendUnavailable = "BACKEND_UNAVAILABLE", "The associated Backend is no longer configured.";
        HarnessAuthSourceChanged = "HARNESS_AUTH_SOURCE_CHANGED", "The credential's source changed since the version was admitted.";
        HarnessAuthSourceUnavailable = "HARNESS_AUTH_SOURCE_UNAVAILABLE", "The credential's source no longer exists.";
        ServiceAccountBackendMismatch = "SERVICE_ACCOUNT_BACKEND_MISMATCH", "The account's Backend differs from the admitted one.";
        SecretDriverMismatch = "SECRET_DRIVER_MISMATCH", "A Secret belongs to another Secret Driver than the selected one.";
        SecretBindingUnavailable = "SECRET_BINDING_UNAVAILABLE", "A bound Secret no longer exists.";
        CredentialGatewayMismatch = "CREDENTIAL_GATEWAY_MISMATCH", "The version belongs to another Credential Gateway than the selected one.";
        CredentialSourceUnavailable = "CREDENTIAL_SOURCE_UNAVAILABLE", "A credential source is no longer available.";
        CredentialWithdrawn = "CREDENTIAL_WITHDRAWN", "The model's credential source was withdrawn from this version.";
        WorkspaceSetupUnsupported = "WORKSPACE_SETUP_UNSUPPORTED", "The selected Compute cannot apply initial workspace files.";
        InvalidDriverObservation = "INVALID_DRIVER_OBSERVATION", "A driver reported something that this version cannot have.";
        OwnershipConflict = "OWNERSHIP_CONFLICT", "An object of this name belongs to somebody else; nothing was changed.";
        ComputeConfigurationInvalid = "COMPUTE_CONFIGURATION_INVALID", "The Compute cannot run this version as it is configured.";
        CredentialDeletionUnsupported = "CREDENTIAL_DELETION_UNSUPPORTED", "The selected Compute creates runtime credentials that it cannot delete.";
        AgentGatewayUnavailable = "AGENT_GATEWAY_UNAVAILABLE", "The Agent's gateway could not be reached through its route before the deadline.";
        KubernetesApiUnavailable = "KUBERNETES_API_UNAVAILABLE", "The Kubernetes API did not answer before the deadline.";
        SandboxAdmissionLimitReached = "SANDBOX_ADMISSION_LIMIT_REACHED", "The sandbox gateway held its limit of request admissions until the deadline.";
        SandboxGatewayUnavailable = "SANDBOX_GATEWAY_UNAVAILABLE", "The sandbox gateway did not answer before the deadline.";
        DependencyUnavailable = "DEPENDENCY_UNAVAILABLE", "A dependency kept failing until the attempts were used up.";
        ActiveRevisionChanged = "ACTIVE_REVISION_CHANGED", "The selected version kept changing until the attempts were used up.";
        LeaseExpired = "LEASE_EXPIRED", "The worker was lost on the last attempt.";
        MaxAttemptsExhausted = "MAX_ATTEMPTS_EXHAUSTED", "The attempts are used up.";
        RevisionSuperseded = "REVISION_SUPERSEDED", "A newer version took this one's place before it was selected.";
        RevisionStopped = "REVISION_STOPPED", "The Agent was stopped before this version was selected.";
        ReconciliationFailed = "RECONCILIATION_FAILED", "The work failed.";
    }
}

//! Why work ended without what it was for (spec/engine 8.2).

use super::vocabulary;

vocabulary! {
    /// A terminal failure: `error.code` of a deployment, or the end of Agent and Namespace work.
    Failure else ReconciliationFailed {
        ConvergenceDeadlineExceeded = "CONVERGENCE_DEADLINE_EXCEEDED", "The version did not become ready before its deadline. Correct what kept it and deploy again.";
        RuntimeAuthenticationFailed = "RUNTIME_AUTHENTICATION_FAILED", "The model provider rejected the credential. Correct the bound credential and deploy again.";
        RuntimeCpuStarved = "RUNTIME_CPU_STARVED", "The check of the model did not get enough CPU time. Give the runtime more CPU and deploy again.";
        RuntimeModelProbeTimeout = "RUNTIME_MODEL_PROBE_TIMEOUT", "The model did not answer the check in time. Check the provider and its address, and deploy again.";
        RuntimeModelProbeFailed = "RUNTIME_MODEL_PROBE_FAILED", "The check of the model failed. See the cause, correct it and deploy again.";
        RuntimeLoginFailed = "RUNTIME_LOGIN_FAILED", "The Harness could not log in with the bound credential. Correct the credential and deploy again.";
        RuntimeStartupFailed = "RUNTIME_STARTUP_FAILED", "The runtime could not start. See its log, correct the cause and deploy again.";
        WorkspaceSetupRefused = "WORKSPACE_SETUP_REFUSED", "The initial workspace files could not be applied without replacing other content. Delete the Agent and create it again.";
        AgentGatewayUnauthorized = "AGENT_GATEWAY_UNAUTHORIZED", "The gateway refuses its own command line. Set gateway.auth.password to OPENCLAW_GATEWAY_PASSWORD in the Configuration and deploy again.";
        SandboxHarnessUnsupported = "SANDBOX_HARNESS_UNSUPPORTED", "The selected Sandbox does not support the version's Harness.";
        SandboxSecretEnvironmentUnsupported = "SANDBOX_SECRET_ENVIRONMENT_UNSUPPORTED", "The selected Sandbox does not support Secrets in the environment.";
        CredentialSourceEnvironmentConflict = "CREDENTIAL_SOURCE_ENVIRONMENT_CONFLICT", "Two credential sources use the same environment variable. Remove one of them from the Agent and deploy again.";
        AuthorizationDenied = "AUTHORIZATION_DENIED", "The actor that asked for this, or the Agent's principal, no longer has a required permission. Grant it and try again.";
        ActorRevoked = "ACTOR_REVOKED", "The actor that asked for this no longer exists. Let another one ask for it.";
        InvalidAgentPrincipal = "INVALID_AGENT_PRINCIPAL", "The Agent's service principal no longer exists. Delete the Agent and create it again.";
        InvalidTarget = "INVALID_TARGET", "The work has a target that this control plane does not know.";
        InvalidAgentOwner = "INVALID_AGENT_OWNER", "The Agent no longer exists, or does not belong to the work's Namespace.";
        InvalidAgentState = "INVALID_AGENT_STATE", "The Agent is not in the state that this work needs.";
        InvalidRevisionOwner = "INVALID_REVISION_OWNER", "The version, its Agent or its Namespace no longer exists, or they do not belong together.";
        InvalidAdmittedRevision = "INVALID_ADMITTED_REVISION", "The saved version no longer matches what was admitted. Deploy again.";
        InvalidActiveRevision = "INVALID_ACTIVE_REVISION", "The Agent's selected version no longer exists.";
        NamespaceNotReady = "NAMESPACE_NOT_READY", "The Namespace is not ready. Deploy again once it is.";
        HarnessDescriptorMismatch = "HARNESS_DESCRIPTOR_MISMATCH", "This Installation no longer approves the version's Harness. Deploy again to use the one that it approves.";
        ComputeDriverMismatch = "COMPUTE_DRIVER_MISMATCH", "The version belongs to another Compute than the selected one. Select that one again, or deploy a new version.";
        HarnessAuthRequired = "HARNESS_AUTH_REQUIRED", "The version has no Harness authentication. Set harnessAuth on the Agent and deploy again.";
        InvalidHarnessAuth = "INVALID_HARNESS_AUTH", "The version's saved Harness authentication is malformed. Deploy again.";
        InvalidSecretBindings = "INVALID_SECRET_BINDINGS", "The version's saved Secret bindings are malformed. Deploy again.";
        BackendUnavailable = "BACKEND_UNAVAILABLE", "The Agent's Backend is no longer configured. Configure it, or name another one, and deploy again.";
        HarnessAuthSourceChanged = "HARNESS_AUTH_SOURCE_CHANGED", "The credential's source changed after the version was admitted. Deploy again.";
        HarnessAuthSourceUnavailable = "HARNESS_AUTH_SOURCE_UNAVAILABLE", "The credential's source no longer exists. Bind the Agent to another one and deploy again.";
        ServiceAccountBackendMismatch = "SERVICE_ACCOUNT_BACKEND_MISMATCH", "The service account belongs to another Backend than the admitted one. Name its Backend on the Agent and deploy again.";
        SecretDriverMismatch = "SECRET_DRIVER_MISMATCH", "A Secret belongs to another Secret Driver than the selected one. Bind a Secret that the selected driver stores and deploy again.";
        SecretBindingUnavailable = "SECRET_BINDING_UNAVAILABLE", "A Secret that the Configuration binds no longer exists, or is not the admitted one any more. Bind one that exists and deploy again.";
        CredentialGatewayMismatch = "CREDENTIAL_GATEWAY_MISMATCH", "The version belongs to another Credential Gateway than the selected one. Bind a credential source of the selected one and deploy again.";
        CredentialSourceUnavailable = "CREDENTIAL_SOURCE_UNAVAILABLE", "A credential source is no longer available. Name another one on the Agent and deploy again.";
        CredentialWithdrawn = "CREDENTIAL_WITHDRAWN", "The model's credential source was withdrawn from this version. Bind another one and deploy again.";
        WorkspaceSetupUnsupported = "WORKSPACE_SETUP_UNSUPPORTED", "The selected Compute cannot apply initial workspace files. Delete the Agent and create it again without them.";
        InvalidDriverObservation = "INVALID_DRIVER_OBSERVATION", "A driver reported something that does not belong to what it was asked about. This is a fault of the driver.";
        OwnershipConflict = "OWNERSHIP_CONFLICT", "An object that is needed exists already and belongs to somebody else; nothing was changed. Move it away and try again.";
        ComputeConfigurationInvalid = "COMPUTE_CONFIGURATION_INVALID", "The Compute cannot run this version with its Configuration or its own settings. Correct them and deploy again.";
        CredentialDeletionUnsupported = "CREDENTIAL_DELETION_UNSUPPORTED", "The selected Compute cannot delete the Agent's runtime credentials, so the Agent cannot be deleted.";
        AgentGatewayUnavailable = "AGENT_GATEWAY_UNAVAILABLE", "The Agent's gateway could not be reached through its route before the deadline. Correct the route and deploy again.";
        KubernetesApiUnavailable = "KUBERNETES_API_UNAVAILABLE", "The Kubernetes API did not answer before the deadline. Restore it and deploy again.";
        SandboxAdmissionLimitReached = "SANDBOX_ADMISSION_LIMIT_REACHED", "The sandbox gateway held its limit of request admissions until the deadline. Deploy again once it accepts requests.";
        SandboxGatewayUnavailable = "SANDBOX_GATEWAY_UNAVAILABLE", "The sandbox gateway did not answer before the deadline. Restore it and deploy again.";
        DependencyUnavailable = "DEPENDENCY_UNAVAILABLE", "Something that the work depends on kept failing until the attempts were used up. Correct it and try again.";
        ActiveRevisionChanged = "ACTIVE_REVISION_CHANGED", "The Agent's selected version or state kept changing until the attempts were used up. Try again.";
        LeaseExpired = "LEASE_EXPIRED", "The worker was lost in the middle of the last attempt. Try again.";
        MaxAttemptsExhausted = "MAX_ATTEMPTS_EXHAUSTED", "The attempts were used up. Try again.";
        RevisionSuperseded = "REVISION_SUPERSEDED", "A newer version took this one's place before its deployment was finished.";
        RevisionStopped = "REVISION_STOPPED", "The Agent was stopped before this version's deployment was finished.";
        ReconciliationFailed = "RECONCILIATION_FAILED", "The work failed for a reason that has no code of its own.";
    }
}

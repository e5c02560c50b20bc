//! Codes of the HTTP API (spec/engine 2.2). The message is the default; a refusal may carry a more exact fixed one.

use super::vocabulary;

vocabulary! {
    /// `error.code` of an API response.
    ApiCode {
        InvalidRequest = "INVALID_REQUEST", "The request is not valid.";
        Unauthenticated = "UNAUTHENTICATED", "Sign in, or send a valid service key in the x-api-key header.";
        Forbidden = "FORBIDDEN", "You are not authorized to do this.";
        NotFound = "NOT_FOUND", "The requested resource was not found.";
        MethodNotAllowed = "METHOD_NOT_ALLOWED", "The method is not allowed on this path.";
        ResourceConflict = "RESOURCE_CONFLICT", "The request conflicts with the state of the resource.";
        AgentDeleting = "AGENT_DELETING", "The Agent is being deleted and accepts no changes.";
        NamespaceNotReady = "NAMESPACE_NOT_READY", "The Namespace is not ready. Try again once it is.";
        NamespaceNotEmpty = "NAMESPACE_NOT_EMPTY", "The Namespace still owns resources. Delete them first.";
        InstallationExists = "INSTALLATION_EXISTS", "The Installation exists already.";
        ServiceAccountDriverNotConfigured = "SERVICE_ACCOUNT_DRIVER_NOT_CONFIGURED", "The Installation has no driver that issues this credential.";
        CredentialGatewayNotConfigured = "CREDENTIAL_GATEWAY_NOT_CONFIGURED", "The Installation has no Credential Gateway.";
        CredentialWithdrawalInProgress = "CREDENTIAL_WITHDRAWAL_IN_PROGRESS", "The credential source is still being withdrawn from a version. Delete it once that is done.";
        PreconditionFailed = "PRECONDITION_FAILED", "The resource is not in a state that If-Match names. Read it again.";
        PayloadTooLarge = "PAYLOAD_TOO_LARGE", "The request body is too large.";
        UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", "The request body must be application/json.";
        SignInRateLimited = "SIGN_IN_RATE_LIMITED", "Too many attempts to sign in. Wait and try again.";
        InternalError = "INTERNAL_ERROR", "The request failed because of a fault in the control plane.";
        NotImplemented = "NOT_IMPLEMENTED", "The selected driver does not support this.";
        DependencyUnavailable = "DEPENDENCY_UNAVAILABLE", "A driver or service that the request needs is unavailable.";
        UnknownOutcome = "UNKNOWN_OUTCOME", "The outcome could not be confirmed. Read the current state before you try again.";
        RuntimeCredentialsClusterRbac = "RUNTIME_CREDENTIALS_CLUSTER_RBAC", "The cluster denied access to the Agent's runtime credentials. An operator must grant the tenant RoleBindings.";
        RuntimeLogsUnavailable = "RUNTIME_LOGS_UNAVAILABLE", "The version's logs cannot be read.";
        RuntimeLogsTimeout = "RUNTIME_LOGS_TIMEOUT", "The version's logs did not arrive in time.";
    }
}

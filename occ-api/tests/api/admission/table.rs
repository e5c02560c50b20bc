//! Every check in its order, and how its refusal reads (seed: Agents; spec/engine 3, 3.1).

/// A check, and how its refusal reads: status, code, and a part of the message.
pub type Line = (&'static str, u16, &'static str, &'static str);

pub(super) const GENERIC: &str = "You are not authorized to do this.";
pub(super) const MISSING: &str = "The requested resource was not found.";

/// `configuration_exists` is not among them: the database keeps a Configuration that an Agent names, and the API refuses to
/// delete it. The pure tests of the engine have it.
pub const DEPLOY: &[Line] = &[
    ("deploy_permission", 403, "FORBIDDEN", GENERIC),
    ("namespace_exists", 404, "NOT_FOUND", MISSING),
    ("agent_exists", 404, "NOT_FOUND", MISSING),
    ("namespace_ready", 409, "NAMESPACE_NOT_READY", "not ready"),
    ("agent_active", 409, "AGENT_DELETING", "being deleted"),
    ("backend_configured", 404, "NOT_FOUND", MISSING),
    ("sandbox_topology", 409, "RESOURCE_CONFLICT", "dedicated Harnesses only"),
    ("configuration_permission", 403, "FORBIDDEN", GENERIC),
    (
        "configuration_document",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "The Configuration Driver",
    ),
    ("harness_selected", 400, "INVALID_REQUEST", "selects no Harness"),
    (
        "harness_available",
        400,
        "INVALID_REQUEST",
        "runs embedded, and the Agent's execution mode is dedicated",
    ),
    ("harness_auth_present", 409, "RESOURCE_CONFLICT", "has no harnessAuth"),
    ("harness_auth_permission", 403, "FORBIDDEN", GENERIC),
    ("secret_bindings_permission", 403, "FORBIDDEN", GENERIC),
    (
        "harness_auth_supported",
        409,
        "CREDENTIAL_GATEWAY_NOT_CONFIGURED",
        "no Credential Gateway",
    ),
    ("compute_topology", 409, "RESOURCE_CONFLICT", "delivers no credential"),
    ("sandbox_document", 409, "RESOURCE_CONFLICT", "changes which Harness"),
    ("plugins_supported", 501, "NOT_IMPLEMENTED", "no Plugin Driver"),
    ("agent_principal", 403, "FORBIDDEN", "The Agent service principal spn_"),
    (
        "harness_auth_secret",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "Bind a Secret that is stored through the selected one",
    ),
    (
        "secret_bindings_secrets",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "The Configuration's secretBindings",
    ),
    ("secrets_resolved", 503, "DEPENDENCY_UNAVAILABLE", "no longer the one"),
    ("document_valid", 400, "INVALID_REQUEST", "is broken"),
    (
        "gateway_settings",
        409,
        "RESOURCE_CONFLICT",
        "gateway.tls.enabled must be omitted or false.",
    ),
    (
        "transport_credentials_kept",
        409,
        "RESOURCE_CONFLICT",
        "An operator must restore them",
    ),
    ("transport_credentials_permission", 403, "FORBIDDEN", GENERIC),
];

pub const CREATE: &[Line] = &[
    ("create_permission", 403, "FORBIDDEN", GENERIC),
    ("namespace_exists", 404, "NOT_FOUND", MISSING),
    ("namespace_accepts", 409, "RESOURCE_CONFLICT", "The Namespace failed"),
    ("backend_configured", 404, "NOT_FOUND", MISSING),
    ("configuration_permission", 403, "FORBIDDEN", GENERIC),
    ("configuration_exists", 404, "NOT_FOUND", MISSING),
    (
        "harness_auth_namespace",
        400,
        "INVALID_REQUEST",
        "must belong to the Agent's Namespace",
    ),
    ("harness_auth_permission", 403, "FORBIDDEN", GENERIC),
    (
        "harness_auth_source",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "Bind a Secret that is stored through the selected one",
    ),
    ("credential_sources_permission", 403, "FORBIDDEN", GENERIC),
    (
        "credential_sources_gateway",
        409,
        "CREDENTIAL_GATEWAY_NOT_CONFIGURED",
        "no Credential Gateway",
    ),
    ("plugins_supported", 501, "NOT_IMPLEMENTED", "no Plugin Driver"),
    ("secret_bindings_permission", 403, "FORBIDDEN", GENERIC),
    (
        "secret_bindings_secrets",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "The Configuration's secretBindings",
    ),
    ("workspace_defaults", 409, "RESOURCE_CONFLICT", "workspaceDefaultsId"),
    (
        "name_free",
        409,
        "RESOURCE_CONFLICT",
        "The name is taken by another Agent",
    ),
];

pub const UPDATE: &[Line] = &[
    ("update_permission", 403, "FORBIDDEN", GENERIC),
    ("namespace_exists", 404, "NOT_FOUND", MISSING),
    ("agent_exists", 404, "NOT_FOUND", MISSING),
    ("agent_active", 409, "AGENT_DELETING", "being deleted"),
    ("backend_configured", 404, "NOT_FOUND", MISSING),
    ("configuration_permission", 403, "FORBIDDEN", GENERIC),
    ("configuration_exists", 404, "NOT_FOUND", MISSING),
    ("current_auth_permission", 403, "FORBIDDEN", GENERIC),
    (
        "harness_auth_namespace",
        400,
        "INVALID_REQUEST",
        "must belong to the Agent's Namespace",
    ),
    ("harness_auth_permission", 403, "FORBIDDEN", GENERIC),
    (
        "harness_auth_source",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "Bind a Secret that is stored through the selected one",
    ),
    ("credential_sources_permission", 403, "FORBIDDEN", GENERIC),
    (
        "credential_sources_gateway",
        409,
        "CREDENTIAL_GATEWAY_NOT_CONFIGURED",
        "no Credential Gateway",
    ),
    ("plugins_supported", 501, "NOT_IMPLEMENTED", "no Plugin Driver"),
    ("secret_bindings_permission", 403, "FORBIDDEN", GENERIC),
    (
        "secret_bindings_secrets",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "The Configuration's secretBindings",
    ),
];

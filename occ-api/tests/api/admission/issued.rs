//! The same order where a service account's issued token is the model credential. A check that refuses for several reasons has a line for
//! each.

use super::table::{GENERIC, Line, MISSING};

const DELETED: &str = "The service account is being deleted.";

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
        "the Agent's execution mode is dedicated",
    ),
    ("harness_auth_present", 409, "RESOURCE_CONFLICT", "has no harnessAuth"),
    ("harness_auth_permission", 403, "FORBIDDEN", GENERIC),
    ("secret_bindings_permission", 403, "FORBIDDEN", GENERIC),
    ("account_exists", 404, "NOT_FOUND", MISSING),
    ("account_kept", 409, "RESOURCE_CONFLICT", DELETED),
    ("account_issued", 409, "RESOURCE_CONFLICT", "has no issued access token"),
    (
        "account_backend",
        409,
        "RESOURCE_CONFLICT",
        "belongs to another Backend than the Agent's",
    ),
    (
        "account_driver",
        409,
        "RESOURCE_CONFLICT",
        "was issued by another Service Account Driver",
    ),
    ("compute_topology", 409, "RESOURCE_CONFLICT", "delivers no credential"),
    ("sandbox_document", 409, "RESOURCE_CONFLICT", "changes which Harness"),
    ("plugins_supported", 501, "NOT_IMPLEMENTED", "no Plugin Driver"),
    (
        "agent_principal",
        403,
        "FORBIDDEN",
        "is not authorized to operate secret sec_",
    ),
    (
        "account_token",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "access token is stored through another Secret Driver",
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
    ("harness_auth_namespace", 404, "NOT_FOUND", MISSING),
    ("harness_auth_permission", 403, "FORBIDDEN", GENERIC),
    ("account_exists", 404, "NOT_FOUND", MISSING),
    ("account_kept", 409, "RESOURCE_CONFLICT", DELETED),
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
    ("harness_auth_namespace", 404, "NOT_FOUND", MISSING),
    ("harness_auth_permission", 403, "FORBIDDEN", GENERIC),
    ("account_exists", 404, "NOT_FOUND", MISSING),
    ("account_kept", 409, "RESOURCE_CONFLICT", DELETED),
    ("plugins_supported", 501, "NOT_IMPLEMENTED", "no Plugin Driver"),
    ("secret_bindings_permission", 403, "FORBIDDEN", GENERIC),
    (
        "secret_bindings_secrets",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "The Configuration's secretBindings",
    ),
];

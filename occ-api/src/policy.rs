//! What body each route takes, and how large (spec/engine 1.2, 19.7). A route that is not named takes none.

use axum::http::Method;

const KIB: usize = 1024;

/// What body a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyPolicy {
    /// None: a body is refused.
    None,
    /// A JSON object of at most so many bytes.
    Json(usize),
}

/// The policy of a route.
pub(crate) fn of(method: &Method, template: &str) -> BodyPolicy {
    if !matches!(*method, Method::POST | Method::PATCH | Method::PUT) {
        return BodyPolicy::None;
    }
    match template {
        // Initial workspace files and documents, JSON escaping included.
        "/namespaces/{namespace}/agents"
        | "/namespaces/{namespace}/configurations"
        | "/namespaces/{namespace}/configurations/{configuration}" => BodyPolicy::Json(448 * KIB),
        // 64 KiB of value, each byte perhaps a six-byte escape.
        "/namespaces/{namespace}/secrets" | "/namespaces/{namespace}/secrets/{secret}" => BodyPolicy::Json(400 * KIB),
        "/namespaces"
        | "/namespaces/{namespace}/agents/{agent}"
        | "/namespaces/{namespace}/iam/roles"
        | "/namespaces/{namespace}/iam/access-bindings"
        | "/service-keys" => BodyPolicy::Json(64 * KIB),
        _ => BodyPolicy::None,
    }
}

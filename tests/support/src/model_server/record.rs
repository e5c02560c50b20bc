//! What the server remembers of a request.

use super::Authorization;

/// The route that a request asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// `POST /v1/responses`
    Responses,
    /// `GET /v1/models`
    Models,
}

/// One request, in the order of arrival. Holds no key and no prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    /// The route.
    pub endpoint: Endpoint,
    /// Whether the request carried the expected key.
    pub authorization: Authorization,
    /// The model that was asked for, where the request names one.
    pub model: Option<String>,
}

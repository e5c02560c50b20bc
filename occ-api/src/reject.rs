//! Which status each code has (spec/engine 2.2). The only such table.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use occ_core::{admission::Refusal, reason::ApiCode};

use crate::envelope::Reply;

/// A refusal on its way out of a handler.
#[derive(Debug)]
pub(crate) struct Rejected(pub Refusal);

impl From<Refusal> for Rejected {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for Rejected {
    fn into_response(self) -> Response {
        Reply::Refused(self.0).into_response()
    }
}

/// The status of a code.
pub(crate) const fn status(code: ApiCode) -> StatusCode {
    match code {
        ApiCode::InvalidRequest => StatusCode::BAD_REQUEST,
        ApiCode::Unauthenticated => StatusCode::UNAUTHORIZED,
        ApiCode::Forbidden => StatusCode::FORBIDDEN,
        ApiCode::NotFound => StatusCode::NOT_FOUND,
        ApiCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ApiCode::ResourceConflict
        | ApiCode::AgentDeleting
        | ApiCode::NamespaceNotReady
        | ApiCode::NamespaceNotEmpty
        | ApiCode::InstallationExists
        | ApiCode::ServiceAccountDriverNotConfigured
        | ApiCode::CredentialGatewayNotConfigured
        | ApiCode::CredentialWithdrawalInProgress => StatusCode::CONFLICT,
        ApiCode::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        ApiCode::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ApiCode::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ApiCode::SignInRateLimited => StatusCode::TOO_MANY_REQUESTS,
        ApiCode::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
        ApiCode::NotImplemented => StatusCode::NOT_IMPLEMENTED,
        ApiCode::DependencyUnavailable
        | ApiCode::UnknownOutcome
        | ApiCode::RuntimeCredentialsClusterRbac
        | ApiCode::RuntimeLogsUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        ApiCode::RuntimeLogsTimeout => StatusCode::GATEWAY_TIMEOUT,
    }
}

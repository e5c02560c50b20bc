//! Liveness and readiness; no key needed, nothing revealed.

use axum::{Router, extract::State, routing::get};
use occ_core::admission::Refusal;
use schemars::JsonSchema;
use serde::Serialize;

use super::Handled;
use crate::{Api, envelope::Reply};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/healthz", get(live))
        .route("/readyz", get(ready))
        .route("/openapi.json", get(openapi))
        .route("/docs", get(docs))
}

/// The document that describes this API.
async fn openapi() -> Handled {
    Ok(Reply::Document(crate::openapi().to_string()))
}

/// The page that shows it.
async fn docs() -> Handled {
    Ok(Reply::Docs)
}

/// Liveness.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Live {
    live: bool,
}

/// Readiness.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Ready {
    ready: bool,
}

async fn live() -> Handled {
    Ok(Reply::ok(Live { live: true })?)
}

/// Ready means that the store answers.
async fn ready(State(api): State<Api>) -> Handled {
    api.plane.store().now().await.map_err(Refusal::from)?;
    Ok(Reply::ok(Ready { ready: true })?)
}

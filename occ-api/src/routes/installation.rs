//! The Installation and its service keys.

use axum::{
    Router,
    routing::{delete, get, post},
};
use occ_core::{
    admission::Refusal,
    control::{CreateServiceKey, ServiceKeyView},
    id::ServiceKeyId,
    reason::ApiCode,
};
use schemars::JsonSchema;
use serde_json::json;

use super::Handled;
use crate::{Api, call::Call, envelope::Reply};

/// A new service key; its value is shown this once.
#[derive(JsonSchema)]
#[schemars(rename = "IssuedKey")]
#[allow(dead_code)] // Its schema is what is used; the value itself is never held in a type that could be printed.
pub(crate) struct IssuedKeyView {
    key: ServiceKeyView,
    /// The whole key, for the `x-api-key` header.
    value: String,
}

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/installation", get(read))
        .route("/backends", get(backends))
        .route("/service-keys", post(create_key))
        .route("/service-keys/{key}", delete(revoke_key))
}

async fn read(call: Call) -> Handled {
    call.no_query()?;
    Ok(Reply::ok(call.plane.installation(&call.caller).await?)?)
}

async fn backends(call: Call) -> Handled {
    call.no_query()?;
    Ok(Reply::ok(call.plane.backends(&call.caller).await?)?)
}

/// The whole key is in this response and never again.
async fn create_key(call: Call) -> Handled {
    call.no_query()?;
    let issued = call
        .plane
        .create_service_key(&call.caller, call.body::<CreateServiceKey>()?)
        .await?;
    // A key that could not be shown would be lost: it is shown this once.
    let value = issued
        .value
        .expose_str()
        .ok_or_else(|| Refusal::new(ApiCode::InternalError))?;
    let key = issued.key;
    Ok(Reply::created(json!({ "key": key, "value": value }))?)
}

async fn revoke_key(call: Call) -> Handled {
    call.no_query()?;
    call.plane
        .revoke_service_key(&call.caller, call.id::<ServiceKeyId>("key")?)
        .await?;
    Ok(Reply::Empty)
}

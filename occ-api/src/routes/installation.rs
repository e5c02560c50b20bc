//! The Installation and its service keys.

use axum::{
    Router,
    routing::{delete, get, post},
};
use occ_core::{control::CreateServiceKey, id::ServiceKeyId};
use serde_json::json;

use super::Handled;
use crate::{Api, call::Call, envelope::Reply};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/installation", get(read))
        .route("/service-keys", post(create_key))
        .route("/service-keys/{key}", delete(revoke_key))
}

async fn read(call: Call) -> Handled {
    call.no_query()?;
    Ok(Reply::ok(call.plane.installation(&call.caller).await?)?)
}

/// The whole key is in this response and never again.
async fn create_key(call: Call) -> Handled {
    call.no_query()?;
    let issued = call
        .plane
        .create_service_key(&call.caller, call.body::<CreateServiceKey>()?)
        .await?;
    Ok(Reply::created(
        json!({ "key": issued.key, "value": issued.value.expose_str() }),
    )?)
}

async fn revoke_key(call: Call) -> Handled {
    call.no_query()?;
    call.plane
        .revoke_service_key(&call.caller, call.id::<ServiceKeyId>("key")?)
        .await?;
    Ok(Reply::Empty)
}

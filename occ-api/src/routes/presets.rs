//! Presets.

use axum::{Router, routing::get};
use occ_core::control::{CreatePreset, UpdatePreset};

use super::Handled;
use crate::{Api, call::Call, envelope::Reply};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/namespaces/{namespace}/presets", get(list).post(create))
        .route(
            "/namespaces/{namespace}/presets/{preset}",
            get(read).patch(update).delete(delete),
        )
}

async fn list(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    let page = call.page()?;
    Ok(Reply::page(call.plane.presets(&call.caller, namespace, &page).await?)?)
}

async fn create(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    call.no_query()?;
    let input = call.body::<CreatePreset>()?;
    Ok(Reply::created(
        call.plane.create_preset(&call.caller, namespace, input).await?,
    )?)
}

async fn read(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("preset")?);
    call.no_query()?;
    Ok(Reply::ok(call.plane.preset(&call.caller, namespace, id).await?)?)
}

async fn update(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("preset")?);
    call.no_query()?;
    let input = call.body::<UpdatePreset>()?;
    Ok(Reply::ok(
        call.plane.update_preset(&call.caller, namespace, id, input).await?,
    )?)
}

async fn delete(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("preset")?);
    call.no_query()?;
    call.plane.delete_preset(&call.caller, namespace, id).await?;
    Ok(Reply::Empty)
}

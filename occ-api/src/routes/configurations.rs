//! Configurations.

use axum::{Router, routing::get};
use occ_core::control::{CreateConfiguration, UpdateConfiguration};

use super::Handled;
use crate::{Api, call::Call, envelope::Reply};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/namespaces/{namespace}/configurations", get(list).post(create))
        .route(
            "/namespaces/{namespace}/configurations/{configuration}",
            get(read).patch(update).delete(delete),
        )
}

async fn list(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    call.no_query()?;
    Ok(Reply::ok(call.plane.configurations(&call.caller, namespace).await?)?)
}

async fn create(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    call.no_query()?;
    let input = call.body::<CreateConfiguration>()?;
    Ok(Reply::created(
        call.plane.create_configuration(&call.caller, namespace, input).await?,
    )?)
}

async fn read(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("configuration")?);
    call.no_query()?;
    Ok(Reply::ok(call.plane.configuration(&call.caller, namespace, id).await?)?)
}

async fn update(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("configuration")?);
    call.no_query()?;
    let input = call.body::<UpdateConfiguration>()?;
    Ok(Reply::ok(
        call.plane
            .update_configuration(&call.caller, namespace, id, input)
            .await?,
    )?)
}

async fn delete(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("configuration")?);
    call.no_query()?;
    call.plane.delete_configuration(&call.caller, namespace, id).await?;
    Ok(Reply::Empty)
}

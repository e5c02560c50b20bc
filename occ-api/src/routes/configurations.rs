//! Configurations.

use axum::{Router, routing::get};
use occ_core::control::{CreateConfiguration, Tag, UpdateConfiguration};

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
    let page = call.page()?;
    let page = call.plane.configurations_page(&call.caller, namespace, &page).await?;
    Ok(Reply::page(page)?)
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
    let found = call.plane.configuration(&call.caller, namespace, id).await?;
    let tag = Tag::of_generation(found.generation);
    Ok(Reply::ok(found)?.tagged(&tag))
}

async fn update(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("configuration")?);
    call.no_query()?;
    let input = call.body::<UpdateConfiguration>()?;
    let changed = call
        .plane
        .update_configuration(&call.caller, namespace, id, input)
        .await?;
    let tag = Tag::of_generation(changed.generation);
    Ok(Reply::ok(changed)?.tagged(&tag))
}

async fn delete(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("configuration")?);
    call.no_query()?;
    call.plane.delete_configuration(&call.caller, namespace, id).await?;
    Ok(Reply::Empty)
}

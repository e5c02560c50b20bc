//! Namespaces.

use axum::{Router, routing::get};
use occ_core::control::CreateNamespace;

use super::Handled;
use crate::{Api, call::Call, envelope::Reply};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/namespaces", get(list).post(create))
        .route("/namespaces/{namespace}", get(read).delete(delete))
}

async fn list(call: Call) -> Handled {
    let page = call.page()?;
    Ok(Reply::page(call.plane.namespaces_page(&call.caller, &page).await?)?)
}

async fn create(call: Call) -> Handled {
    call.no_query()?;
    Ok(Reply::created(
        call.plane
            .create_namespace(&call.caller, call.body::<CreateNamespace>()?)
            .await?,
    )?)
}

async fn read(call: Call) -> Handled {
    let id = call.id("namespace")?;
    call.no_query()?;
    Ok(Reply::ok(call.plane.namespace(&call.caller, id).await?)?)
}

async fn delete(call: Call) -> Handled {
    let id = call.id("namespace")?;
    call.no_query()?;
    Ok(Reply::accepted(call.plane.delete_namespace(&call.caller, id).await?)?)
}

//! Credential sources, in an Installation without a Credential Gateway.

use axum::{Router, routing::get};
use occ_core::driver::Action;

use super::Handled;
use crate::{Api, call::Call, catalogue::AnyObject, envelope::Reply};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/namespaces/{namespace}/credential-sources", get(list).post(register))
        .route(
            "/namespaces/{namespace}/credential-sources/{source}",
            get(read).patch(update).delete(delete),
        )
}

async fn list(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    call.no_query()?;
    call.plane.credential_sources(&call.caller, namespace).await?;
    Ok(Reply::ok([(); 0])?)
}

async fn register(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    call.no_query()?;
    call.body::<AnyObject>()?;
    call.plane.register_credential_source(&call.caller, namespace).await?;
    Ok(Reply::Empty)
}

async fn read(call: Call) -> Handled {
    on(call, Action::Read).await
}

async fn update(call: Call) -> Handled {
    call.body::<AnyObject>()?;
    on(call, Action::Update).await
}

async fn delete(call: Call) -> Handled {
    on(call, Action::Delete).await
}

async fn on(call: Call, action: Action) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("source")?);
    call.no_query()?;
    call.plane
        .credential_source(&call.caller, namespace, id, action)
        .await?;
    Ok(Reply::Empty)
}

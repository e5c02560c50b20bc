//! Credential sources.

use axum::{
    Router,
    routing::{get, post},
};
use occ_core::control::{RegisterCredentialSource, UpdateCredentialSource};

use super::Handled;
use crate::{Api, call::Call, envelope::Reply};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/namespaces/{namespace}/credential-sources", get(list).post(register))
        .route(
            "/namespaces/{namespace}/credential-sources/{source}",
            get(read).patch(update).delete(delete),
        )
        .route(
            "/namespaces/{namespace}/agents/{agent}/credential-sources/{source}/withdraw",
            post(withdraw),
        )
        .route(
            "/namespaces/{namespace}/agents/{agent}/credential-sources/{source}/withdrawal",
            get(withdrawal),
        )
}

async fn list(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    let page = call.page()?;
    let page = call.plane.credential_sources(&call.caller, namespace, &page).await?;
    Ok(Reply::page(page)?)
}

async fn register(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    call.no_query()?;
    let input = call.body::<RegisterCredentialSource>()?;
    let source = call
        .plane
        .register_credential_source(&call.caller, namespace, input)
        .await?;
    Ok(Reply::created(source)?)
}

async fn read(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("source")?);
    call.no_query()?;
    Ok(Reply::ok(
        call.plane.credential_source(&call.caller, namespace, id).await?,
    )?)
}

async fn update(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("source")?);
    call.no_query()?;
    let input = call.body::<UpdateCredentialSource>()?;
    let source = call
        .plane
        .update_credential_source(&call.caller, namespace, id, input)
        .await?;
    Ok(Reply::ok(source)?)
}

async fn delete(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("source")?);
    call.no_query()?;
    call.plane.delete_credential_source(&call.caller, namespace, id).await?;
    Ok(Reply::Empty)
}

async fn withdraw(call: Call) -> Handled {
    let (namespace, agent, id) = (call.id("namespace")?, call.id("agent")?, call.id("source")?);
    call.no_query()?;
    let asked = call
        .plane
        .withdraw_credential_source(&call.caller, namespace, agent, id)
        .await?;
    Ok(Reply::accepted(asked)?)
}

async fn withdrawal(call: Call) -> Handled {
    let (namespace, agent, id) = (call.id("namespace")?, call.id("agent")?, call.id("source")?);
    call.no_query()?;
    let asked = call
        .plane
        .credential_source_withdrawal(&call.caller, namespace, agent, id)
        .await?;
    Ok(Reply::ok(asked)?)
}

//! Service accounts.

use axum::{
    Router,
    routing::{get, patch, post},
};
use occ_core::control::{CreateServiceAccount, SetAccountCredential};

use super::Handled;
use crate::{Api, call::Call, catalogue::NoFields, envelope::Reply};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/namespaces/{namespace}/service-accounts", get(list).post(create))
        .route(
            "/namespaces/{namespace}/service-accounts/{account}",
            get(read).delete(delete),
        )
        .route(
            "/namespaces/{namespace}/service-accounts/{account}/credential",
            patch(set_credential),
        )
        .route(
            "/namespaces/{namespace}/service-accounts/{account}/credentials",
            post(issue),
        )
}

async fn list(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    let page = call.page()?;
    let page = call.plane.service_accounts(&call.caller, namespace, &page).await?;
    Ok(Reply::page(page)?)
}

async fn create(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    call.no_query()?;
    let input = call.body::<CreateServiceAccount>()?;
    let account = call
        .plane
        .create_service_account(&call.caller, namespace, input)
        .await?;
    Ok(Reply::created(account)?)
}

async fn read(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("account")?);
    call.no_query()?;
    Ok(Reply::ok(
        call.plane.service_account(&call.caller, namespace, id).await?,
    )?)
}

async fn set_credential(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("account")?);
    call.no_query()?;
    let input = call.body::<SetAccountCredential>()?;
    let account = call
        .plane
        .set_account_credential(&call.caller, namespace, id, input)
        .await?;
    Ok(Reply::ok(account)?)
}

async fn issue(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("account")?);
    call.no_query()?;
    call.body::<NoFields>()?;
    let account = call.plane.issue_account_credential(&call.caller, namespace, id).await?;
    Ok(Reply::created(account)?)
}

async fn delete(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("account")?);
    call.no_query()?;
    call.plane.delete_service_account(&call.caller, namespace, id).await?;
    Ok(Reply::Empty)
}

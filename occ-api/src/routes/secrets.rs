//! Secrets. A value goes in and never comes out.

use axum::{Router, routing::get};
use occ_core::{
    admission::{DetailCode, Refusal},
    resource::Name,
    secret_value::{InvalidSecretValue, SecretValue},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Handled;
use crate::{Api, call::Call, envelope::Reply};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/namespaces/{namespace}/secrets", get(list).post(create))
        .route(
            "/namespaces/{namespace}/secrets/{secret}",
            get(read).patch(update).delete(delete),
        )
}

/// `POST`: a name and a value. No `Debug`: it holds the value.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "CreateSecret")]
#[serde(deny_unknown_fields)]
pub(crate) struct Create {
    /// Its name, unique in the Namespace.
    name: Name,
    /// Its value: 1 to 65536 bytes of text.
    #[schemars(length(min = 1, max = 65536))]
    value: String,
}

/// `PATCH`: a new value.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "UpdateSecret")]
#[serde(deny_unknown_fields)]
pub(crate) struct Update {
    /// Its new value.
    #[schemars(length(min = 1, max = 65536))]
    value: String,
}

fn value(text: String) -> Result<SecretValue, Refusal> {
    SecretValue::from_caller(text.into_bytes()).map_err(|error| {
        let (message, code) = match error {
            InvalidSecretValue::Empty => ("A secret value must not be empty.", DetailCode::InvalidValue),
            InvalidSecretValue::TooLong => ("A secret value must fit within 65536 bytes.", DetailCode::TooLong),
            InvalidSecretValue::NotText => ("A secret value must be text without NUL.", DetailCode::InvalidFormat),
        };
        Refusal::invalid(message).at("/value", code)
    })
}

async fn list(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    let page = call.page()?;
    Ok(Reply::page(
        call.plane.secrets_page(&call.caller, namespace, &page).await?,
    )?)
}

async fn create(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    call.no_query()?;
    let input = call.body::<Create>()?;
    let secret = call
        .plane
        .create_secret(&call.caller, namespace, input.name, value(input.value)?)
        .await?;
    Ok(Reply::created(secret)?)
}

async fn read(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("secret")?);
    call.no_query()?;
    Ok(Reply::ok(call.plane.secret(&call.caller, namespace, id).await?)?)
}

async fn update(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("secret")?);
    call.no_query()?;
    let input = call.body::<Update>()?;
    Ok(Reply::ok(
        call.plane
            .update_secret(&call.caller, namespace, id, value(input.value)?)
            .await?,
    )?)
}

async fn delete(call: Call) -> Handled {
    let (namespace, id) = (call.id("namespace")?, call.id("secret")?);
    call.no_query()?;
    call.plane.delete_secret(&call.caller, namespace, id).await?;
    Ok(Reply::Empty)
}

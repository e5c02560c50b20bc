//! Accounts of people, as administrators keep them.

use axum::{
    Router,
    routing::{delete, get, patch, post},
};
use occ_core::{
    admission::{DetailCode, Refusal},
    control::{AccountCode, CreateAccount, PersonView},
    reason::ApiCode,
    resource::{Email, Name, PrincipalId},
    secret_value::SecretValue,
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Handled;
use crate::{Api, call::Call, envelope::Reply};

/// A new account. No `Debug`: it may hold a password.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "CreateAccount", rename_all = "camelCase")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Create {
    /// What the person signs in with.
    email: Email,
    /// What the person is called.
    name: Name,
    /// A person who exists and has no account, such as the first administrator; a new one when not said.
    #[serde(default)]
    principal_id: Option<PrincipalId>,
    /// The first password; a one-time code is made when not said.
    #[serde(default)]
    #[schemars(length(min = 12, max = 256))]
    password: Option<String>,
}

/// A change of an account.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "UpdateAccount")]
#[serde(deny_unknown_fields)]
pub(crate) struct Update {
    /// Whether it may not be used.
    disabled: bool,
}

/// Who an identity provider says that a person is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkIdentity {
    /// The provider, exactly as it names itself.
    #[schemars(length(min = 1, max = 1024))]
    issuer: String,
    /// The person, exactly as the provider names them.
    #[schemars(length(min = 1, max = 255))]
    subject: String,
}

/// A one-time code, which is shown this once.
#[derive(JsonSchema)]
#[schemars(rename = "AccountCode", rename_all = "camelCase")]
#[allow(dead_code)] // Its schema is what is used; the code is never held in a type that could be printed.
pub(crate) struct CodeReply {
    value: String,
    expires_at: Timestamp,
}

/// A new account, with its one-time code when no password was given.
#[derive(JsonSchema)]
#[schemars(rename = "CreatedAccount")]
#[allow(dead_code)] // As above.
pub(crate) struct Created {
    account: PersonView,
    code: Option<CodeReply>,
}

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/accounts", get(list).post(create))
        .route("/accounts/{person}", patch(update))
        .route("/accounts/{person}/code", post(new_code))
        .route("/accounts/{person}/identities", post(link).delete(unlink))
        .route("/accounts/{person}/sessions", delete(end_sessions))
}

fn code(code: &AccountCode) -> Result<Value, Refusal> {
    // A code that could not be shown would be lost: it is shown this once.
    let value = code.value.expose_str();
    let value = value.ok_or_else(|| Refusal::new(ApiCode::InternalError))?;
    Ok(json!({ "value": value, "expiresAt": code.expires_at }))
}

/// A text that is no principal's id names nobody.
fn person(call: &Call) -> Result<PrincipalId, Refusal> {
    call.text("person").parse().map_err(|_| Refusal::not_found())
}

async fn list(call: Call) -> Handled {
    let page = call.page()?;
    Ok(Reply::page(call.plane.accounts_of_people(&call.caller, &page).await?)?)
}

async fn create(call: Call) -> Handled {
    call.no_query()?;
    let input = call.body::<Create>()?;
    let input = CreateAccount {
        email: input.email,
        name: input.name,
        principal_id: input.principal_id,
        password: input.password.map(SecretValue::from),
    };
    let created = call.plane.create_account(&call.caller, input).await?;
    let code = created.code.as_ref().map(code).transpose()?;
    Ok(Reply::created(json!({ "account": created.account, "code": code }))?)
}

async fn update(call: Call) -> Handled {
    call.no_query()?;
    let input = call.body::<Update>()?;
    let updated = call
        .plane
        .set_account_disabled(&call.caller, &person(&call)?, input.disabled)
        .await?;
    Ok(Reply::ok(updated)?)
}

async fn new_code(call: Call) -> Handled {
    call.no_query()?;
    let made = call.plane.create_account_code(&call.caller, &person(&call)?).await?;
    Ok(Reply::created(code(&made)?)?)
}

/// As providers spell them, within what a database keeps.
fn checked(text: String, name: &str, most: usize) -> Result<String, Refusal> {
    match text.chars().count() {
        count if count > most => Err(Refusal::invalid("The identity is not valid.").at(name, DetailCode::TooLong)),
        0 => Err(Refusal::invalid("The identity is not valid.").at(name, DetailCode::InvalidValue)),
        _ if text.contains(char::is_control) => {
            Err(Refusal::invalid("The identity is not valid.").at(name, DetailCode::InvalidValue))
        }
        _ => Ok(text),
    }
}

async fn link(call: Call) -> Handled {
    call.no_query()?;
    let input = call.body::<LinkIdentity>()?;
    let issuer = checked(input.issuer, "/issuer", 1024)?;
    let subject = checked(input.subject, "/subject", 255)?;
    call.plane
        .link_identity(&call.caller, &person(&call)?, issuer, subject)
        .await?;
    Ok(Reply::Empty)
}

async fn unlink(call: Call) -> Handled {
    call.no_query()?;
    call.plane.unlink_identities(&call.caller, &person(&call)?).await?;
    Ok(Reply::Empty)
}

async fn end_sessions(call: Call) -> Handled {
    call.no_query()?;
    call.plane.end_sessions(&call.caller, &person(&call)?).await?;
    Ok(Reply::Empty)
}

//! A person's own session: beginning it, looking at it, ending it (docs/guide/authentication.md).

use axum::{
    Router,
    http::HeaderMap,
    routing::{get, post},
};
use occ_core::{
    admission::Refusal,
    control::{CodeAttempt, PasswordAttempt, PasswordChange, SessionToken, SessionView, SignedIn},
    reason::ApiCode,
    resource::Email,
    secret_value::SecretValue,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::Handled;
use crate::{
    Api,
    call::{Call, Guest},
    client::Client,
    credential,
    envelope::Reply,
    reject::Rejected,
};

/// A session and what its writes present in the `x-csrf-token` header.
#[derive(JsonSchema)]
#[schemars(rename = "SessionWithToken", rename_all = "camelCase")]
#[allow(dead_code)] // Its schema is what is used; the token is never held in a type that could be printed.
pub(crate) struct SessionReply {
    session: SessionView,
    /// 64 hexadecimal digits, as long as the session lasts.
    csrf_token: String,
}

/// Signing in with a password. No `Debug`: it holds the password.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "SignInWithPassword")]
#[serde(deny_unknown_fields)]
pub(crate) struct WithPassword {
    /// Who it is.
    email: Email,
    /// The password.
    #[schemars(length(max = 1024))]
    password: String,
}

/// Signing in with a one-time code, which sets the password. No `Debug`: it holds both.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "SignInWithCode", rename_all = "camelCase")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WithCode {
    /// Who it is.
    email: Email,
    /// The one-time code.
    #[schemars(length(max = 1024))]
    code: String,
    /// The password from now on.
    #[schemars(length(min = 12, max = 256))]
    new_password: String,
}

/// Changing the own password. No `Debug`: it holds both.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ChangePassword", rename_all = "camelCase")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewPassword {
    /// The password until now.
    #[schemars(length(max = 1024))]
    current_password: String,
    /// The password from now on.
    #[schemars(length(min = 12, max = 256))]
    new_password: String,
}

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/api/auth/sign-in/email", post(with_password))
        .route("/api/auth/sign-in/code", post(with_code))
        .route("/api/auth/sign-out", post(sign_out))
        .route("/api/auth/password", post(change_password))
        .route("/api/auth/session", get(read))
}

type WithCookie = Result<(HeaderMap, Reply), Rejected>;

fn shown(session: &SessionView, token: &SessionToken) -> Result<Reply, Refusal> {
    let csrf = token.csrf();
    Reply::ok(json!({ "session": session, "csrfToken": csrf.expose_str() }))
}

fn begun(client: &Client, signed_in: &SignedIn) -> WithCookie {
    let cookie = credential::set(client, signed_in)?;
    Ok((cookie, shown(&signed_in.session, &signed_in.token)?))
}

async fn with_password(guest: Guest) -> WithCookie {
    guest.no_query()?;
    let input = guest.body::<WithPassword>()?;
    let attempt = PasswordAttempt {
        email: input.email,
        password: SecretValue::from(input.password),
    };
    let signed_in = guest.plane.sign_in(attempt, guest.origin()).await?;
    begun(&guest.client, &signed_in)
}

async fn with_code(guest: Guest) -> WithCookie {
    guest.no_query()?;
    let input = guest.body::<WithCode>()?;
    let attempt = CodeAttempt {
        email: input.email,
        code: SecretValue::from(input.code),
        new_password: SecretValue::from(input.new_password),
    };
    let signed_in = guest.plane.sign_in_with_code(attempt, guest.origin()).await?;
    begun(&guest.client, &signed_in)
}

async fn sign_out(call: Call) -> WithCookie {
    call.no_query()?;
    call.plane.sign_out(&call.caller).await?;
    Ok((credential::forget(&call.client)?, Reply::Empty))
}

async fn change_password(call: Call) -> WithCookie {
    call.no_query()?;
    let input = call.body::<NewPassword>()?;
    let change = PasswordChange {
        current: SecretValue::from(input.current_password),
        new: SecretValue::from(input.new_password),
    };
    let signed_in = call.plane.change_password(&call.caller, change, call.origin()).await?;
    begun(&call.client, &signed_in)
}

async fn read(call: Call) -> Handled {
    call.no_query()?;
    let session = call.plane.own_session(&call.caller).await?;
    let token = call.session.as_ref();
    let token = token.ok_or_else(|| Refusal::new(ApiCode::Unauthenticated))?;
    Ok(shown(&session, token)?)
}

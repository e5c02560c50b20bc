//! Signing in through an identity provider.

use std::sync::Arc;

use axum::{
    Router,
    http::{HeaderMap, HeaderValue, header},
    routing::get,
};
use occ_core::{admission::Refusal, reason::ApiCode};

use crate::{
    Api,
    call::Guest,
    credential,
    envelope::Reply,
    oidc::{Attempt, CALLBACK, Oidc, PATIENCE, Returned},
    reject::Rejected,
};

/// The cookie of an attempt, which only the callback is sent.
const COOKIE: &str = "occ_oidc";
const COOKIE_PATH: &str = "/api/auth/oidc";

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/api/auth/oidc/sign-in", get(begin))
        .route(CALLBACK, get(finish))
}

type Redirected = Result<(HeaderMap, Reply), Rejected>;

fn provider(guest: &Guest) -> Result<Arc<Oidc>, Refusal> {
    let provider = guest.access.oidc.clone();
    provider.ok_or(Refusal::fixed(
        ApiCode::NotImplemented,
        "The Installation has no identity provider.",
    ))
}

fn cookie(guest: &Guest, value: &str, max_age: u64) -> Result<HeaderValue, Refusal> {
    credential::cookie_value(&guest.client, COOKIE, value, COOKIE_PATH, max_age)
}

fn to(place: &str) -> Result<HeaderMap, Refusal> {
    let place = HeaderValue::try_from(place).map_err(|_| Refusal::new(ApiCode::InternalError))?;
    Ok(HeaderMap::from_iter([(header::LOCATION, place)]))
}

async fn begin(guest: Guest) -> Redirected {
    guest.no_query()?;
    let provider = provider(&guest)?;
    let (place, attempt) = provider.begin().await?;
    let mut headers = to(place.as_str())?;
    headers.append(
        header::SET_COOKIE,
        cookie(&guest, attempt.expose(), PATIENCE.as_secs())?,
    );
    Ok((headers, Reply::Redirect))
}

async fn finish(guest: Guest) -> Redirected {
    let provider = provider(&guest)?;
    let from = guest.origin();
    let counted = guest.plane.count_federated(from)?;
    let attempt = Attempt::presented(credential::cookie(guest.headers(), COOKIE)?.unwrap_or_default());
    let who = match provider.finish(attempt, returned(&guest)).await {
        Ok(who) => who,
        // That it is away says nothing of anybody.
        Err(refusal) if refusal.code() == ApiCode::DependencyUnavailable => return Err(refusal.into()),
        Err(refusal) => return Err(guest.plane.refused_federated(refusal, from).await?.into()),
    };
    let signed_in = guest
        .plane
        .sign_in_federated(who, provider.first_sign_in(), counted, from)
        .await?;
    let mut headers = to(provider.landing())?;
    headers.extend(credential::set(&guest.client, &signed_in)?);
    // The attempt is over.
    headers.append(header::SET_COOKIE, cookie(&guest, "", 0)?);
    Ok((headers, Reply::Redirect))
}

/// What the provider's redirect says. Providers add what they like: the rest is not looked at.
fn returned(guest: &Guest) -> Returned {
    let mut returned = Returned::default();
    for (name, value) in url::form_urlencoded::parse(guest.raw_query().as_bytes()) {
        match &*name {
            "code" => returned.code = Some(value.into_owned()),
            "state" => returned.state = Some(value.into_owned()),
            "iss" => returned.issuer = Some(value.into_owned()),
            "error" => returned.error = true,
            _ => {}
        }
    }
    returned
}

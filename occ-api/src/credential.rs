//! By what a request is recognised: a service key, the session in a browser's cookie, or an Agent's token (spec/engine 2.3, step 3).

use axum::http::{HeaderMap, HeaderValue, Method, header, request::Parts};
use occ_core::{
    admission::Refusal,
    control::{Caller, SessionToken, SignedIn},
    id::RequestId,
    reason::ApiCode,
};

use crate::{Api, client::Client};

/// The cookie that holds a session's token.
const COOKIE: &str = "occ_session";
/// What a session's writes present besides.
pub(crate) const CSRF: &str = "x-csrf-token";

/// A recognised caller, with the session's token when there is one.
pub(crate) struct Recognised {
    pub caller: Caller,
    pub session: Option<SessionToken>,
}

/// Recognises the caller. What is missing, malformed, ambiguous or wrong is 401; a session's write from elsewhere is 403.
pub(crate) async fn recognise(
    parts: &Parts,
    client: &Client,
    api: &Api,
    request: RequestId,
) -> Result<Recognised, Refusal> {
    let headers = &parts.headers;
    match (key(headers)?, cookie(headers, COOKIE)?, bearer(headers)?) {
        (Some(key), None, None) => Ok(Recognised {
            caller: api.plane.authenticate(key, request).await?,
            session: None,
        }),
        (None, None, Some(token)) => Ok(Recognised {
            caller: api.plane.authenticate_agent(token, request).await?,
            session: None,
        }),
        (None, Some(token), None) => {
            let token = SessionToken::presented(token);
            let caller = api.plane.authenticate_session(&token, request).await?;
            if !matches!(parts.method, Method::GET | Method::HEAD) {
                client.check_origin(&parts.headers, &api.access, true)?;
                check_csrf(&parts.headers, &token)?;
            }
            Ok(Recognised {
                caller,
                session: Some(token),
            })
        }
        (None, None, None) => Err(Refusal::new(ApiCode::Unauthenticated)),
        // Which of them acts would be a guess.
        _ => Err(Refusal::fixed(
            ApiCode::Unauthenticated,
            "Send one credential: a session, a service key or an Agent's token.",
        )),
    }
}

/// The one `x-api-key` header.
fn key(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut values = headers.get_all("x-api-key").iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| unauthenticated()),
        (Some(_), Some(_)) => Err(unauthenticated()),
    }
}

/// The one bearer token, which is an Agent's: no key and no session is accepted so. Another scheme is for somebody else.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut found = None;
    for value in headers.get_all(header::AUTHORIZATION) {
        let value = value.to_str().map_err(|_| unauthenticated())?;
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        if scheme.eq_ignore_ascii_case("bearer") && found.replace(token.trim()).is_some() {
            return Err(unauthenticated());
        }
    }
    Ok(found)
}

/// The one cookie of this name.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, wanted: &str) -> Result<Option<&'h str>, Refusal> {
    let mut found = None;
    for value in headers.get_all(header::COOKIE) {
        let pairs = value.to_str().unwrap_or_default().split(';');
        for (name, value) in pairs.filter_map(|pair| pair.trim().split_once('=')) {
            if name == wanted && found.replace(value).is_some() {
                return Err(unauthenticated());
            }
        }
    }
    Ok(found)
}

const fn unauthenticated() -> Refusal {
    Refusal::new(ApiCode::Unauthenticated)
}

fn check_csrf(headers: &HeaderMap, session: &SessionToken) -> Result<(), Refusal> {
    let mut values = headers.get_all(CSRF).iter();
    let presented = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    };
    if presented.is_some_and(|presented| session.is_csrf(presented)) {
        return Ok(());
    }
    Err(Refusal::fixed(
        ApiCode::Forbidden,
        "A session's write needs its CSRF token in the x-csrf-token header.",
    ))
}

/// What gives the browser a session to keep.
pub(crate) fn set(client: &Client, signed_in: &SignedIn) -> Result<HeaderMap, Refusal> {
    let token = signed_in.token.expose().expose_str().unwrap_or_default();
    with_cookie(client, token, signed_in.lifetime.as_secs())
}

/// What makes the browser forget its session.
pub(crate) fn forget(client: &Client) -> Result<HeaderMap, Refusal> {
    with_cookie(client, "", 0)
}

fn with_cookie(client: &Client, value: &str, max_age: u64) -> Result<HeaderMap, Refusal> {
    let cookie = cookie_value(client, COOKIE, value, "/", max_age)?;
    Ok(HeaderMap::from_iter([(header::SET_COOKIE, cookie)]))
}

/// A cookie that no script reads, and that other sites' requests do not carry.
pub(crate) fn cookie_value(
    client: &Client,
    name: &str,
    value: &str,
    path: &str,
    max_age: u64,
) -> Result<HeaderValue, Refusal> {
    let secure = if client.secure { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path={path}; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}");
    let mut cookie = HeaderValue::try_from(cookie).map_err(|_| Refusal::new(ApiCode::InternalError))?;
    cookie.set_sensitive(true);
    Ok(cookie)
}

//! The envelope of every response: `{data, meta}` or `{error, meta}`, and the same headers (spec/engine 2).

use std::time::{Duration, Instant};

use axum::{
    Router,
    body::Body,
    extract::{MatchedPath, Request},
    http::{HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use occ_core::{
    admission::{MESSAGE_MAX_CHARS, Refusal},
    control::{Page, Tag},
    id::RequestId,
    reason::ApiCode,
};
use serde::Serialize;
use serde_json::{Value, json};
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument as _;

use crate::{docs, operations, reject::status, span};

/// How long a request may take as a whole.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(2);
/// How many requests are worked on at once; further ones wait.
const CONCURRENCY: usize = 512;

/// What a handler answers.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A body with this status, perhaps the tag of its state, and perhaps where the next page begins.
    Data {
        status: StatusCode,
        data: Value,
        tag: Option<String>,
        next: Option<String>,
    },
    /// The OpenAPI document, outside the envelope.
    Document(String),
    /// The page that shows it.
    Docs,
    /// Server-sent events, which the response's own body carries.
    Events,
    /// 303 to the place that the response's own header names.
    Redirect,
    /// 204.
    Empty,
    /// A refusal.
    Refused(Refusal),
}

impl Reply {
    /// 200 with `data`.
    pub(crate) fn ok(data: impl Serialize) -> Result<Self, Refusal> {
        Self::with(StatusCode::OK, data)
    }

    /// 201 with `data`.
    pub(crate) fn created(data: impl Serialize) -> Result<Self, Refusal> {
        Self::with(StatusCode::CREATED, data)
    }

    /// 202 with `data`.
    pub(crate) fn accepted(data: impl Serialize) -> Result<Self, Refusal> {
        Self::with(StatusCode::ACCEPTED, data)
    }

    fn with(status: StatusCode, data: impl Serialize) -> Result<Self, Refusal> {
        let data = serde_json::to_value(data).map_err(|_| Refusal::new(ApiCode::InternalError))?;
        Ok(Self::Data {
            status,
            data,
            tag: None,
            next: None,
        })
    }

    /// 200 with a page of a list.
    pub(crate) fn page<T: Serialize>(page: Page<T>) -> Result<Self, Refusal> {
        Ok(match Self::ok(page.items)? {
            Self::Data { status, data, tag, .. } => Self::Data {
                status,
                data,
                tag,
                next: page.next.map(|next| next.to_string()),
            },
            other => other,
        })
    }

    /// The same, with the tag of the state that it shows.
    pub(crate) fn tagged(self, found: &Tag) -> Self {
        match self {
            Self::Data { status, data, next, .. } => Self::Data {
                status,
                data,
                next,
                tag: Some(found.to_string()),
            },
            other => other,
        }
    }
}

impl IntoResponse for Reply {
    /// The reply travels as an extension; [`wrap`] writes it.
    fn into_response(self) -> Response {
        let mut response = StatusCode::OK.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Puts every response of `router` into the envelope.
pub(crate) fn wrap(router: Router) -> Router {
    router
        .layer(CatchPanicLayer::custom(|_| {
            Reply::Refused(Refusal::new(ApiCode::InternalError)).into_response()
        }))
        .layer(tower::limit::GlobalConcurrencyLimitLayer::new(CONCURRENCY))
        .layer(middleware::from_fn(envelope))
}

async fn envelope(mut request: Request, next: Next) -> Response {
    let id = RequestId::random();
    let started = Instant::now();
    let method = request.method().clone();
    request.extensions_mut().insert(id);
    let trace = span::context(request.headers());
    if let Some(trace) = &trace {
        request.extensions_mut().insert(trace.clone());
    }
    // Inside a nested router the template is found only by the routes below; the response carries it back.
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map(|path| path.as_str().to_owned());
    let span = span::request(id, operations::name(&method), route.as_deref(), trace.as_ref());
    let work = next.run(request).instrument(span.clone());
    let response = if matches!(method, Method::GET | Method::HEAD) {
        tokio::time::timeout(REQUEST_TIMEOUT, work).await.map(Ok)
    } else {
        // What changes something runs to its end, also when the caller is gone or has waited long enough.
        tokio::time::timeout(REQUEST_TIMEOUT, tokio::spawn(work)).await
    };
    let response = match response {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => Reply::Refused(Refusal::new(ApiCode::InternalError)).into_response(),
        Err(_) => Reply::Refused(Refusal::unavailable(
            "The request took too long and goes on. Read the current state before you try again.",
        ))
        .into_response(),
    };
    let response = write(response, id);
    let elapsed = started.elapsed();
    let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    span::answered(&span, response.status());
    let status = response.status().as_u16();
    operations::answered(&method, route.clone(), status, elapsed);
    let route = route.as_deref().unwrap_or("-");
    if status >= 500 {
        tracing::warn!(request = %id, %method, route, status, elapsed_ms, "http.request");
    } else if method != Method::GET {
        tracing::info!(request = %id, %method, route, status, elapsed_ms, "http.request");
    } else {
        tracing::debug!(request = %id, %method, route, status, elapsed_ms, "http.request");
    }
    response
}

fn write(response: Response, id: RequestId) -> Response {
    let (mut parts, carried) = response.into_parts();
    let reply = parts
        .extensions
        .remove::<Reply>()
        .unwrap_or_else(|| Reply::Refused(Refusal::new(foreign(parts.status))));
    let mut meta = json!({ "requestId": id });
    let mut etag = None;
    let mut wait = None;
    let mut kind = "application/json; charset=utf-8";
    let mut policy = None;
    let (status, body) = match reply {
        Reply::Data {
            status,
            data,
            tag,
            next,
        } => {
            etag = tag;
            if let Some(next) = next {
                meta["nextCursor"] = next.into();
            }
            (
                status,
                Some(Body::from(json!({ "data": data, "meta": meta }).to_string())),
            )
        }
        Reply::Document(text) => (StatusCode::OK, Some(Body::from(text))),
        Reply::Docs => {
            kind = "text/html; charset=utf-8";
            policy = Some(docs::policy());
            (StatusCode::OK, Some(Body::from(docs::html())))
        }
        Reply::Events => {
            kind = "text/event-stream";
            (StatusCode::OK, Some(carried))
        }
        Reply::Redirect => (StatusCode::SEE_OTHER, None),
        Reply::Empty => (StatusCode::NO_CONTENT, None),
        Reply::Refused(refusal) => {
            // Whole seconds, never fewer than it takes.
            wait = refusal.wait().map(|wait| wait.as_millis().div_ceil(1000));
            let body = json!({ "error": error(&refusal), "meta": meta }).to_string();
            (status(refusal.code()), Some(Body::from(body)))
        }
    };
    let with_body = body.is_some();
    let mut written = Response::new(body.unwrap_or_else(Body::empty));
    *written.status_mut() = status;
    let headers = written.headers_mut();
    // 405 must say what is allowed, which the router knows; 202 may say where to look on; a sign-in gives a cookie.
    for name in [header::ALLOW, header::LOCATION, header::SET_COOKIE] {
        for value in parts.headers.get_all(&name) {
            headers.append(&name, value.clone());
        }
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(value) = HeaderValue::from_str(&id.to_string()) {
        headers.insert(HeaderName::from_static("x-request-id"), value);
    }
    if let Some(value) = wait.and_then(|wait| HeaderValue::from_str(&wait.to_string()).ok()) {
        headers.insert(header::RETRY_AFTER, value);
    }
    if let Some(value) = etag.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
        headers.insert(header::ETAG, value);
    }
    if let Some(policy) = policy.and_then(|policy| HeaderValue::from_str(policy).ok()) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
    if with_body {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    written
}

/// The code of a response that no handler wrote.
fn foreign(status: StatusCode) -> ApiCode {
    match status {
        StatusCode::NOT_FOUND => ApiCode::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => ApiCode::MethodNotAllowed,
        StatusCode::PAYLOAD_TOO_LARGE => ApiCode::PayloadTooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ApiCode::UnsupportedMediaType,
        status if status.is_client_error() => ApiCode::InvalidRequest,
        _ => ApiCode::InternalError,
    }
}

fn error(refusal: &Refusal) -> Value {
    let message: String = refusal
        .message()
        .chars()
        .take(MESSAGE_MAX_CHARS)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    let mut error = json!({ "code": refusal.code(), "message": message });
    if !refusal.details().is_empty() {
        error["details"] = json!(refusal.details());
    }
    error
}

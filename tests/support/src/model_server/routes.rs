//! The two routes of the provider that clients use.

use super::behaviour::{Behaviour, Reply};
use super::key::ExpectedKey;
use super::record::{Endpoint, RecordedRequest};
use super::turn::{Turn, last_user_text, model_of};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{Html, IntoResponse, Json, Response};
use axum::routing::{get, post};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What the handle and the routes share.
pub(super) struct Shared {
    pub(super) behaviour: Mutex<Behaviour>,
    pub(super) expected_key: Mutex<Option<ExpectedKey>>,
    pub(super) requests: Mutex<Vec<RecordedRequest>>,
}

/// No holder of these locks can panic half-way, so a poisoned value is whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone)]
struct Listening {
    shared: Arc<Shared>,
    /// Ends answers that would otherwise keep a connection, and with it the shutdown, waiting.
    closing: CancellationToken,
}

enum Answer {
    Turn { reply: Reply, pause: Duration },
    ModelNotFound,
}

/// A long conversation with tool schemas is past axum's default of 2 MB.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

pub(super) fn router(shared: Arc<Shared>, closing: CancellationToken) -> Router {
    Router::new()
        .route("/v1/responses", post(responses))
        .route("/v1/models", get(models))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(Listening { shared, closing })
}

async fn responses(State(listening): State<Listening>, headers: HeaderMap, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (number, accepted) = listening.record(Endpoint::Responses, &headers, model_of(&request));
    if !accepted {
        return invalid_key();
    }
    if !request.is_object() {
        return error(
            StatusCode::BAD_REQUEST,
            "invalid_request_error",
            "invalid_json",
            "The body is not a JSON object.",
        );
    }
    match listening.proceed().await {
        Ok(Answer::Turn { reply, pause }) => listening.answer(number, &request, &reply, pause).await,
        Ok(Answer::ModelNotFound) => error(
            StatusCode::BAD_REQUEST,
            "invalid_request_error",
            "model_not_found",
            "The requested model does not exist.",
        ),
        Err(fault) => fault,
    }
}

async fn models(State(listening): State<Listening>, headers: HeaderMap) -> Response {
    let (_, accepted) = listening.record(Endpoint::Models, &headers, None);
    if !accepted {
        return invalid_key();
    }
    match listening.proceed().await {
        Ok(_) => {
            let model =
                json!({ "id": "occ-test-model", "object": "model", "created": 0, "owned_by": "occ-test-support" });
            Json(json!({ "object": "list", "data": [model] })).into_response()
        }
        Err(fault) => fault,
    }
}

impl Listening {
    /// Remembers the request; returns its number, from one, and whether its key is accepted.
    fn record(&self, endpoint: Endpoint, headers: &HeaderMap, model: Option<String>) -> (usize, bool) {
        let authorization = ExpectedKey::check(lock(&self.shared.expected_key).as_ref(), headers);
        let mut requests = lock(&self.shared.requests);
        requests.push(RecordedRequest {
            endpoint,
            authorization,
            model,
        });
        (requests.len(), authorization.is_accepted())
    }

    /// What depends on the request, or the response of a fault that does not.
    async fn proceed(&self) -> Result<Answer, Response> {
        let behaviour = lock(&self.shared.behaviour).clone();
        match behaviour {
            Behaviour::Reply(reply) => Ok(Answer::Turn {
                reply,
                pause: Duration::ZERO,
            }),
            Behaviour::Slow { reply, pause } => Ok(Answer::Turn { reply, pause }),
            Behaviour::ModelNotFound => Ok(Answer::ModelNotFound),
            Behaviour::RateLimited { retry_after } => Err(rate_limited(retry_after)),
            Behaviour::ServerError => Err(server_error()),
            Behaviour::Garbage => Err(garbage()),
            Behaviour::WebPage => Err(Html("<!doctype html><title>Sign in</title>").into_response()),
            Behaviour::Hang => {
                self.closing.cancelled().await;
                Err(StatusCode::SERVICE_UNAVAILABLE.into_response())
            }
        }
    }

    async fn answer(&self, number: usize, request: &Value, reply: &Reply, pause: Duration) -> Response {
        let turn = Turn::new(number, request, reply.to_text(&last_user_text(request)));
        if request["stream"] != true {
            tokio::time::sleep(pause).await;
            return Json(turn.completed()).into_response();
        }
        let events = stream::iter(turn.events()).then(move |event| async move {
            tokio::time::sleep(pause).await;
            let name = event["type"].as_str().unwrap_or_default().to_owned();
            Ok::<_, Infallible>(Event::default().event(name).data(event.to_string()))
        });
        Sse::new(events.take_until(self.closing.clone().cancelled_owned())).into_response()
    }
}

fn invalid_key() -> Response {
    error(
        StatusCode::UNAUTHORIZED,
        "invalid_request_error",
        "invalid_api_key",
        "Incorrect API key provided.",
    )
}

fn rate_limited(retry_after: Option<Duration>) -> Response {
    let mut response = error(
        StatusCode::TOO_MANY_REQUESTS,
        "requests",
        "rate_limit_exceeded",
        "Rate limit reached for requests.",
    );
    if let Some(after) = retry_after {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs()));
    }
    response
}

fn server_error() -> Response {
    error(
        StatusCode::INTERNAL_SERVER_ERROR,
        "server_error",
        "server_error",
        "The server had an error while processing the request.",
    )
}

/// Framed as an event, so that the client gets as far as reading it.
fn garbage() -> Response {
    let body = "event: response.created\ndata: {\"type\": \u{fffd}<<\n\n";
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn error(status: StatusCode, kind: &str, code: &str, message: &str) -> Response {
    let body = json!({ "error": { "message": message, "type": kind, "param": null, "code": code } });
    (status, Json(body)).into_response()
}

//! A collector of traces on the loopback: OTLP over HTTP, as protobuf.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::Span,
};
use prost::Message as _;
use tokio::{net::TcpListener, task::JoinHandle};

/// How the collector answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// It takes what comes.
    Takes,
    /// 503, and it keeps nothing.
    Refuses,
    /// Nothing: the request waits for good.
    Never,
    /// 200 with bytes that mean nothing.
    Garbage,
}

/// A span as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// Its trace, in hexadecimal.
    pub trace: String,
    /// Its id, in hexadecimal.
    pub id: String,
    /// The id of its parent; empty for the first of a trace.
    pub parent: String,
    /// Its `tracestate`.
    pub state: String,
    /// `service.name` of the process that sent it.
    pub service: String,
    /// What it says, as text.
    pub attributes: BTreeMap<String, String>,
    /// Whether it is an error.
    pub failed: bool,
}

#[derive(Debug)]
struct Received {
    answers: Answers,
    requests: usize,
    spans: Vec<Seen>,
    bodies: Vec<u8>,
}

type Shared = Arc<Mutex<Received>>;

/// A running collector, which ends with its value.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    received: Shared,
    task: JoinHandle<io::Result<()>>,
}

impl Collector {
    /// Listens on a free port of 127.0.0.1.
    pub async fn start(answers: Answers) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let received = Arc::new(Mutex::new(Received {
            answers,
            requests: 0,
            spans: Vec::new(),
            bodies: Vec::new(),
        }));
        let router = Router::new()
            .route("/v1/traces", post(export))
            .with_state(Arc::clone(&received));
        let task = tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self {
            address,
            received,
            task,
        })
    }

    /// The value for `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many exports were asked for.
    pub fn requests(&self) -> usize {
        lock(&self.received).requests
    }

    /// The spans that were taken, in the order of their arrival.
    pub fn spans(&self) -> Vec<Seen> {
        lock(&self.received).spans.clone()
    }

    /// All bytes that arrived, for whoever looks for secrets in them.
    pub fn bytes(&self) -> Vec<u8> {
        lock(&self.received).bodies.clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(received: &Shared) -> MutexGuard<'_, Received> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn export(State(received): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let answers = {
        let mut received = lock(&received);
        received.requests += 1;
        received.bodies.extend_from_slice(&body);
        received.answers
    };
    match answers {
        Answers::Takes => {}
        Answers::Refuses => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Answers::Never => return std::future::pending().await,
        Answers::Garbage => return "\u{0}what is this?".into_response(),
    }
    let protobuf = "application/x-protobuf";
    if headers.get(header::CONTENT_TYPE).is_none_or(|kind| kind != protobuf) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let Ok(request) = ExportTraceServiceRequest::decode(body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    lock(&received).spans.extend(seen(request));
    let answer = ExportTraceServiceResponse::default().encode_to_vec();
    ([(header::CONTENT_TYPE, protobuf)], answer).into_response()
}

fn seen(request: ExportTraceServiceRequest) -> Vec<Seen> {
    let mut all = Vec::new();
    for resource in request.resource_spans {
        let about = resource.resource.map(|resource| texts(resource.attributes));
        let service = about.unwrap_or_default().remove("service.name").unwrap_or_default();
        let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        all.extend(spans.map(|span| one(span, service.clone())));
    }
    all
}

fn one(span: Span, service: String) -> Seen {
    Seen {
        name: span.name,
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        state: span.trace_state,
        service,
        attributes: texts(span.attributes),
        // STATUS_CODE_ERROR.
        failed: span.status.is_some_and(|status| status.code == 2),
    }
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        other => format!("{other:?}"),
    };
    attributes
        .into_iter()
        .map(|attribute| (attribute.key, text(attribute.value)))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

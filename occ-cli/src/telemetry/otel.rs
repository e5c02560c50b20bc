//! Traces over OTLP/HTTP, configured by the variables that OpenTelemetry names (docs/adr/0013).
//!
//! Spans that ended wait in a bounded queue for a thread of the exporter's own. Whatever the collector does, a request and a pass
//! only put a span into that queue, or drop it when it is full.

use std::{
    env, fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use occ_core::trace::{self, TraceContext, Tracer};
use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _},
};
use opentelemetry_otlp::{Protocol, SpanExporter as OtlpExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use reqwest::Url;
use tokio::sync::oneshot;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer as _, filter::filter_fn};

use super::BoxedLayer;

/// How long an end waits for what is left to be sent.
const FLUSH: Duration = Duration::from_secs(3);
/// How long one export takes at most, unless a variable says otherwise.
const EXPORT: Duration = Duration::from_secs(10);
/// What a program is called that is not named.
const SERVICE: &str = "occ";

/// What the environment asks for.
#[derive(Default)]
pub(super) struct Traced {
    pub(super) exporter: Option<Exporter>,
    pub(super) layer: Option<BoxedLayer>,
    /// Why there is no exporter although one was asked for. Holds no value.
    pub(super) problem: Option<&'static str>,
}

/// A running exporter.
pub(super) struct Exporter {
    provider: SdkTracerProvider,
}

impl Exporter {
    /// The exporter that `OTEL_*` asks for; nothing is started without an endpoint.
    pub(super) fn from_environment() -> Traced {
        let Some(endpoint) = endpoint(|name| env::var(name).ok()) else {
            return Traced::default();
        };
        // The client of an exporter has a runtime of its own, which may not be made inside of another.
        let built = thread::scope(|scope| scope.spawn(|| exporter(&endpoint?)).join());
        let Ok(Ok(exporter)) = built else {
            return Traced {
                problem: Some("no traces are exported: OTEL_EXPORTER_OTLP_* has a value that cannot be used"),
                ..Traced::default()
            };
        };
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(Watched::new(exporter))
            .with_resource(resource())
            .build();
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer(SERVICE))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
            // Our own spans, and no lines of the log.
            .with_filter(filter_fn(|metadata| {
                metadata.is_span() && metadata.target().starts_with("occ_")
            }));
        trace::install(Spans);
        Traced {
            exporter: Some(Self { provider }),
            layer: Some(layer.boxed()),
            problem: None,
        }
    }

    /// Sends what is left. A collector that does not take it in time does not get it.
    pub(super) async fn end(self) {
        let (done, sent) = oneshot::channel();
        // A thread of its own: a runtime that ends waits for its own threads.
        let flush = thread::Builder::new().spawn(move || {
            let _ = self.provider.shutdown_with_timeout(FLUSH);
            let _ = done.send(());
        });
        if flush.is_ok() {
            let _ = tokio::time::timeout(FLUSH, sent).await;
        }
    }
}

/// Where traces are to be exported to. `None` when nobody says so, or something switches them off.
fn endpoint(variable: impl Fn(&str) -> Option<String>) -> Option<Result<Url, Unusable>> {
    let given = |name| variable(name).filter(|value| !value.trim().is_empty());
    let disabled = given("OTEL_SDK_DISABLED").is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    let exported = given("OTEL_TRACES_EXPORTER").is_none_or(|value| value.trim() == "otlp");
    if disabled || !exported {
        return None;
    }
    let whole = given("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let base =
        || given("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| format!("{}/v1/traces", base.trim().trim_end_matches('/')));
    let url: Result<Url, _> = whole.or_else(base)?.trim().parse();
    let usable = url
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    Some(usable.ok_or(Unusable))
}

/// An error, whose text may quote a value and is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unusable;

fn exporter(endpoint: &Url) -> Result<OtlpExporter, Unusable> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let timeout = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"]
        .into_iter()
        .find_map(|name| env::var(name).ok()?.trim().parse().ok())
        .map_or(EXPORT, Duration::from_millis);
    let client = reqwest::blocking::Client::builder()
        .timeout(timeout)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|_| Unusable)?;
    OtlpExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(endpoint.as_str())
        .with_http_client(client)
        .build()
        .map_err(|_| Unusable)
}

fn resource() -> Resource {
    let builder = Resource::builder();
    let named = env::var("OTEL_SERVICE_NAME").is_ok_and(|name| !name.is_empty())
        || env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|list| list.contains("service.name="));
    let builder = if named {
        builder
    } else {
        builder.with_service_name(SERVICE)
    };
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    builder.with_attribute(version).build()
}

/// An exporter that says once when nothing arrives any more, and once when it does again.
struct Watched {
    exporter: OtlpExporter,
    away: Arc<AtomicBool>,
}

impl Watched {
    fn new(exporter: OtlpExporter) -> Self {
        let away = Arc::default();
        Self { exporter, away }
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl SpanExporter for Watched {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let sent = self.exporter.export(batch).await;
        let was_away = self.away.swap(sent.is_err(), Ordering::Relaxed);
        match (&sent, was_away) {
            (Err(_), false) => tracing::warn!(code = "TELEMETRY_UNAVAILABLE", spans, "telemetry.error"),
            (Ok(()), true) => tracing::info!(spans, "telemetry.recovered"),
            _ => {}
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// What the layer knows of the spans.
struct Spans;

impl Tracer for Spans {
    fn context(&self, span: &Span) -> Option<TraceContext> {
        let context = span.context();
        let span = context.span();
        let span = span.span_context();
        let flags = span.trace_flags().to_u8();
        let parent = format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id());
        // Outside of a trace both ids are zero, which is no context.
        TraceContext::parse(&parent, Some(&span.trace_state().header()))
    }

    fn adopt(&self, span: &Span, parent: &TraceContext) {
        if let Some(parent) = remote(parent) {
            let _ = span.set_parent(Context::new().with_remote_span_context(parent));
        }
    }
}

fn remote(context: &TraceContext) -> Option<SpanContext> {
    let mut parts = context.parent().split('-').skip(1);
    let trace = TraceId::from_hex(parts.next()?).ok()?;
    let span = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    let state = context.state().and_then(|state| state.parse::<TraceState>().ok());
    Some(SpanContext::new(
        trace,
        span,
        TraceFlags::new(flags),
        true,
        state.unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(variables: &[(&str, &str)]) -> Option<Result<String, Unusable>> {
        let found = endpoint(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        found.map(|found| found.map(|url| url.to_string()))
    }

    #[test]
    fn traces_are_exported_when_an_endpoint_is_named_and_nothing_switches_them_off() {
        const BASE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        const HERE: (&str, &str) = (BASE, "http://127.0.0.1:4318");
        let there = Some(Ok("http://127.0.0.1:4318/v1/traces".to_owned()));
        assert_eq!(to(&[HERE]), there);
        assert_eq!(to(&[(BASE, " http://127.0.0.1:4318/ ")]), there);
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://collector.example/own");
        assert_eq!(to(&[HERE, own]), Some(Ok("https://collector.example/own".to_owned())));
        assert_eq!(to(&[HERE, ("OTEL_TRACES_EXPORTER", "otlp")]), there);
        assert_eq!(to(&[HERE, ("OTEL_SDK_DISABLED", "false")]), there);
        for nowhere in [
            &[][..],
            &[(BASE, " ")],
            &[HERE, ("OTEL_TRACES_EXPORTER", "none")],
            &[HERE, ("OTEL_SDK_DISABLED", "True")],
            &[("OTEL_SERVICE_NAME", "occ")],
        ] {
            assert_eq!(to(nowhere), None, "{nowhere:?}");
        }
        for unusable in ["127.0.0.1:4318", "collector", "file:///tmp/x", "http://collector:port"] {
            assert_eq!(to(&[(BASE, unusable)]), Some(Err(Unusable)), "{unusable}");
        }
    }

    #[test]
    fn a_stored_context_is_a_remote_parent() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = TraceContext::parse(parent, Some("a=1,b=2")).expect("a context");
        let remote = remote(&context).expect("a parent");
        assert!(remote.is_valid() && remote.is_remote() && remote.is_sampled());
        assert_eq!(remote.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(remote.span_id().to_string(), "00f067aa0ba902b7");
        assert_eq!(remote.trace_state().header(), "a=1,b=2");
    }
}

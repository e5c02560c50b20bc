//! What an operator's probes and dashboards ask: on a listener of its own, without a key, and never shown to callers of the API.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use occ_core::{store::Store, worker::WorkerHealth};

const REQUESTS: &str = "occ_http_requests_total";
const REQUEST: &str = "occ_http_request_seconds";
const DEPTH: &str = "occ_queue_depth";
const OVERDUE: &str = "occ_queue_overdue_seconds";

/// From a tenth of a millisecond to the longest a pass may take.
const BUCKETS: [f64; 14] = [
    0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.015, 0.05, 0.15, 0.5, 1.5, 5.0, 15.0, 60.0, 300.0,
];

const UPKEEP: Duration = Duration::from_secs(5);

/// What was measured in this process, as Prometheus reads it.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
}

impl Metrics {
    /// Starts measuring; from here on everything of this process that measures is heard. `None` when another recorder was there
    /// first: then that one hears it.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn install() -> Option<Self> {
        let builder = PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS);
        let recorder = builder.ok()?.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).ok()?;
        // Samples are kept until they are folded into their histograms, also when nobody asks.
        let folds = handle.clone();
        tokio::spawn(async move {
            let mut turn = tokio::time::interval(UPKEEP);
            loop {
                turn.tick().await;
                folds.run_upkeep();
            }
        });
        describe_counter!(REQUESTS, "Answered requests of the API");
        describe_histogram!(REQUEST, Unit::Seconds, "How long requests of the API took");
        describe_gauge!(DEPTH, "Live work, by state");
        describe_gauge!(
            OVERDUE,
            Unit::Seconds,
            "For how long the longest waiting due work has been due"
        );
        Some(Self { handle })
    }
}

/// A method as it is measured: callers may make up others.
pub(crate) fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// A request was answered. Routes are templates, so that their number is bounded; a path that is none of them has no name.
pub(crate) fn answered(method: &Method, route: Option<String>, status: u16, took: Duration) {
    let method = name(method);
    let route = route.unwrap_or_else(|| "none".to_owned());
    histogram!(REQUEST, "method" => method, "route" => route.clone()).record(took);
    counter!(REQUESTS, "method" => method, "route" => route, "status" => status.to_string()).increment(1);
}

#[derive(Clone)]
struct Operations {
    store: Arc<dyn Store>,
    worker: Option<WorkerHealth>,
    metrics: Option<Metrics>,
}

/// `/livez`, `/readyz` and, with `metrics`, `/metrics` of this process. `worker` is the one that runs in it, if one does.
///
/// Live: this process gets on with its work, or it is to be started again. Ready: the store answers. Both are 200 or 503.
pub fn operations(store: Arc<dyn Store>, worker: Option<WorkerHealth>, metrics: Option<Metrics>) -> Router {
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(render))
        .with_state(Operations { store, worker, metrics })
}

async fn live(State(this): State<Operations>) -> Response {
    verdict(this.worker.is_none_or(|worker| worker.live()))
}

async fn ready(State(this): State<Operations>) -> Response {
    let worker = this.worker.is_none_or(|worker| worker.ready());
    verdict(worker && this.store.now().await.is_ok())
}

fn verdict(good: bool) -> Response {
    if good {
        (StatusCode::OK, "ok\n").into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "unavailable\n").into_response()
    }
}

/// The queue is the database's, so it is looked at when it is asked for; what cannot be read is left out rather than kept.
async fn render(State(this): State<Operations>) -> Response {
    let Some(metrics) = this.metrics else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let depth = this.store.queue_depth().await.ok();
    let count = |count: Option<u64>| count.map_or(f64::NAN, |count| u32::try_from(count).unwrap_or(u32::MAX).into());
    gauge!(DEPTH, "state" => "queued").set(count(depth.map(|depth| depth.queued)));
    gauge!(DEPTH, "state" => "claimed").set(count(depth.map(|depth| depth.claimed)));
    gauge!(OVERDUE).set(depth.map_or(f64::NAN, |depth| depth.overdue.as_secs_f64()));
    let mut response = metrics.handle.render().into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
    );
    response
}

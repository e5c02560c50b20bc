//! Traces as a collector gets them: from a request, through the work that it causes, to the calls of the Compute. The control
//! plane runs as processes of its own, with a Compute that runs nothing.

mod plane;

use std::process::ExitCode;

use occ_conformance::{Case, run};
use occ_test_support::otlp::{Answers, Collector, Seen};

// Linked into this program, which is the `occ` of its tests.
use occ_configuration_local as _;
use occ_example_new_compute_driver as _;
use occ_harness_openclaw as _;
use occ_iam_native as _;
use occ_secret_local as _;

use plane::{Plane, until};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn main() -> ExitCode {
    if plane::is_occ() {
        return occ_cli::run();
    }
    macro_rules! cases {
        ($($name:ident),* $(,)?) => { vec![$(Case::new(concat!("traces::", stringify!($name)), $name)),*] };
    }
    run(cases![
        one_deployment_is_one_trace_across_processes_and_restarts,
        garbage_headers_are_ignored,
        a_collector_that_is_down_slow_or_garbage_delays_nothing,
        a_setting_that_cannot_be_used_is_said_and_starts_no_exporter,
        without_an_endpoint_nothing_is_traced_and_the_callers_trace_is_passed_on,
    ])
}

/// The span of this name in a trace.
fn named<'a>(spans: &'a [Seen], trace: &str, name: &str) -> Option<&'a Seen> {
    spans.iter().find(|span| span.trace == trace && span.name == name)
}

async fn one_deployment_is_one_trace_across_processes_and_restarts() {
    let collector = Collector::start(Answers::Takes).await.expect("a collector");
    let plane = Plane::new().exporting_to(&collector.endpoint());
    let api = plane.up("api", &["--api-only"]).await;
    let worker = plane.up("worker", &["--worker-only"]).await;
    let agent = plane.agent(&api).await;
    // The worker dies; the work waits for the next one.
    worker.kill();
    let headers = [("traceparent", PARENT), ("tracestate", "vendor=opaque")];
    let revision = plane.deploy(&api, &agent, &headers).await;
    let worker = plane.up("worker", &["--worker-only"]).await;
    plane.succeeded(&api, &agent, &revision).await;
    worker.stop().await;
    api.stop().await;

    let spans = collector.spans();
    let found = |name: &str| named(&spans, TRACE, name).unwrap_or_else(|| panic!("no {name} in {spans:#?}"));
    let request = found("POST /namespaces/{namespace}/agents/{agent}/deploy");
    assert_eq!((request.parent.as_str(), request.service.as_str()), (CALLER, "api"));
    assert_eq!(request.attributes["http.response.status_code"], "202");
    let pass = found("worker.pass revision");
    assert_eq!((&pass.parent, pass.service.as_str()), (&request.id, "worker"));
    assert_eq!(
        (pass.attributes["outcome"].as_str(), pass.attributes["attempt"].as_str()),
        ("completed", "1")
    );
    assert_eq!(pass.attributes["code"], "REVISION_ACTIVATED");
    assert_eq!(
        (&pass.attributes["agent"], &pass.attributes["revision"]),
        (&agent.id, &revision)
    );
    for call in ["iam.authorize", "compute.prepare_revision", "compute.activate_revision"] {
        let call = found(call);
        assert_eq!(
            (&call.parent, call.service.as_str(), call.failed),
            (&pass.id, "worker", false),
            "{call:?}"
        );
    }
    assert_eq!(
        found("compute.prepare_revision").attributes["driver"],
        "compute-logging"
    );
    for span in spans.iter().filter(|span| span.trace == TRACE) {
        assert_eq!(span.state, "vendor=opaque", "{span:?}");
    }
    // Other requests are in traces of their own.
    let others = spans.iter().filter(|span| span.service == "api" && span.trace != TRACE);
    assert!(others.clone().all(|span| span.parent.is_empty()), "{spans:#?}");
    assert!(others.count() > 3);
    let bytes = collector.bytes();
    for secret in plane.secrets() {
        let held = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!held, "a span holds {secret}");
    }
}

async fn garbage_headers_are_ignored() {
    let collector = Collector::start(Answers::Takes).await.expect("a collector");
    let plane = Plane::new().exporting_to(&collector.endpoint());
    let up = plane.up("occ", &[]).await;
    let agent = plane.agent(&up).await;
    let long = "x".repeat(9000);
    for headers in [
        [("traceparent", "garbage"), ("tracestate", "=,=")],
        [("traceparent", long.as_str()), ("tracestate", long.as_str())],
        [("traceparent", PARENT), ("traceparent", PARENT)],
    ] {
        let revision = plane.deploy(&up, &agent, &headers).await;
        plane.succeeded(&up, &agent, &revision).await;
    }
    up.stop().await;
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.trace != TRACE && span.state.is_empty()));
    let passes: Vec<_> = spans
        .iter()
        .filter(|span| span.name == "worker.pass revision")
        .collect();
    assert!(passes.len() >= 3, "{spans:#?}");
    for pass in passes {
        let request = spans.iter().find(|span| span.id == pass.parent).expect("its request");
        assert_eq!(request.trace, pass.trace);
        assert!(request.parent.is_empty());
    }
}

async fn a_collector_that_is_down_slow_or_garbage_delays_nothing() {
    let refusing = Collector::start(Answers::Refuses).await.expect("a collector");
    let silent = Collector::start(Answers::Never).await.expect("a collector");
    let garbage = Collector::start(Answers::Garbage).await.expect("a collector");
    let gone = Collector::start(Answers::Takes).await.expect("a collector").endpoint();
    for (endpoint, collector) in [
        (gone.clone(), None),
        (refusing.endpoint(), Some(&refusing)),
        (silent.endpoint(), Some(&silent)),
        (garbage.endpoint(), Some(&garbage)),
    ] {
        let plane = Plane::new().exporting_to(&endpoint).with_short_queue();
        let up = plane.up("occ", &[]).await;
        let agent = plane.agent(&up).await;
        if let Some(collector) = collector {
            until("an export", async || (collector.requests() > 0).then_some(())).await;
        }
        // More than the exporter's queue holds, while the collector does what it does.
        plane.ask_often(&up, 100).await;
        let revision = plane.deploy(&up, &agent, &[("traceparent", PARENT)]).await;
        plane.succeeded(&up, &agent, &revision).await;
        up.stop().await;
        // The silent one was still waited for; an answer that means nothing is no refusal.
        if endpoint == gone || endpoint == refusing.endpoint() {
            assert!(plane.log().contains("TELEMETRY_UNAVAILABLE"), "{endpoint}");
        }
    }
}

async fn a_setting_that_cannot_be_used_is_said_and_starts_no_exporter() {
    let canary = "canary-of-a-setting";
    let plane = Plane::new().exporting_to(&format!("http://{canary}:port/"));
    let up = plane.up("occ", &[]).await;
    plane.ask_often(&up, 1).await;
    up.stop().await;
    let log = plane.log();
    assert!(log.contains("TELEMETRY_CONFIGURATION_INVALID"), "{log}");
    assert!(!log.contains(canary), "{log}");
}

/// An exporter of the worker's alone: the API has none, and passes on what the caller sent.
async fn without_an_endpoint_nothing_is_traced_and_the_callers_trace_is_passed_on() {
    let collector = Collector::start(Answers::Takes).await.expect("a collector");
    let plane = Plane::new();
    let api = plane.up("api", &["--api-only"]).await;
    let worker = plane.up("worker", &["--worker-only"]).await;
    let agent = plane.agent(&api).await;
    let revision = plane.deploy(&api, &agent, &[("traceparent", PARENT)]).await;
    plane.succeeded(&api, &agent, &revision).await;
    worker.stop().await;
    assert_eq!(collector.requests(), 0);

    let plane = plane.exporting_to(&collector.endpoint());
    let worker = plane.up("worker", &["--worker-only"]).await;
    let revision = plane.deploy(&api, &agent, &[("traceparent", PARENT)]).await;
    plane.succeeded(&api, &agent, &revision).await;
    worker.stop().await;
    api.stop().await;
    let spans = collector.spans();
    let pass = named(&spans, TRACE, "worker.pass revision").expect("the pass");
    assert_eq!(pass.parent, CALLER);
}

//! What a worker measures, through the `metrics` facade, and its spans: without a recorder or a subscriber they cost nothing.
//!
//! Labels are kinds, outcomes and codes, never the id of anything: their number is bounded by what this binary knows. Spans
//! name what a pass is about by its ids, and nothing else of it.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};

use tracing::{Span, field::Empty, info_span};

use crate::{
    driver::{DriverIdentity, EffectError, EffectResult},
    trace,
    work::{Claim, Transition},
};

const CLAIM_LATENCY: &str = "occ_claim_latency_seconds";
const PASS: &str = "occ_pass_seconds";
const SETTLED: &str = "occ_work_settled_total";
const LEASES_LOST: &str = "occ_leases_lost_total";
const UNPUBLISHED: &str = "occ_results_unpublished_total";
const RECOVERED: &str = "occ_work_recovered_total";

/// Says to the recorder what each measure is.
pub(super) fn describe() {
    describe_histogram!(
        CLAIM_LATENCY,
        Unit::Seconds,
        "From the acceptance of work to its first claim"
    );
    describe_histogram!(PASS, Unit::Seconds, "How long a claim was held, by what came of it");
    describe_counter!(SETTLED, "Published results of passes, by code");
    describe_counter!(
        LEASES_LOST,
        "Claims that ended without a result, because their lease may have lapsed"
    );
    describe_counter!(
        UNPUBLISHED,
        "Results of passes that the store did not take although their claim was held"
    );
    describe_counter!(RECOVERED, "Claims of lost workers that were taken back");
}

/// The span of a pass, in the trace of the request that asked for its work.
pub(super) fn pass(claim: &Claim) -> Span {
    let target = &claim.target;
    let span = info_span!(
        "worker.pass",
        otel.kind = "consumer",
        otel.name = %format_args!("worker.pass {}", target.kind()),
        work = %target.key(),
        kind = target.kind(),
        namespace = %target.namespace(),
        agent = target.agent().map(tracing::field::display),
        revision = target.revision().map(tracing::field::display),
        attempt = claim.attempt,
        age_ms = u64::try_from(claim.age().as_millis()).unwrap_or(u64::MAX),
        outcome = Empty,
        code = Empty,
    );
    if let Some(parent) = &claim.trace {
        trace::adopt(&span, parent);
    }
    span
}

/// The span of one call of a driver.
pub(super) fn call(name: &'static str, driver: &DriverIdentity) -> Span {
    info_span!(
        "driver.call",
        otel.kind = "client",
        otel.name = name,
        otel.status_code = Empty,
        driver = driver.id,
        error = Empty,
    )
}

/// What came of a call. A wait is no error.
pub(super) fn called<T>(span: &Span, result: &EffectResult<T>) {
    let Err(error) = result else {
        return;
    };
    span.record("error", tracing::field::display(error));
    if !matches!(error, EffectError::Pending(_) | EffectError::Transient(_)) {
        span.record("otel.status_code", "ERROR");
    }
}

/// What is published of a pass.
fn published(outcome: &'static str, code: &'static str) {
    Span::current().record("outcome", outcome).record("code", code);
}

pub(super) fn claimed(claim: &Claim) {
    if claim.attempt == 1 && claim.last_attempt.is_none() {
        histogram!(CLAIM_LATENCY, "kind" => claim.target.kind()).record(claim.age());
    }
}

pub(super) fn settled(claim: &Claim, transition: &Transition, took: Duration) {
    let kind = claim.target.kind();
    let outcome = match transition {
        Transition::Complete { .. } => "completed",
        Transition::Defer { .. } => "deferred",
        Transition::Retry { .. } => "retried",
        Transition::Fail { .. } => "failed",
    };
    published(outcome, transition.code());
    histogram!(PASS, "kind" => kind, "outcome" => outcome).record(took);
    counter!(SETTLED, "kind" => kind, "outcome" => outcome, "code" => transition.code()).increment(1);
}

pub(super) fn lease_lost(claim: &Claim) {
    published("lost", "CLAIM_LOST");
    counter!(LEASES_LOST, "kind" => claim.target.kind()).increment(1);
}

pub(super) fn unpublished(claim: &Claim) {
    published("unpublished", "RESULT_UNPUBLISHED");
    counter!(UNPUBLISHED, "kind" => claim.target.kind()).increment(1);
}

pub(super) fn recovered(count: usize) {
    counter!(RECOVERED).increment(count as u64);
}

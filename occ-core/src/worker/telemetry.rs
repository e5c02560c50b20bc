//! What a worker measures, through the `metrics` facade: without a recorder it costs nothing.
//!
//! Labels are kinds, outcomes and codes, never the id of anything: their number is bounded by what this binary knows.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};

use crate::work::{Claim, Transition};

const CLAIM_LATENCY: &str = "occ_claim_latency_seconds";
const PASS: &str = "occ_pass_seconds";
const SETTLED: &str = "occ_work_settled_total";
const LEASES_LOST: &str = "occ_leases_lost_total";
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
    describe_counter!(RECOVERED, "Claims of lost workers that were taken back");
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
    histogram!(PASS, "kind" => kind, "outcome" => outcome).record(took);
    counter!(SETTLED, "kind" => kind, "outcome" => outcome, "code" => transition.code()).increment(1);
}

pub(super) fn lease_lost(claim: &Claim) {
    counter!(LEASES_LOST, "kind" => claim.target.kind()).increment(1);
}

pub(super) fn recovered(count: usize) {
    counter!(RECOVERED).increment(count as u64);
}

//! How a pass's result becomes a transition of its work: attempts, delays, deadlines (spec/engine 4 and 5.3).

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Claim;
use crate::reason::{Failure, Pending, Preparation, RuntimeFailure, Success};

/// The worker's limits (spec/engine 4, worker settings).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// How long a claim lasts without renewal.
    pub lease: Duration,
    /// Attempts that failing work may spend.
    pub max_attempts: u32,
    /// How long after it was enqueued a deployment must have converged.
    pub convergence_timeout: Duration,
    /// Lanes that one worker drives at once.
    pub concurrency: usize,
    /// How often an idle worker looks for work that nobody woke it for; eight times less often while it is woken for all.
    pub poll_interval: Duration,
    /// How long one call of a driver may take. What it brought is not known then, and its lane is free for other work. Nothing that a
    /// driver waits for belongs in one call: it says that it waits, and is asked again.
    pub effect_timeout: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(5),
            max_attempts: 5,
            convergence_timeout: Duration::from_mins(15),
            concurrency: 16,
            poll_interval: Duration::from_millis(2500),
            effect_timeout: Duration::from_mins(5),
        }
    }
}

/// How much less often a worker looks that is woken for all work. At the default that is every 20 seconds.
const HEARS: u32 = 8;

/// A plugin warning of a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Warning {
    /// `PLUGIN_INSTALL_FAILED` or `PLUGIN_AUTH_REQUIRED`.
    pub code: String,
    /// An admitted plugin.
    pub plugin_id: String,
}

/// What a terminal failure may carry: the allowlist of `error.data`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FailureData {
    /// The deadline that passed, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What the runtime said of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_failure: Option<RuntimeFailure>,
    /// Safe facts about the preparation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparation: Option<Preparation>,
}

/// What becomes of claimed work. Each is published under the claim's token, or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// It is done.
    Complete {
        /// How.
        code: Success,
        /// Plugins that the version runs without.
        warnings: Vec<Warning>,
    },
    /// It waits and is tried again; the attempt is given back.
    Defer {
        /// Why.
        reason: Pending,
        /// How long, from the database's present.
        delay: Duration,
        /// The refusal that waits for its stop.
        refusal: Option<Failure>,
        /// How many stops of the refused candidate failed in a row.
        failed_stops: u32,
        /// Record the attempt even when the one before recorded the same.
        repeat_evidence: bool,
    },
    /// It failed and is tried again; the attempt is spent.
    Retry {
        /// Why.
        reason: Pending,
        /// How long, from the database's present.
        delay: Duration,
    },
    /// It is over.
    Fail {
        /// Why.
        failure: Failure,
        /// Allowlisted facts.
        data: FailureData,
    },
}

impl Transition {
    /// The wire code of the result or of the reason.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Complete { code, .. } => code.code(),
            Self::Defer { reason, .. } | Self::Retry { reason, .. } => reason.code(),
            Self::Fail { failure, .. } => failure.code(),
        }
    }
}

/// Full-jitter backoff: a random part of `min(300 s, 1 s * 2^(attempt - 1))`. `random` is in `[0, 1)`.
pub fn backoff(attempt: u32, random: f64) -> Duration {
    let cap = Duration::from_secs(1)
        .saturating_mul(1 << attempt.saturating_sub(1).min(9))
        .min(Duration::from_mins(5));
    cap.mul_f64(random.clamp(0.0, 1.0))
}

/// The recheck of an unready version: 500 ms, growing with the work's age to 5 s at 200 s (seed).
pub fn readiness_cadence(age: Duration) -> Duration {
    (age / 40).clamp(Duration::from_millis(500), Duration::from_secs(5))
}

/// The recheck of a refused candidate's stop: doubles with each failed stop up to 5 minutes, and waits at least four times
/// as long as the stop took (seed).
pub fn refused_stop_delay(age: Duration, failed_stops: u32, stop_took: Duration) -> Duration {
    let doubled = readiness_cadence(age).saturating_mul(1 << failed_stops.saturating_sub(1).min(16));
    doubled.min(Duration::from_mins(5)).max(stop_took.saturating_mul(4))
}

impl Policy {
    /// How long an idle worker waits until it looks. Whoever is woken for all work looks only for what got lost on the way.
    pub fn poll(&self, hears: bool) -> Duration {
        self.poll_interval.saturating_mul(if hears { HEARS } else { 1 })
    }

    /// Whether the claim's deployment is past its convergence deadline, this long after it was claimed.
    pub fn past_deadline(&self, claim: &Claim, since: Duration) -> bool {
        claim.age().saturating_add(since) >= self.convergence_timeout
    }

    /// A retry, or the end when the attempts are spent.
    pub fn retry(&self, claim: &Claim, reason: Pending, exhausted: Failure, random: f64) -> Transition {
        if claim.attempt >= self.max_attempts {
            Transition::Fail {
                failure: exhausted,
                data: FailureData::default(),
            }
        } else {
            Transition::Retry {
                reason,
                delay: backoff(claim.attempt, random),
            }
        }
    }

    /// A wait on the readiness cadence.
    pub fn wait(&self, claim: &Claim, reason: Pending) -> Transition {
        Transition::Defer {
            reason,
            delay: readiness_cadence(claim.age()),
            refusal: None,
            failed_stops: 0,
            repeat_evidence: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cadence_grows_from_half_a_second_to_five() {
        let at = |s| readiness_cadence(Duration::from_secs(s));
        assert_eq!(at(0), Duration::from_millis(500));
        assert_eq!(at(20), Duration::from_millis(500));
        assert_eq!(at(100), Duration::from_millis(2500));
        assert_eq!(at(200), Duration::from_secs(5));
        assert_eq!(at(100_000), Duration::from_secs(5));
    }

    #[test]
    fn backoff_is_full_jitter_under_a_doubling_cap() {
        assert_eq!(backoff(1, 0.0), Duration::ZERO);
        assert_eq!(backoff(1, 0.5), Duration::from_millis(500));
        assert_eq!(backoff(3, 0.5), Duration::from_secs(2));
        assert_eq!(backoff(40, 0.5), Duration::from_secs(150));
    }

    #[test]
    fn a_refused_stop_waits_longer_each_time_and_four_times_its_own_length() {
        let delay = |n, took| refused_stop_delay(Duration::ZERO, n, Duration::from_secs(took));
        assert_eq!(delay(1, 0), Duration::from_millis(500));
        assert_eq!(delay(4, 0), Duration::from_secs(4));
        assert_eq!(delay(30, 0), Duration::from_mins(5));
        assert_eq!(delay(1, 10), Duration::from_secs(40));
    }
}

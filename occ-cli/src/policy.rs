//! The worker's limits from the environment (spec/engine 4, worker settings).

use std::{env, time::Duration};

use occ_core::work::Policy;

use crate::exit::{Done, Failure};

/// Longest duration that a variable may ask for: a day.
const MAX_MILLIS: u64 = 86_400_000;

/// The default policy with what `OCC_WORKER_*` says.
pub(crate) fn from_environment() -> Done<Policy> {
    let mut policy = Policy::default();
    if let Some(value) = number("OCC_WORKER_POLL_INTERVAL_MS", 1, MAX_MILLIS)? {
        policy.poll_interval = Duration::from_millis(value);
    }
    if let Some(value) = number("OCC_WORKER_LEASE_DURATION_MS", 100, MAX_MILLIS)? {
        policy.lease = Duration::from_millis(value);
    }
    if let Some(value) = number("OCC_WORKER_CONVERGENCE_TIMEOUT_MS", 1, MAX_MILLIS)? {
        policy.convergence_timeout = Duration::from_millis(value);
    }
    if let Some(value) = number("OCC_WORKER_EFFECT_TIMEOUT_MS", 1, MAX_MILLIS)? {
        policy.effect_timeout = Duration::from_millis(value);
    }
    if let Some(value) = number("OCC_WORKER_MAX_ATTEMPTS", 1, 1000)? {
        policy.max_attempts = u32::try_from(value).unwrap_or(u32::MAX);
    }
    if let Some(value) = number("OCC_WORKER_CONCURRENCY", 1, 1024)? {
        policy.concurrency = usize::try_from(value).unwrap_or(usize::MAX);
    }
    Ok(policy)
}

fn number(variable: &str, min: u64, max: u64) -> Done<Option<u64>> {
    let Some(text) = env::var_os(variable) else {
        return Ok(None);
    };
    text.to_str()
        .and_then(|text| text.parse().ok())
        .filter(|value| (min..=max).contains(value))
        .map(Some)
        .ok_or_else(|| Failure::startup(format!("{variable} must be a whole number from {min} to {max}")))
}

//! What becomes of work, as a decision that a store writes (spec/engine 4).

use std::time::Duration;

use super::{
    Corrupt,
    work::{SuccessResult, WorkRow},
};
use crate::{
    audit::{AuditEvent, AuditOutcome},
    id::NamespaceId,
    reason::{Failure, Pending},
    time::Timestamp,
    work::{FailureData, LastAttempt, Lease, Lost, NewWork, Target, Transition},
};

/// How long after an exhausted pass over the selected version the next begins.
const MAINTENANCE_PAUSE: Duration = Duration::from_mins(5);

/// What is written of work, and what is recorded about it.
#[derive(Debug)]
pub(in crate::store) struct Settlement {
    pub next: Next,
    pub event: Option<AuditEvent>,
}

#[derive(Debug)]
pub(in crate::store) enum Next {
    /// Queued again.
    Queued {
        attempts: u32,
        extra_attempts: u32,
        delay: Duration,
        /// Recorded for the first time exactly when there is an event.
        last_attempt: LastAttempt,
    },
    /// It is over.
    Ended {
        state: &'static str,
        code: &'static str,
        result: String,
    },
}

/// What follows from the end of work that nobody finished.
#[derive(Debug)]
pub(in crate::store) enum Follows {
    Nothing,
    /// Nobody would provide the Namespace any more.
    NamespaceFails(NamespaceId),
    /// More work, due after this long.
    Work(NewWork, Duration),
}

pub(in crate::store) fn settled(
    work: &WorkRow,
    transition: &Transition,
    now: Timestamp,
) -> Result<Settlement, Corrupt> {
    match transition {
        Transition::Complete { code, warnings } => {
            let warnings = warnings.clone();
            let result = SuccessResult { warnings };
            ended(work, "succeeded", code.code(), &result, AuditOutcome::Success)
        }
        Transition::Fail { failure, data } => failed(work, *failure, data),
        Transition::Defer {
            reason,
            delay,
            refusal,
            failed_stops,
            repeat_evidence,
        } => {
            let attempt = LastAttempt {
                code: *reason,
                at: now,
                refusal: *refusal,
                failed_stops: *failed_stops,
            };
            // The attempt is given back.
            let attempts = work.attempts.saturating_sub(1);
            let spent = (attempts, work.extra_attempts);
            Ok(waits(work, spent, *delay, attempt, *repeat_evidence))
        }
        Transition::Retry { reason, delay } => {
            let attempt = LastAttempt {
                code: *reason,
                at: now,
                ..refused_before(work, now)
            };
            let spent = (work.attempts, work.extra_attempts);
            Ok(waits(work, spent, *delay, attempt, true))
        }
    }
}

/// What becomes of a claim whose lease lapsed. `published`: it is about the version that its Agent's pointer names and that
/// should run. `random` is in `[0, 1)`.
pub(in crate::store) fn lapsed(
    work: &WorkRow,
    published: bool,
    lease: Lease,
    random: f64,
    now: Timestamp,
) -> Result<(Settlement, Follows), Corrupt> {
    let lost = Lost {
        attempts: work.attempts,
        extra_attempts: work.extra_attempts,
        refused: work.last_attempt.is_some_and(|last| last.refusal.is_some()),
        published: published && matches!(work.target, Target::Revision { .. }),
    };
    match lost.recover(lease.max_attempts, random) {
        Err(failure) => abandoned(work, published, failure),
        Ok(again) => {
            let attempt = LastAttempt {
                code: again.code,
                at: now,
                ..refused_before(work, now)
            };
            let spent = (again.attempts, again.extra_attempts);
            Ok((waits(work, spent, again.delay, attempt, true), Follows::Nothing))
        }
    }
}

/// The end of work that nobody finished, with what depends on it.
pub(in crate::store) fn abandoned(
    work: &WorkRow,
    published: bool,
    failure: Failure,
) -> Result<(Settlement, Follows), Corrupt> {
    let follows = match work.target {
        Target::NamespaceReady { namespace } => Follows::NamespaceFails(namespace),
        // A selected version is looked after as long as it is selected, however often that fails.
        Target::Maintenance {
            namespace,
            agent,
            revision,
            bucket,
        } if published => {
            let target = Target::Maintenance {
                namespace,
                agent,
                revision,
                bucket: bucket + 1,
            };
            let actor = work.actor.clone();
            Follows::Work(NewWork::new(target, actor), MAINTENANCE_PAUSE)
        }
        // So is one whose own deployment was lost that often: its workload serves, and nobody else would look.
        Target::Revision {
            namespace,
            agent,
            revision,
        } if published => {
            let target = Target::Maintenance {
                namespace,
                agent,
                revision,
                bucket: 0,
            };
            let actor = work.actor.clone();
            Follows::Work(NewWork::new(target, actor), MAINTENANCE_PAUSE)
        }
        _ => Follows::Nothing,
    };
    Ok((failed(work, failure, &FailureData::default())?, follows))
}

/// The refusal that the work waits with, if it does: a retry or a loss says nothing of it, so it stays.
fn refused_before(work: &WorkRow, now: Timestamp) -> LastAttempt {
    work.last_attempt.unwrap_or(LastAttempt {
        code: Pending::ReconciliationPending,
        at: now,
        refusal: None,
        failed_stops: 0,
    })
}

/// Queued again with its attempt recorded; the same as before is recorded once, unless `repeat`.
fn waits(
    work: &WorkRow,
    (attempts, extra_attempts): (u32, u32),
    delay: Duration,
    attempt: LastAttempt,
    repeat: bool,
) -> Settlement {
    let news = repeat || work.last_attempt.is_none_or(|before| !attempt.repeats(&before));
    let last_attempt = match work.last_attempt {
        Some(before) if !news => LastAttempt {
            at: before.at,
            ..attempt
        },
        _ => attempt,
    };
    let event = news.then(|| {
        let event = evidence(work, attempt.code.code(), attempts, AuditOutcome::Failure);
        match attempt.refusal {
            Some(refusal) => event.with("refusal", refusal.code()),
            None => event,
        }
    });
    Settlement {
        next: Next::Queued {
            attempts,
            extra_attempts,
            delay,
            last_attempt,
        },
        event,
    }
}

fn failed(work: &WorkRow, failure: Failure, data: &FailureData) -> Result<Settlement, Corrupt> {
    ended(work, "failed", failure.code(), data, AuditOutcome::Failure)
}

fn ended(
    work: &WorkRow,
    state: &'static str,
    code: &'static str,
    result: &impl serde::Serialize,
    outcome: AuditOutcome,
) -> Result<Settlement, Corrupt> {
    let result = serde_json::to_string(result).map_err(|_| Corrupt("value"))?;
    let event = evidence(work, code, work.attempts, outcome).with("final", true);
    Ok(Settlement {
        next: Next::Ended { state, code, result },
        event: Some(event),
    })
}

fn evidence(work: &WorkRow, code: &str, attempts: u32, outcome: AuditOutcome) -> AuditEvent {
    let mut event = AuditEvent::mutation(work.actor.clone(), "reconcile", work.target.resource())
        .because(code)
        .with("reasonCode", code)
        .with("attemptCount", attempts)
        .with("workId", work.key.clone());
    event.outcome = outcome;
    event
}

//! What becomes of claimed work, fenced by its token and its lease (spec/engine 4).

use std::time::Duration;

use sqlx::SqliteConnection;

use super::{column::json, commit, fault::Refused, status::SuccessResult, work_row::WorkRow};
use crate::{
    audit::{AuditEvent, AuditOutcome},
    reason::{Failure, Success},
    store::Expect,
    time::Timestamp,
    work::{ClaimToken, FailureData, LastAttempt, Transition, Warning},
};

pub(super) async fn settle(
    db: &mut SqliteConnection,
    now: Timestamp,
    token: ClaimToken,
    transition: &Transition,
) -> Result<(), Refused> {
    let query = "SELECT * FROM work WHERE claim_token = ? AND state = 'claimed' AND lease_expires_at > ?";
    let query = sqlx::query(query).bind(token.0.to_string()).bind(now.as_millis());
    let row = query
        .fetch_optional(&mut *db)
        .await?
        .ok_or_else(|| Refused::conflict(Expect::ClaimHeld(token)))?;
    let work = WorkRow::of(&row)?;
    match transition {
        Transition::Complete { code, warnings } => complete(db, now, &work, *code, warnings).await,
        Transition::Fail { failure, data } => fail(db, now, &work, *failure, data).await,
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
            let waiting = Waiting {
                attempts: work.attempts.saturating_sub(1),
                delay: *delay,
                ..Waiting::of(&work)
            };
            wait(db, now, &work, waiting, attempt, *repeat_evidence).await
        }
        Transition::Retry { reason, delay } => {
            // A retry says nothing of a refusal that waits for its stop, so it stays.
            let attempt = LastAttempt {
                code: *reason,
                at: now,
                ..refused_before(&work, now)
            };
            wait(
                db,
                now,
                &work,
                Waiting {
                    delay: *delay,
                    ..Waiting::of(&work)
                },
                attempt,
                true,
            )
            .await
        }
    }
}

/// The refusal that the work waits with, if it does.
pub(super) fn refused_before(work: &WorkRow, now: Timestamp) -> LastAttempt {
    work.last_attempt.unwrap_or(LastAttempt {
        code: crate::reason::Pending::ReconciliationPending,
        at: now,
        refusal: None,
        failed_stops: 0,
    })
}

/// How work is queued again.
pub(super) struct Waiting {
    pub attempts: u32,
    pub extra_attempts: u32,
    pub delay: Duration,
}

impl Waiting {
    pub(super) const fn of(work: &WorkRow) -> Self {
        Self {
            attempts: work.attempts,
            extra_attempts: work.extra_attempts,
            delay: Duration::ZERO,
        }
    }
}

/// Queues work again and records its attempt; the same as before is recorded once, unless `repeat`.
pub(super) async fn wait(
    db: &mut SqliteConnection,
    now: Timestamp,
    work: &WorkRow,
    waiting: Waiting,
    attempt: LastAttempt,
    repeat: bool,
) -> Result<(), Refused> {
    let news = repeat || work.last_attempt.is_none_or(|before| !attempt.repeats(&before));
    let kept = match work.last_attempt {
        Some(before) if !news => LastAttempt {
            at: before.at,
            ..attempt
        },
        _ => attempt,
    };
    let query =
        "UPDATE work SET state = 'queued', available_at = ?, attempts = ?, extra_attempts = ?, last_attempt = ?,
            claim_token = NULL, claimed_at = NULL, lease_expires_at = NULL
        WHERE key = ?";
    sqlx::query(query)
        .bind(now.plus(waiting.delay).as_millis())
        .bind(i64::from(waiting.attempts))
        .bind(i64::from(waiting.extra_attempts))
        .bind(json(&kept)?)
        .bind(&work.key)
        .execute(&mut *db)
        .await?;
    if news {
        let mut event = evidence(work, attempt.code.code(), waiting.attempts, AuditOutcome::Failure);
        if let Some(refusal) = attempt.refusal {
            event = event.with("refusal", refusal.code());
        }
        commit::audit(db, now, &event).await?;
    }
    Ok(())
}

async fn complete(
    db: &mut SqliteConnection,
    now: Timestamp,
    work: &WorkRow,
    code: Success,
    warnings: &[Warning],
) -> Result<(), Refused> {
    let result = json(&SuccessResult {
        warnings: warnings.to_vec(),
    })?;
    end(db, now, work, "succeeded", code.code(), result).await?;
    let event = evidence(work, code.code(), work.attempts, AuditOutcome::Success).with("final", true);
    commit::audit(db, now, &event).await
}

/// Ends work as failed.
pub(super) async fn fail(
    db: &mut SqliteConnection,
    now: Timestamp,
    work: &WorkRow,
    failure: Failure,
    data: &FailureData,
) -> Result<(), Refused> {
    end(db, now, work, "failed", failure.code(), json(data)?).await?;
    let event = evidence(work, failure.code(), work.attempts, AuditOutcome::Failure).with("final", true);
    commit::audit(db, now, &event).await
}

async fn end(
    db: &mut SqliteConnection,
    now: Timestamp,
    work: &WorkRow,
    state: &str,
    code: &str,
    result: String,
) -> Result<(), Refused> {
    let query = "UPDATE work SET state = ?, code = ?, result = ?, completed_at = ?,
            claim_token = NULL, claimed_at = NULL, lease_expires_at = NULL
        WHERE key = ?";
    let query = sqlx::query(query)
        .bind(state)
        .bind(code)
        .bind(result)
        .bind(now.as_millis())
        .bind(&work.key);
    query.execute(db).await?;
    Ok(())
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

//! What becomes of claimed work, fenced by its token and its lease (spec/engine 4).

use sqlx::SqliteConnection;

use super::{column::json, commit, fault::Refused};
use crate::{
    store::{
        Expect,
        row::{
            settlement::{Next, Settlement, settled},
            work::WorkRow,
        },
    },
    time::Timestamp,
    work::{ClaimToken, Transition},
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
    write(db, now, &work.key, settled(&work, transition, now)?).await
}

/// Writes what becomes of work, and records it.
pub(super) async fn write(
    db: &mut SqliteConnection,
    now: Timestamp,
    key: &str,
    settlement: Settlement,
) -> Result<(), Refused> {
    match settlement.next {
        Next::Queued {
            attempts,
            extra_attempts,
            delay,
            last_attempt,
        } => {
            let query =
                "UPDATE work SET state = 'queued', available_at = ?, attempts = ?, extra_attempts = ?, last_attempt = ?,
                    claim_token = NULL, claimed_at = NULL, lease_expires_at = NULL
                WHERE key = ?";
            let query = sqlx::query(query)
                .bind(now.plus(delay).as_millis())
                .bind(i64::from(attempts))
                .bind(i64::from(extra_attempts))
                .bind(json(&last_attempt)?);
            query.bind(key).execute(&mut *db).await?;
        }
        Next::Ended { state, code, result } => {
            let query = "UPDATE work SET state = ?, code = ?, result = ?, completed_at = ?,
                    claim_token = NULL, claimed_at = NULL, lease_expires_at = NULL
                WHERE key = ?";
            let query = sqlx::query(query)
                .bind(state)
                .bind(code)
                .bind(result)
                .bind(now.as_millis());
            query.bind(key).execute(&mut *db).await?;
        }
    }
    match settlement.event {
        Some(event) => commit::audit(db, now, &event).await,
        None => Ok(()),
    }
}

//! Removal of what is over and old (docs/adr/0011).

use std::time::Duration;

use sqlx::SqliteConnection;

use super::{
    column::number,
    connection::{Connections, Transaction},
    fault::Fault,
    read,
};
use crate::{
    audit::chain::Seal,
    store::{StoreError, StoreResult},
};

/// Work that nothing reads any more. A failed removal is among what is read: it may be repeated.
macro_rules! prunable {
    ($select:literal) => {
        concat!(
            "SELECT ",
            $select,
            " FROM work INDEXED BY work_over WHERE completed_at IS NOT NULL AND completed_at <= ?
            AND kind IN ('maintenance', 'agent_stopped', 'credentials_withdrawn', 'agent_deleted', 'namespace_deleted')
            AND (kind IN ('maintenance', 'agent_stopped', 'credentials_withdrawn') OR state = 'succeeded')"
        )
    };
}

/// The moment before which something is old.
async fn cutoff(db: &mut SqliteConnection, older_than: Duration) -> Result<i64, Fault> {
    let age = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX);
    Ok(read::now(db).await?.as_millis().saturating_sub(age))
}

pub(super) async fn prunable_work(db: &mut SqliteConnection, older_than: Duration) -> Result<u64, Fault> {
    let cutoff = cutoff(db, older_than).await?;
    let count: i64 = sqlx::query_scalar(prunable!("count(*)"))
        .bind(cutoff)
        .fetch_one(db)
        .await?;
    u64::try_from(count).map_err(|_| Fault::Corrupt("work"))
}

pub(super) async fn prune_work(connections: &Connections, older_than: Duration, limit: u32) -> StoreResult<u64> {
    let mut transaction = connections.begin().await?;
    let pruned = work(&mut transaction, older_than, limit).await;
    Ok(transaction.end(pruned).await?)
}

async fn work(db: &mut SqliteConnection, older_than: Duration, limit: u32) -> Result<u64, Fault> {
    let query = concat!(
        "DELETE FROM work WHERE key IN (",
        prunable!("key"),
        " ORDER BY completed_at LIMIT ?)"
    );
    let cutoff = cutoff(db, older_than).await?;
    let deleted = sqlx::query(query)
        .bind(cutoff)
        .bind(i64::from(limit))
        .execute(db)
        .await?;
    Ok(deleted.rows_affected())
}

pub(super) async fn anchor(db: &mut SqliteConnection) -> Result<Option<Seal>, Fault> {
    let row: Option<(i64, String)> = sqlx::query_as("SELECT position, hash FROM audit_anchor")
        .fetch_optional(db)
        .await?;
    row.map(|(position, hash)| {
        let position = u64::try_from(position).map_err(|_| Fault::Corrupt("seal"))?;
        Ok(Seal { position, hash })
    })
    .transpose()
}

/// Where the anchor is, and where a pruning would leave it, at most so much further.
async fn span(db: &mut SqliteConnection, older_than: Duration, most: i64) -> Result<(i64, i64), Fault> {
    let anchor = anchor(&mut *db).await?.map_or(Ok(0), |seal| number(seal.position))?;
    let head: Option<i64> = sqlx::query_scalar("SELECT max(position) FROM audit_seals")
        .fetch_one(&mut *db)
        .await?;
    let query = "SELECT s.position FROM audit_seals s JOIN audit a ON a.sequence = s.sequence
        WHERE s.position > ? AND s.position <= ? AND a.occurred_at > ? ORDER BY s.position LIMIT 1";
    let young: Option<i64> = sqlx::query_scalar(query)
        .bind(anchor)
        .bind(anchor.saturating_add(most))
        .bind(cutoff(&mut *db, older_than).await?)
        .fetch_optional(db)
        .await?;
    let last = head.map_or(anchor, |head| young.unwrap_or(head).min(head) - 1);
    Ok((anchor, last.min(anchor.saturating_add(most)).max(anchor)))
}

pub(super) async fn prunable_audit(db: &mut SqliteConnection, older_than: Duration) -> Result<u64, Fault> {
    let (anchor, last) = span(db, older_than, i64::MAX).await?;
    u64::try_from(last - anchor).map_err(|_| Fault::Corrupt("seal"))
}

pub(super) async fn prune_audit(connections: &Connections, older_than: Duration, limit: u32) -> StoreResult<u64> {
    let mut transaction: Transaction = connections.begin().await?;
    let pruned = audit(&mut transaction, older_than, limit).await;
    transaction.end(pruned).await.map_err(StoreError::from)
}

async fn audit(db: &mut SqliteConnection, older_than: Duration, limit: u32) -> Result<u64, Fault> {
    let (anchor, last) = span(&mut *db, older_than, i64::from(limit)).await?;
    if last == anchor {
        return Ok(0);
    }
    let moved = if anchor == 0 {
        "INSERT INTO audit_anchor (singleton, position, hash) SELECT 1, position, hash FROM audit_seals WHERE position = ?"
    } else {
        "UPDATE audit_anchor SET (position, hash) = (SELECT position, hash FROM audit_seals WHERE position = ?)"
    };
    // A record goes before its seal, which says that it may. Until the end of this transaction only.
    let deferred = "PRAGMA defer_foreign_keys = ON";
    sqlx::query(deferred).execute(&mut *db).await?;
    sqlx::query(moved).bind(last).execute(&mut *db).await?;
    let records = "DELETE FROM audit WHERE sequence IN (SELECT sequence FROM audit_seals WHERE position <= ?)";
    let removed = sqlx::query(records).bind(last).execute(&mut *db).await?;
    let seals = "DELETE FROM audit_seals WHERE position <= ?";
    sqlx::query(seals).bind(last).execute(db).await?;
    Ok(removed.rows_affected())
}

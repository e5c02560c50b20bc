//! Claims whose worker was lost, and work that has no attempt left (spec/engine 4).

use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    claim::SPOILT_PAUSE,
    connection::Connections,
    enqueue,
    fault::{Fault, Refused},
    now, read, settle,
};
use crate::{
    reason::Failure,
    store::{
        StoreError, StoreResult,
        row::{
            settlement::{self, Follows, Settlement},
            work::WorkRow,
        },
    },
    time::Timestamp,
    work::Lease,
};

/// How many one recovery handles. The rest waits for the next, so that no transaction grows long.
const BATCH: i64 = 100;

/// Whether there is anything to recover.
pub(super) const IS_DUE: &str = concat!(
    "SELECT EXISTS (SELECT 1 FROM work WHERE state = 'claimed' AND lease_expires_at <= ",
    now!(),
    ") OR EXISTS (SELECT 1 FROM work WHERE state = 'queued' AND attempts - extra_attempts >= ?)"
);

/// Work, and whether it is about the version that its Agent's pointer names and that should run.
macro_rules! published {
    ($where:literal) => {
        concat!(
            "SELECT w.*, EXISTS (
                SELECT 1 FROM agents a JOIN namespaces n ON n.id = a.namespace_id
                WHERE a.id = w.agent_id AND a.active_revision_id = w.revision_id AND a.desired = 'running'
                    AND n.status = 'ready'
            ) AS published FROM work w WHERE ",
            $where,
            " LIMIT ?"
        )
    };
}

pub(super) const LAPSED: &str =
    published!("w.state = 'claimed' AND w.lease_expires_at <= ? ORDER BY w.lease_expires_at");
pub(super) const SPENT: &str = published!("w.state = 'queued' AND w.attempts - w.extra_attempts >= ?");

/// A look, not a write.
pub(super) async fn is_due(db: &mut SqliteConnection, lease: Lease) -> Result<bool, Fault> {
    Ok(sqlx::query_scalar(IS_DUE)
        .bind(i64::from(lease.max_attempts))
        .fetch_one(db)
        .await?)
}

pub(super) async fn recover(connections: &Connections, lease: Lease) -> StoreResult<usize> {
    let mut transaction = connections.begin().await?;
    let recovered = all(&mut transaction, lease).await;
    transaction.end(recovered).await.map_err(|refused| match refused {
        Refused::Fault(fault) => fault.into(),
        Refused::Answer(_) => StoreError::Corrupt("work"),
    })
}

async fn all(db: &mut SqliteConnection, lease: Lease) -> Result<usize, Refused> {
    let now = read::now(db).await?;
    let mut count = 0;
    let query = sqlx::query(LAPSED).bind(now.as_millis()).bind(BATCH);
    for row in &query.fetch_all(&mut *db).await? {
        if let Some(work) = WorkRow::readable(row) {
            let lapsed = settlement::lapsed(&work, row.try_get("published")?, lease, crate::randomness::unit(), now)?;
            write(db, now, &work, lapsed).await?;
            count += 1;
        } else {
            set_aside(db, now, row).await?;
        }
    }
    let query = sqlx::query(SPENT).bind(i64::from(lease.max_attempts)).bind(BATCH);
    for row in &query.fetch_all(&mut *db).await? {
        if let Some(work) = WorkRow::readable(row) {
            let spent = settlement::abandoned(&work, row.try_get("published")?, Failure::MaxAttemptsExhausted)?;
            write(db, now, &work, spent).await?;
            count += 1;
        } else {
            set_aside(db, now, row).await?;
        }
    }
    Ok(count)
}

/// Leaves work alone for a while that does not decode: its lane is free, it hides nothing that was lost, and its attempt is given back;
/// all of them, if none was left.
async fn set_aside(db: &mut SqliteConnection, now: Timestamp, row: &SqliteRow) -> Result<(), Fault> {
    let query = "UPDATE work SET state = 'queued', available_at = ?,
            attempts = iif(state = 'claimed', max(0, attempts - 1), extra_attempts),
            claim_token = NULL, claimed_at = NULL, lease_expires_at = NULL
        WHERE key = ?";
    sqlx::query(query)
        .bind(now.plus(SPOILT_PAUSE).as_millis())
        .bind(row.try_get::<String, _>("key")?)
        .execute(db)
        .await?;
    Ok(())
}

async fn write(
    db: &mut SqliteConnection,
    now: Timestamp,
    work: &WorkRow,
    (settlement, follows): (Settlement, Follows),
) -> Result<(), Refused> {
    settle::write(db, now, &work.key, settlement).await?;
    match follows {
        Follows::Nothing => {}
        Follows::NamespaceFails(namespace) => {
            let query = "UPDATE namespaces SET version = version + 1, status = 'failed'
                WHERE id = ? AND status = 'provisioning'";
            sqlx::query(query).bind(namespace.to_string()).execute(db).await?;
        }
        Follows::Work(work, delay) => {
            enqueue::insert(db, now, now.plus(delay), &work).await?;
        }
    }
    Ok(())
}

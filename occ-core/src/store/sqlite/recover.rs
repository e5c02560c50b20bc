//! Claims whose worker was lost, and work that has no attempt left (spec/engine 4).

use std::time::Duration;

use sqlx::{Row as _, SqliteConnection};

use super::{
    connection::Connections,
    enqueue,
    fault::{Fault, Refused},
    now, read,
    settle::{self, Waiting, refused_before},
    work_row::WorkRow,
};
use crate::{
    reason::Failure,
    store::{StoreError, StoreResult},
    time::Timestamp,
    work::{FailureData, LastAttempt, Lease, Lost, NewWork, Target},
};

/// How many one recovery handles. The rest waits for the next, so that no transaction grows long.
const BATCH: i64 = 100;
/// How long after an exhausted pass over the selected version the next begins.
const MAINTENANCE_PAUSE: Duration = Duration::from_mins(5);

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
        if let Some(work) = WorkRow::readable(row)? {
            lapsed(db, now, lease, &work, row.try_get("published")?).await?;
            count += 1;
        }
    }
    let query = sqlx::query(SPENT).bind(i64::from(lease.max_attempts)).bind(BATCH);
    for row in &query.fetch_all(&mut *db).await? {
        if let Some(work) = WorkRow::readable(row)? {
            end(db, now, &work, row.try_get("published")?, Failure::MaxAttemptsExhausted).await?;
            count += 1;
        }
    }
    Ok(count)
}

async fn lapsed(
    db: &mut SqliteConnection,
    now: Timestamp,
    lease: Lease,
    work: &WorkRow,
    published: bool,
) -> Result<(), Refused> {
    let lost = Lost {
        attempts: work.attempts,
        extra_attempts: work.extra_attempts,
        refused: work.last_attempt.is_some_and(|last| last.refusal.is_some()),
        published: published && matches!(work.target, Target::Revision { .. }),
    };
    match lost.recover(lease.max_attempts, rand::random()) {
        Err(failure) => end(db, now, work, published, failure).await,
        Ok(again) => {
            let attempt = LastAttempt {
                code: again.code,
                at: now,
                ..refused_before(work, now)
            };
            let waiting = Waiting {
                attempts: again.attempts,
                extra_attempts: again.extra_attempts,
                delay: again.delay,
            };
            settle::wait(db, now, work, waiting, attempt, true).await
        }
    }
}

/// Ends work that nobody finished, with what depends on it.
async fn end(
    db: &mut SqliteConnection,
    now: Timestamp,
    work: &WorkRow,
    published: bool,
    failure: Failure,
) -> Result<(), Refused> {
    settle::fail(db, now, work, failure, &FailureData::default()).await?;
    match work.target {
        // Nobody would provide it any more.
        Target::NamespaceReady { namespace } => {
            let query = "UPDATE namespaces SET version = version + 1, status = 'failed'
                WHERE id = ? AND status = 'provisioning'";
            sqlx::query(query).bind(namespace.to_string()).execute(db).await?;
        }
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
            let next = NewWork {
                target,
                actor: work.actor.clone(),
            };
            enqueue::insert(db, now, now.plus(MAINTENANCE_PAUSE), &next).await?;
        }
        _ => {}
    }
    Ok(())
}

//! Taking up work, and keeping it (spec/engine 4).

use std::{collections::BTreeSet, time::Duration};

use futures_util::TryStreamExt as _;
use sqlx::{Row as _, SqliteConnection};

use super::{connection::Connections, fault::Fault, now, read};
use crate::{
    store::{
        QueueDepth, StoreResult, Wait,
        row::{self, Columns, work::WorkRow},
    },
    time::Timestamp,
    work::{Claim, ClaimToken, Lease},
};

/// How long work that does not decode is left alone.
pub(super) const SPOILT_PAUSE: Duration = Duration::from_mins(1);

/// Queued work of a free lane, the oldest first. `work_queued` holds it in this order, and nothing that is finished.
macro_rules! free {
    ($($select:tt)*) => {
        concat!(
            "SELECT ",
            $($select)*,
            " FROM work w INDEXED BY work_queued WHERE w.state = 'queued'
            AND NOT EXISTS (SELECT 1 FROM work c WHERE c.lane = w.lane AND c.state = 'claimed')"
        )
    };
}

/// Whether anything can be claimed.
pub(super) const IS_DUE: &str = concat!(
    "SELECT EXISTS (",
    free!("1"),
    " AND w.available_at <= ",
    now!(),
    " AND w.attempts - w.extra_attempts < ?)"
);
pub(super) const DUE: &str = concat!(
    free!("w.*"),
    " AND w.available_at <= ? AND w.attempts - w.extra_attempts < ? ORDER BY w.available_at, w.created_at, w.key"
);
pub(super) const NEXT_DUE: &str = concat!(
    free!(concat!("max(0, w.available_at - ", now!(), ") AS wait")),
    " ORDER BY w.available_at LIMIT 1"
);
pub(super) const NEXT_LAPSE: &str = concat!(
    "SELECT max(0, lease_expires_at - ",
    now!(),
    ") AS wait FROM work WHERE state = 'claimed' ORDER BY lease_expires_at LIMIT 1"
);
pub(super) const RENEW: &str =
    "UPDATE work SET lease_expires_at = ? WHERE claim_token = ? AND state = 'claimed' AND lease_expires_at > ?";

/// A look, not a write: an idle worker takes no lock.
pub(super) async fn is_due(db: &mut SqliteConnection, lease: Lease) -> Result<bool, Fault> {
    Ok(sqlx::query_scalar(IS_DUE)
        .bind(i64::from(lease.max_attempts))
        .fetch_one(db)
        .await?)
}

pub(super) async fn claim(connections: &Connections, limit: usize, lease: Lease) -> StoreResult<Vec<Claim>> {
    let mut transaction = connections.begin().await?;
    let taken = take(&mut transaction, limit, lease).await;
    Ok(transaction.end(taken).await?)
}

async fn take(db: &mut SqliteConnection, limit: usize, lease: Lease) -> Result<Vec<Claim>, Fault> {
    let now = read::now(db).await?;
    let (due, spoilt) = due(db, now, limit, lease).await?;
    for key in spoilt {
        // Looked at again later, and not at every turn.
        let query = sqlx::query("UPDATE work SET available_at = ? WHERE key = ?");
        query
            .bind(now.plus(SPOILT_PAUSE).as_millis())
            .bind(key)
            .execute(&mut *db)
            .await?;
    }
    let mut claims = Vec::with_capacity(due.len());
    for work in due {
        let token = ClaimToken(crate::randomness::uuid());
        let query = "UPDATE work SET state = 'claimed', attempts = attempts + 1, claim_token = ?, claimed_at = ?,
                lease_expires_at = ?
            WHERE key = ? AND state = 'queued'";
        sqlx::query(query)
            .bind(token.0.to_string())
            .bind(now.as_millis())
            .bind(now.plus(lease.duration).as_millis())
            .bind(&work.key)
            .execute(&mut *db)
            .await?;
        claims.push(Claim {
            token,
            target: work.target,
            actor: work.actor,
            attempt: work.attempts + 1,
            created_at: work.created_at,
            claimed_at: now,
            last_attempt: work.last_attempt,
            trace: work.trace,
        });
    }
    Ok(claims)
}

/// The oldest due work, one a lane, and the keys of what does not decode; reads no further than it must.
async fn due(
    db: &mut SqliteConnection,
    now: Timestamp,
    limit: usize,
    lease: Lease,
) -> Result<(Vec<WorkRow>, Vec<String>), Fault> {
    let mut rows = sqlx::query(DUE)
        .bind(now.as_millis())
        .bind(i64::from(lease.max_attempts))
        .fetch(db);
    let (mut due, mut spoilt, mut lanes) = (Vec::new(), Vec::new(), BTreeSet::new());
    while due.len() < limit
        && let Some(row) = rows.try_next().await?
    {
        match WorkRow::readable(&row) {
            Some(work) if lanes.insert(work.target.lane()) => due.push(work),
            Some(_) => {}
            None => spoilt.push(row.try_get("key")?),
        }
    }
    Ok((due, spoilt))
}

pub(super) async fn renew(connections: &Connections, token: ClaimToken, lease: Lease) -> StoreResult<bool> {
    let mut transaction = connections.begin().await?;
    let renewed = extend(&mut transaction, token, lease).await;
    Ok(transaction.end(renewed).await?)
}

async fn extend(db: &mut SqliteConnection, token: ClaimToken, lease: Lease) -> Result<bool, Fault> {
    let now = read::now(db).await?;
    let query = sqlx::query(RENEW)
        .bind(now.plus(lease.duration).as_millis())
        .bind(token.0.to_string());
    Ok(query.bind(now.as_millis()).execute(db).await?.rows_affected() == 1)
}

pub(super) const WAITS: &str =
    "SELECT w.available_at AS due, a.version = ? AS holds FROM work w JOIN agents a ON a.id = w.agent_id
    WHERE w.key = ? AND w.state = 'queued' AND w.agent_id = ?";
pub(super) const POSTPONE: &str = "UPDATE work SET available_at = ? WHERE key = ?";

pub(super) async fn postpone(connections: &Connections, waits: &[Wait]) -> StoreResult<Vec<bool>> {
    let mut transaction = connections.begin().await?;
    let done = put_off(&mut transaction, waits).await;
    Ok(transaction.end(done).await?)
}

async fn put_off(db: &mut SqliteConnection, waits: &[Wait]) -> Result<Vec<bool>, Fault> {
    let now = read::now(db).await?;
    let mut done = Vec::with_capacity(waits.len());
    for wait in waits {
        let query = sqlx::query(WAITS)
            .bind(row::number(wait.version)?)
            .bind(&wait.key)
            .bind(wait.agent.to_string());
        let found = query.fetch_optional(&mut *db).await?;
        let Some(columns) = found.as_ref().map(|row| Columns { row, of: "work" }) else {
            done.push(false);
            continue;
        };
        let holds = columns.flag("holds")?;
        if let Some(moment) = wait.placed(now, columns.moment("due")?, holds) {
            let query = sqlx::query(POSTPONE).bind(moment.as_millis()).bind(&wait.key);
            query.execute(&mut *db).await?;
        }
        done.push(holds);
    }
    Ok(done)
}

/// How long until queued work of a free lane becomes due, or a lease lapses.
pub(super) async fn next_due(db: &mut SqliteConnection) -> Result<Option<Duration>, Fault> {
    let due = wait(db, NEXT_DUE).await?;
    let lapse = wait(db, NEXT_LAPSE).await?;
    Ok(due.into_iter().chain(lapse).min())
}

async fn wait(db: &mut SqliteConnection, query: &'static str) -> Result<Option<Duration>, Fault> {
    let row = sqlx::query(query).fetch_optional(db).await?;
    row.map(|row| Ok(Duration::from_millis(Columns { row: &row, of: "work" }.number("wait")?)))
        .transpose()
}

pub(super) const DEPTH: &str = concat!(
    "SELECT (SELECT count(*) FROM work WHERE state = 'queued') AS queued,
        (SELECT count(*) FROM work WHERE state = 'claimed') AS claimed,
        max(0, ",
    now!(),
    " - coalesce((SELECT min(available_at) FROM work WHERE state = 'queued'), ",
    now!(),
    ")) AS overdue"
);

/// How much is live. Both counts are of partial indexes.
pub(super) async fn depth(db: &mut SqliteConnection) -> Result<QueueDepth, Fault> {
    let row = sqlx::query(DEPTH).fetch_one(db).await?;
    let columns = Columns { row: &row, of: "work" };
    Ok(QueueDepth {
        queued: columns.number("queued")?,
        claimed: columns.number("claimed")?,
        overdue: Duration::from_millis(columns.number("overdue")?),
    })
}

//! New work, and failed work once more (spec/engine 4).

use sqlx::SqliteConnection;

use super::{expect, fault::Refused};
use crate::{
    store::{Expect, row::work::TargetColumns},
    time::Timestamp,
    trace::TraceContext,
    work::{NewWork, Target},
};

/// Queues work. Enqueued twice for the same actor, it is the work that exists, whatever became of it.
pub(super) async fn enqueue(
    db: &mut SqliteConnection,
    now: Timestamp,
    available_at: Timestamp,
    work: &NewWork,
) -> Result<(), Refused> {
    let key = work.target.key();
    if !insert(db, now, available_at, work).await? {
        let same = Expect::WorkActor(key, work.actor.clone());
        if !expect::holds(db, now, &same).await? {
            return Err(Refused::conflict(same));
        }
    }
    Ok(())
}

/// Queues work; `false` when work of its key exists.
pub(super) async fn insert(
    db: &mut SqliteConnection,
    now: Timestamp,
    available_at: Timestamp,
    work: &NewWork,
) -> Result<bool, Refused> {
    let columns = TargetColumns::of(&work.target);
    let query = "INSERT INTO work (key, kind, namespace_id, agent_id, revision_id, operation, bucket, lane, actor,
            state, available_at, attempts, created_at, traceparent, tracestate)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, 0, ?, ?, ?) ON CONFLICT (key) DO NOTHING";
    let inserted = sqlx::query(query)
        .bind(work.target.key())
        .bind(columns.kind)
        .bind(work.target.namespace().to_string())
        .bind(columns.agent)
        .bind(columns.revision)
        .bind(columns.operation)
        .bind(columns.bucket.map(super::column::number).transpose()?)
        .bind(work.target.lane().to_string())
        .bind(work.actor.as_str())
        .bind(available_at.as_millis())
        .bind(now.as_millis())
        .bind(work.trace.as_ref().map(TraceContext::parent))
        .bind(work.trace.as_ref().and_then(TraceContext::state))
        .execute(db)
        .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Queues failed work again, in the trace of who asks for it now. It keeps its age: the deadline of the first request still applies.
pub(super) async fn requeue(db: &mut SqliteConnection, now: Timestamp, work: &NewWork) -> Result<(), Refused> {
    let key = work.target.key();
    let failed = Expect::WorkFailed(key.clone());
    // How a deployment or a stop ended is never rewritten: those are repeated as new work.
    let repeatable = !matches!(
        work.target,
        Target::Revision { .. }
            | Target::Maintenance { .. }
            | Target::AgentStopped { .. }
            | Target::CredentialsWithdrawn { .. }
    );
    let query = "UPDATE work SET state = 'queued', actor = ?, available_at = ?, attempts = 0, extra_attempts = 0,
            last_attempt = NULL, code = NULL, result = NULL, completed_at = NULL, traceparent = ?, tracestate = ?
        WHERE key = ? AND state = 'failed'";
    let query = sqlx::query(query)
        .bind(work.actor.as_str())
        .bind(now.as_millis())
        .bind(work.trace.as_ref().map(TraceContext::parent))
        .bind(work.trace.as_ref().and_then(TraceContext::state))
        .bind(key);
    if repeatable && query.execute(db).await?.rows_affected() == 1 {
        Ok(())
    } else {
        Err(Refused::conflict(failed))
    }
}

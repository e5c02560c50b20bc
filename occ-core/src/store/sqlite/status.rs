//! How work stands, as a reader judges it: by the database's clock (spec/engine 9).

use sqlx::SqliteConnection;

use super::{fault::Fault, now};
use crate::{
    id::{AgentId, NamespaceId, RevisionId},
    store::{DeploymentRow, WorkState, row::work},
    work::Target,
};

/// Columns of a piece of work, for [`state`]: under a lapsed lease it reads as queued.
macro_rules! judged {
    () => {
        concat!(
            "w.state, w.available_at, w.attempts, w.last_attempt, w.code, w.result, w.completed_at, w.actor, ",
            "coalesce(w.lease_expires_at > ",
            now!(),
            ", 0) AS held"
        )
    };
}

pub(super) async fn work_state(db: &mut SqliteConnection, key: &str) -> Result<Option<WorkState>, Fault> {
    let query = concat!("SELECT ", judged!(), " FROM work w WHERE w.key = ?");
    let row = sqlx::query(query).bind(key).fetch_optional(db).await?;
    Ok(row.as_ref().map(work::state).transpose()?)
}

pub(super) async fn deployment(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    agent: AgentId,
    revision: RevisionId,
) -> Result<Option<DeploymentRow>, Fault> {
    // Work of another owner is no evidence of this deployment.
    let query = concat!(
        "SELECT ",
        judged!(),
        ", w.key, r.live, a.active_revision_id IS r.id AS active, ",
        // Queued work that cleans up what is left of it; a claim that lapsed counts as queued.
        "(SELECT min(c.available_at) FROM (
            SELECT q.kind, q.revision_id, q.available_at FROM work q WHERE q.lane = r.agent_id AND q.state = 'queued'
            UNION ALL
            SELECT q.kind, q.revision_id, q.available_at FROM work q
            WHERE q.lane = r.agent_id AND q.state = 'claimed' AND q.lease_expires_at <= ",
        now!(),
        "
        ) c LEFT JOIN revisions n ON n.id = c.revision_id
        WHERE c.kind IN ('agent_stopped', 'agent_deleted') OR (c.kind <> 'credentials_withdrawn' AND n.number > r.number)) AS cleanup_at
        FROM revisions r
        JOIN agents a ON a.id = r.agent_id
        LEFT JOIN work w ON w.key = ?4
            AND w.namespace_id = r.namespace_id AND w.agent_id = r.agent_id AND w.revision_id = r.id
        WHERE r.id = ?3 AND r.agent_id = ?2 AND r.namespace_id = ?1"
    );
    let key = Target::Revision {
        namespace,
        agent,
        revision,
    }
    .key();
    let query = sqlx::query(query)
        .bind(namespace.to_string())
        .bind(agent.to_string())
        .bind(revision.to_string());
    let row = query.bind(key).fetch_optional(db).await?;
    let decoded = row.map(|row| work::deployment(&row, namespace, agent, revision));
    Ok(decoded.transpose()?)
}

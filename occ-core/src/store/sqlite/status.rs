//! How work stands, as a reader judges it: by the database's clock (spec/engine 9).

use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{column::Columns, fault::Fault, now};
use crate::{
    id::{AgentId, NamespaceId, RevisionId},
    reason::{Failure, Success},
    store::{DeploymentRow, WorkState},
    work::{FailureData, Target, Warning},
};

/// The stored result of a success.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SuccessResult {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

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

fn state(row: &SqliteRow) -> Result<WorkState, Fault> {
    let row = Columns { row, of: "work" };
    Ok(match row.text("state")?.as_str() {
        "claimed" if row.flag("held")? => WorkState::Running {
            last_attempt: row.optional_json("last_attempt")?,
        },
        "queued" | "claimed" => WorkState::Queued {
            available_at: row.moment("available_at")?,
            last_attempt: row.optional_json("last_attempt")?,
        },
        "succeeded" => WorkState::Succeeded {
            code: Success::from_code(&row.text("code")?).ok_or(row.corrupt())?,
            warnings: row.json::<SuccessResult>("result")?.warnings,
            at: row.moment("completed_at")?,
        },
        "failed" => WorkState::Failed {
            failure: Failure::from_code(&row.text("code")?).ok_or(row.corrupt())?,
            data: row.json::<FailureData>("result")?,
            actor: row.parsed("actor")?,
            attempts: row.number("attempts")?,
            at: row.moment("completed_at")?,
        },
        _ => return Err(row.corrupt()),
    })
}

pub(super) async fn work_state(db: &mut SqliteConnection, key: &str) -> Result<Option<WorkState>, Fault> {
    let query = concat!("SELECT ", judged!(), " FROM work w WHERE w.key = ?");
    sqlx::query(query)
        .bind(key)
        .fetch_optional(db)
        .await?
        .as_ref()
        .map(state)
        .transpose()
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
        ", w.key, r.live, a.active_revision_id IS r.id AS active FROM revisions r
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
    let Some(row) = query.bind(key).fetch_optional(db).await? else {
        return Ok(None);
    };
    let found: Option<String> = row.try_get("key")?;
    let work = found.map(|_| state(&row)).transpose()?;
    let columns = Columns {
        row: &row,
        of: "AgentRevision",
    };
    let over = matches!(work, Some(WorkState::Succeeded { .. } | WorkState::Failed { .. }));
    let cleanup_pending = over && columns.flag("live")? && !columns.flag("active")?;
    Ok(Some(DeploymentRow {
        revision,
        agent,
        namespace,
        work,
        cleanup_pending,
    }))
}

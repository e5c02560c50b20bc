//! The selected versions of Agents that should run.

use sqlx::SqliteConnection;

use super::{fault::Fault, now, read::collected};
use crate::{store::row::work, work::NewWork};

/// Maintenance of each.
pub(super) async fn selected(db: &mut SqliteConnection) -> Result<Vec<NewWork>, Fault> {
    let query = concat!(
        "SELECT a.namespace_id, a.id, a.active_revision_id, w.actor, ",
        now!(),
        " AS present FROM agents a JOIN work w ON w.key = 'agent_revision:' || a.active_revision_id || ':reconcile'
        WHERE a.active_revision_id IS NOT NULL AND a.desired = 'running' ORDER BY a.created_at, a.id"
    );
    let rows = sqlx::query(query).fetch_all(db).await?;
    collected(&rows, work::selected)
}

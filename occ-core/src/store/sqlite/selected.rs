//! The selected versions of Agents that should run.

use sqlx::SqliteConnection;

use super::{column::Columns, fault::Fault, now};
use crate::work::{NewWork, Target};

/// Maintenance of each, for whoever deployed it. The bucket is the present, so that each call asks for work of its own.
pub(super) async fn selected(db: &mut SqliteConnection) -> Result<Vec<NewWork>, Fault> {
    let query = concat!(
        "SELECT a.namespace_id, a.id, a.active_revision_id, w.actor, ",
        now!(),
        " AS present FROM agents a JOIN work w ON w.key = 'agent_revision:' || a.active_revision_id || ':reconcile'
        WHERE a.active_revision_id IS NOT NULL AND a.desired = 'running' ORDER BY a.created_at, a.id"
    );
    let rows = sqlx::query(query).fetch_all(db).await?;
    rows.iter()
        .map(|row| {
            let row = Columns {
                row,
                of: "selected version",
            };
            let target = Target::Maintenance {
                namespace: row.parsed("namespace_id")?,
                agent: row.parsed("id")?,
                revision: row.parsed("active_revision_id")?,
                bucket: row.number("present")?,
            };
            Ok(NewWork {
                target,
                actor: row.parsed("actor")?,
            })
        })
        .collect()
}

//! Removal of what is over and old (docs/adr/0011). The application's role may not: these need the owner of the schema.

use std::time::Duration;

use sqlx::{Row as _, postgres::PgArguments};

use super::{
    PostgresStore, arguments,
    change::millis,
    fault::Fault,
    record::{first, records},
};
use crate::{audit::chain::Seal, store::row::Columns};

/// Work that nothing reads any more. A failed removal is among what is read: it may be repeated.
macro_rules! prunable {
    ($select:literal) => {
        concat!(
            "SELECT ",
            $select,
            " FROM work WHERE completed_at IS NOT NULL AND completed_at <= present() - $1
            AND kind IN ('maintenance', 'agent_stopped', 'credentials_withdrawn', 'agent_deleted', 'namespace_deleted')
            AND (kind IN ('maintenance', 'agent_stopped', 'credentials_withdrawn') OR state = 'succeeded')"
        )
    };
}

const PRUNE_WORK: &str = concat!(
    "WITH gone AS (DELETE FROM work WHERE key IN (",
    prunable!("key"),
    " ORDER BY completed_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING 1) SELECT count(*) FROM gone"
);
const ANCHOR: &str = records!("seal", "SELECT position, hash FROM audit_anchor");
const PRUNABLE_AUDIT: &str = "SELECT coalesce(prunable_audit($1, 1000000000000)
    - coalesce((SELECT position FROM audit_anchor), 0), 0)";

impl PostgresStore {
    async fn counted(&self, sql: &'static str, arguments: PgArguments) -> Result<u64, Fault> {
        let rows = self.connections.once(sql, arguments).await?;
        let count: i64 = rows[0].try_get(0)?;
        count.try_into().map_err(|_| Fault::Corrupt("count"))
    }

    pub(super) async fn count_work(&self, older_than: Duration) -> Result<u64, Fault> {
        self.counted(prunable!("count(*)"), arguments![millis(older_than)])
            .await
    }

    pub(super) async fn remove_work(&self, older_than: Duration, limit: u32) -> Result<u64, Fault> {
        let arguments = arguments![millis(older_than), i64::from(limit)];
        self.counted(PRUNE_WORK, arguments).await
    }

    pub(super) async fn read_anchor(&self) -> Result<Option<Seal>, Fault> {
        let rows = self.connections.again(ANCHOR, arguments![]).await?;
        first(&rows, |row| {
            let row = Columns { row, of: "seal" };
            Ok(Seal {
                position: row.number("position")?,
                hash: row.text("hash")?,
            })
        })
    }

    pub(super) async fn count_audit(&self, older_than: Duration) -> Result<u64, Fault> {
        self.counted(PRUNABLE_AUDIT, arguments![millis(older_than)]).await
    }

    pub(super) async fn remove_audit(&self, older_than: Duration, limit: u32) -> Result<u64, Fault> {
        let arguments = arguments![millis(older_than), i64::from(limit)];
        self.counted("SELECT prune_audit($1, $2)::bigint", arguments).await
    }
}

//! Work as its row has it.

use sqlx::{Row as _, sqlite::SqliteRow};

use super::{column::Columns, fault::Fault};
use crate::{
    resource::PrincipalId,
    time::Timestamp,
    work::{LastAttempt, Target},
};

/// The kind's word and the columns that only some kinds have.
pub(super) struct TargetColumns {
    pub kind: &'static str,
    pub agent: Option<String>,
    pub revision: Option<String>,
    pub operation: Option<String>,
    pub bucket: Option<u64>,
}

impl TargetColumns {
    pub(super) fn of(target: &Target) -> Self {
        let (kind, operation, bucket) = match target {
            Target::NamespaceReady { .. } => ("namespace_ready", None, None),
            Target::NamespaceDeleted { .. } => ("namespace_deleted", None, None),
            Target::AgentStopped { operation, .. } => ("agent_stopped", Some(operation.to_string()), None),
            Target::AgentDeleted { .. } => ("agent_deleted", None, None),
            Target::Revision { .. } => ("revision", None, None),
            Target::Maintenance { bucket, .. } => ("maintenance", None, Some(*bucket)),
        };
        let agent = target.agent().map(|id| id.to_string());
        Self {
            kind,
            agent,
            revision: target.revision().map(|id| id.to_string()),
            operation,
            bucket,
        }
    }
}

fn target(row: Columns<'_>) -> Result<Target, Fault> {
    let namespace = row.parsed("namespace_id")?;
    Ok(match row.text("kind")?.as_str() {
        "namespace_ready" => Target::NamespaceReady { namespace },
        "namespace_deleted" => Target::NamespaceDeleted { namespace },
        "agent_stopped" => Target::AgentStopped {
            namespace,
            agent: row.parsed("agent_id")?,
            operation: row.parsed("operation")?,
        },
        "agent_deleted" => Target::AgentDeleted {
            namespace,
            agent: row.parsed("agent_id")?,
        },
        "revision" => Target::Revision {
            namespace,
            agent: row.parsed("agent_id")?,
            revision: row.parsed("revision_id")?,
        },
        "maintenance" => Target::Maintenance {
            namespace,
            agent: row.parsed("agent_id")?,
            revision: row.parsed("revision_id")?,
            bucket: row.number("bucket")?,
        },
        _ => return Err(row.corrupt()),
    })
}

/// Live work.
pub(super) struct WorkRow {
    pub key: String,
    pub target: Target,
    pub actor: PrincipalId,
    pub attempts: u32,
    pub extra_attempts: u32,
    pub last_attempt: Option<LastAttempt>,
    pub created_at: Timestamp,
}

impl WorkRow {
    /// `None` for a row that does not decode: one spoilt row must not keep the others from being worked off.
    pub(super) fn readable(row: &SqliteRow) -> Result<Option<Self>, Fault> {
        match Self::of(row) {
            Ok(work) => Ok(Some(work)),
            Err(Fault::Corrupt(_)) => {
                tracing::error!(
                    work = row.try_get::<String, _>("key").ok(),
                    "a stored piece of work does not decode"
                );
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    pub(super) fn of(row: &SqliteRow) -> Result<Self, Fault> {
        let row = Columns { row, of: "work" };
        Ok(Self {
            key: row.text("key")?,
            target: target(row)?,
            actor: row.parsed("actor")?,
            attempts: row.number("attempts")?,
            extra_attempts: row.number("extra_attempts")?,
            last_attempt: row.optional_json("last_attempt")?,
            created_at: row.moment("created_at")?,
        })
    }
}

//! Audit records and first answers, as their rows have them.

use super::{Columns, Corrupt, Row};
use crate::{
    audit::{
        AuditEvent,
        chain::{AuditRecord, Seal},
    },
    driver::{ResourceKind, ResourceRef},
    store::FirstAnswer,
};

/// A record; `position` and `hash` are NULL while it has no seal.
pub(in crate::store) fn record(row: &impl Row) -> Result<AuditRecord, Corrupt> {
    let row = Columns {
        row,
        of: "audit record",
    };
    let kind: ResourceKind = row.word("resource_kind")?;
    let position: Option<u64> = row.optional_number("position")?;
    let event = AuditEvent {
        id: row.parsed("id")?,
        kind: row.word("kind")?,
        actor: row.parsed("actor")?,
        action: row.text("action")?,
        resource: ResourceRef {
            kind,
            id: row.text("resource_id")?,
            namespace_id: row.optional_parsed("namespace_id")?,
        },
        outcome: row.word("outcome")?,
        request_id: row.optional_parsed("request_id")?,
        authorization: row.optional_json("authorization")?,
        reason_code: row.optional_text("reason_code")?,
        details: row.json("details")?,
    };
    Ok(AuditRecord {
        sequence: row.number("sequence")?,
        occurred_at: row.moment("occurred_at")?,
        event,
        seal: match position {
            Some(position) => Some(Seal {
                position,
                hash: row.text("hash")?,
            }),
            None => None,
        },
    })
}

pub(in crate::store) fn answer(row: &impl Row) -> Result<FirstAnswer, Corrupt> {
    let row = Columns {
        row,
        of: "first answer",
    };
    Ok(FirstAnswer {
        principal: row.parsed("principal")?,
        key: row.text("key")?,
        fingerprint: row.text("fingerprint")?,
        answer: row.json("answer")?,
    })
}

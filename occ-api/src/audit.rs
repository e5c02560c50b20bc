//! Audit records as they are shown.

use occ_core::{
    audit::{AuditEvent, chain::AuditRecord},
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::Serialize;

/// A recorded event.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditRecordView {
    /// Its place in the order of recording; gaps are possible.
    sequence: u64,
    /// When it was recorded.
    occurred_at: Timestamp,
    /// The event.
    event: AuditEvent,
    /// Its place in the chain of seals, once it is sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    /// Its hash in the chain of seals, once it is sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

impl From<AuditRecord> for AuditRecordView {
    fn from(record: AuditRecord) -> Self {
        let (position, hash) = record.seal.map(|seal| (seal.position, seal.hash)).unzip();
        Self {
            sequence: record.sequence,
            occurred_at: record.occurred_at,
            event: record.event,
            position,
            hash,
        }
    }
}

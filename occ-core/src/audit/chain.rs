//! The chain of seals over the audit: each hash covers the record and the hash before it (docs/adr/0009).
//!
//! Sealing runs behind the commits, in the order of the records' sequence. A record whose transaction committed late gets the next
//! position, so that no record stays outside and no commit waits for another.

use serde_json::Value;

use super::AuditEvent;
use crate::{
    digest,
    id::{InstallationId, NamespaceId},
    resource::PrincipalId,
    time::Timestamp,
};

/// A recorded event.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRecord {
    /// Its place in the order of recording; gaps are possible.
    pub sequence: u64,
    /// When it was recorded, by the database's clock.
    pub occurred_at: Timestamp,
    /// The event.
    pub event: AuditEvent,
    /// Its seal, once it has one.
    pub seal: Option<Seal>,
}

/// A link of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// Its place in the chain: 1, 2, 3 without gaps.
    pub position: u64,
    /// SHA-256, in hexadecimal.
    pub hash: String,
}

/// Which records are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditQuery {
    /// Only those of this Namespace.
    pub namespace: Option<NamespaceId>,
    /// Only those of this actor.
    pub actor: Option<PrincipalId>,
    /// Only those of this action.
    pub action: Option<String>,
    /// Only those about the resource with this id.
    pub resource: Option<String>,
    /// Only those that ended so: `success`, `failure` or `denied`.
    pub outcome: Option<super::AuditOutcome>,
    /// Only those recorded before the record with this sequence.
    pub before: Option<u64>,
    /// At most so many, the newest first.
    pub limit: u32,
}

/// The hash that the first record's covers.
pub fn root(installation: InstallationId) -> String {
    digest::hex(installation.to_string().as_bytes())
}

/// The hash of a record at this position, after `previous`.
///
/// # Panics
/// Never: an event is always JSON. A hash of anything less would hide what it should show.
pub fn link(previous: &str, position: u64, occurred_at: Timestamp, event: &AuditEvent) -> String {
    // Canonical: fields in their order, and details sorted, also where some crate of the program lets `serde_json` keep the order of
    // insertion.
    let mut event = event.clone();
    event.details.sort_keys();
    event.details.values_mut().for_each(Value::sort_all_objects);
    let event = serde_json::to_string(&event).expect("texts, numbers and maps of them are always JSON");
    digest::hex(format!("{previous}\n{position}\n{}\n{event}", occurred_at.as_millis()).as_bytes())
}

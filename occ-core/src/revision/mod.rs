//! The bytes of a revision: written once, in one canonical form, with their digest.

use crate::{
    digest,
    resource::{AgentRevision, Snapshot},
};

/// The canonical bytes of a snapshot: JSON without white space, the keys of every object sorted.
pub fn canonical(snapshot: &Snapshot) -> Vec<u8> {
    // `serde_json::Value` keeps its objects sorted, and a snapshot's maps have text keys only, so neither step can fail.
    serde_json::to_value(snapshot)
        .and_then(|value| serde_json::to_vec(&value))
        .unwrap_or_default()
}

/// The digest of a snapshot's canonical bytes: SHA-256 in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    digest::hex(bytes)
}

/// Whether a revision still is what was admitted.
pub fn is_intact(revision: &AgentRevision) -> bool {
    digest(&canonical(&revision.snapshot)) == revision.digest
}

//! The bytes of a revision: written once, in one canonical form, with their digest.

use crate::{
    digest,
    resource::{AgentRevision, Snapshot},
};

/// The canonical bytes of a snapshot: JSON without white space, the keys of every object sorted.
pub fn canonical(snapshot: &Snapshot) -> Vec<u8> {
    // A snapshot's maps have text keys and its numbers come from JSON, so neither step can fail.
    serde_json::to_value(snapshot)
        .and_then(|mut value| {
            // `serde_json` sorts by itself, unless some crate of the program asks it to keep the order of insertion: a digest
            // must not depend on what else is linked.
            value.sort_all_objects();
            serde_json::to_vec(&value)
        })
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

/// The snapshot in stored bytes, if they are the ones that `digest` was taken of.
pub fn verify(bytes: &[u8], digest: &str) -> Option<Snapshot> {
    if self::digest(bytes) == digest {
        serde_json::from_slice(bytes).ok()
    } else {
        None
    }
}

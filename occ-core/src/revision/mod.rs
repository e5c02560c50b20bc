//! The bytes of a revision: written once, in one canonical form, with their digest.

use serde_json::{Map, Value};

use crate::{
    digest,
    resource::{AgentRevision, Snapshot},
};

/// The canonical bytes of a snapshot: JSON without white space, the keys of every object sorted.
pub fn canonical(snapshot: &Snapshot) -> Vec<u8> {
    // A snapshot's maps have text keys and its numbers come from JSON, so neither step can fail.
    serde_json::to_value(snapshot)
        .and_then(|value| serde_json::to_vec(&sorted(value)))
        .unwrap_or_default()
}

/// `serde_json` sorts by itself, unless some crate of the program asks it to keep the order of insertion: a digest must not
/// depend on what else is linked.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(Map::from_iter(entries))
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        scalar => scalar,
    }
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

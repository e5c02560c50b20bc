//! SHA-256 in the few forms that OCC writes.

use sha2::{Digest as _, Sha256};

/// Lowercase hexadecimal SHA-256 (64 digits).
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// SHA-256 itself.
pub fn bytes(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// First twelve digits of [`hex`].
pub fn short(bytes: &[u8]) -> String {
    let mut text = hex(bytes);
    text.truncate(12);
    text
}

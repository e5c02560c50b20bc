//! Secret bytes that are looked for wherever they must not be.

use std::fmt::{Debug, Display, Write as _};

/// What a model credential holds in these suites.
pub(crate) const CREDENTIAL: &str = "canary-credential-8a41f0";
/// What a Secret that a Configuration binds holds.
pub(crate) const BINDING: &str = "canary-binding-5c93e7";
/// What replaces it, or what stands where a document's own values do.
pub(crate) const OTHER: &str = "canary-other-d20b6c";
/// What every canary begins with.
const MARK: &str = "canary-";

/// The text, which must hold no canary.
///
/// # Panics
/// When it does; the message names the place and not the text.
#[track_caller]
pub(crate) fn spotless(place: &str, text: &str) {
    assert!(!text.contains(MARK), "{place} holds a secret or a caller's value");
}

/// The bytes, which must hold no canary, neither in clear nor in base64 or hexadecimal.
#[track_caller]
pub(crate) fn spotless_bytes(place: &str, bytes: &[u8]) {
    for canary in [CREDENTIAL, BINDING, OTHER] {
        for spelled in [canary.to_owned(), hexadecimal(canary), base64(canary)] {
            let found = bytes.windows(spelled.len()).any(|part| part == spelled.as_bytes());
            assert!(!found, "{place} holds a secret in clear");
        }
    }
}

/// An error, which must hold no canary however it is printed.
#[track_caller]
pub(crate) fn spotless_error<E: Debug + Display>(place: &str, error: &E) {
    spotless(place, &format!("{error} {error:?} {error:#?}"));
}

fn hexadecimal(text: &str) -> String {
    text.bytes().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// The text in base64 as far as whole groups go, so that what follows it does not matter.
fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = text.as_bytes().chunks_exact(3);
    groups
        .flat_map(|group| {
            let bits = group
                .iter()
                .fold(0_usize, |bits, byte| (bits << 8) | usize::from(*byte));
            [18, 12, 6, 0].map(|shift| char::from(DIGITS[(bits >> shift) & 63]))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_found_in_each_spelling() {
        assert_eq!(base64("Many hands"), "TWFueSBoYW5k");
        for spelled in [CREDENTIAL.to_owned(), hexadecimal(CREDENTIAL), base64(CREDENTIAL)] {
            let found = std::panic::catch_unwind(|| spotless_bytes("here", format!("x{spelled}x").as_bytes()));
            assert!(found.is_err(), "{spelled}");
        }
        spotless_bytes("here", b"nothing of the kind");
    }
}

//! Credentials of our own making: a public id and 256 random bits, of which only the SHA-256 is kept.

use std::fmt::Write as _;

use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use crate::{digest, secret_value::SecretValue};

/// A fresh credential `<prefix><uuid>_<64 hexadecimal digits>`, and the hash of its secret half.
pub(super) fn issue(prefix: &str, id: Uuid) -> (SecretValue, String) {
    let (value, public) = written(format_args!("{prefix}{}_", id.hyphenated()));
    let hash = digest::hex(&value.as_bytes()[public..]);
    (SecretValue::from(value), hash)
}

/// A fresh credential without a public half, `<prefix><64 hexadecimal digits>`, and its hash.
pub(super) fn issue_unnamed(prefix: &str) -> (SecretValue, String) {
    let (value, _) = written(format_args!("{prefix}"));
    let hash = digest::hex(value.as_bytes());
    (SecretValue::from(value), hash)
}

fn written(public: std::fmt::Arguments<'_>) -> (String, usize) {
    // One buffer of its final length, so that no copy of the secret half stays behind.
    let mut text = String::with_capacity(160);
    let _ = text.write_fmt(public);
    let length = text.len();
    for byte in crate::randomness::secret_bytes() {
        let _ = write!(text, "{byte:02x}");
    }
    (text, length)
}

/// The public id, as text, and the secret half of a presented credential.
pub(super) fn parts<'a>(prefix: &str, presented: &'a str) -> Option<(&'a str, &'a str)> {
    presented.strip_prefix(prefix)?.split_once('_')
}

/// Whether the secret has this hash. Without a hash it takes as long and is false.
pub(super) fn proves(secret: &str, stored: Option<&str>) -> bool {
    let mut expected = [b'0'; 64];
    let known = stored.is_some_and(|stored| stored.len() == expected.len());
    if let Some(stored) = stored.filter(|_| known) {
        expected.copy_from_slice(stored.as_bytes());
    }
    let same: bool = digest::hex(secret.as_bytes()).as_bytes().ct_eq(&expected).into();
    known && same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_proves_its_own_hash_and_no_other() {
        let id = crate::randomness::uuid();
        let (value, hash) = issue("occ_test_", id);
        let (named, secret) = parts("occ_test_", value.expose_str().unwrap()).unwrap();
        assert_eq!(named, id.to_string());
        assert!(proves(secret, Some(&hash)));
        for (secret, stored) in [
            (&secret[1..], Some(hash.as_str())),
            (secret, None),
            (secret, Some("")),
            ("", Some(&hash)),
        ] {
            assert!(!proves(secret, stored), "{secret}");
        }
        let (other, other_hash) = issue_unnamed("occ_code_");
        assert!(proves(other.expose_str().unwrap(), Some(&other_hash)));
        assert_ne!(hash, other_hash);
    }
}

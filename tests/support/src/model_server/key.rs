//! The expected key, kept only as a digest.

use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};

/// What the server saw in a request's `Authorization` header. The header itself is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authorization {
    /// A bearer that equals the expected key.
    Matches,
    /// Something else than the expected key.
    Differs,
    /// No header, although a key is expected.
    Missing,
    /// The server expects no key.
    NotExpected,
}

impl Authorization {
    pub(super) fn is_accepted(self) -> bool {
        matches!(self, Self::Matches | Self::NotExpected)
    }
}

/// A key that can be recognised but not told.
#[derive(Clone)]
pub(super) struct ExpectedKey([u8; 32]);

impl ExpectedKey {
    pub(super) fn new(key: &str) -> Self {
        Self(Sha256::digest(key).into())
    }

    pub(super) fn check(expected: Option<&Self>, headers: &HeaderMap) -> Authorization {
        let Some(Self(digest)) = expected else {
            return Authorization::NotExpected;
        };
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return Authorization::Missing;
        };
        match value.as_bytes().strip_prefix(b"Bearer ") {
            Some(bearer) if Sha256::digest(bearer).as_slice() == digest => Authorization::Matches,
            _ => Authorization::Differs,
        }
    }
}

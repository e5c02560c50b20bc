//! The one type that holds secret bytes.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretSlice};

/// Largest secret value, in bytes (spec/engine 1.6).
pub const SECRET_VALUE_MAX_BYTES: usize = 65_536;

/// Secret bytes: no `Serialize`, no `Display`, a `Debug` that says nothing, zeroed when dropped.
///
/// Whatever must read the bytes calls [`SecretValue::expose`], so that every reading place can be searched for.
#[derive(Clone)]
pub struct SecretValue(SecretSlice<u8>);

/// Why bytes are not a Secret's value. Never holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecretValue {
    /// The value is empty.
    #[error("a secret value must not be empty")]
    Empty,
    /// The value is longer than [`SECRET_VALUE_MAX_BYTES`].
    #[error("a secret value must fit within 65536 bytes")]
    TooLong,
    /// The value is not UTF-8, or contains NUL.
    #[error("a secret value must be UTF-8 text without NUL")]
    NotText,
}

impl SecretValue {
    /// Takes bytes as they are.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(SecretSlice::from(bytes))
    }

    /// Takes a value that a caller supplied: nonempty UTF-8 without NUL, at most 65,536 bytes (spec/engine 1.6).
    pub fn from_caller(bytes: Vec<u8>) -> Result<Self, InvalidSecretValue> {
        let value = Self::new(bytes);
        let bytes = value.expose();
        match bytes {
            [] => Err(InvalidSecretValue::Empty),
            _ if bytes.len() > SECRET_VALUE_MAX_BYTES => Err(InvalidSecretValue::TooLong),
            _ if bytes.contains(&0) || std::str::from_utf8(bytes).is_err() => Err(InvalidSecretValue::NotText),
            _ => Ok(value),
        }
    }

    /// The bytes. Copy them nowhere that outlives their use.
    pub fn expose(&self) -> &[u8] {
        self.0.expose_secret()
    }

    /// The bytes as text, when they are UTF-8.
    pub fn expose_str(&self) -> Option<&str> {
        std::str::from_utf8(self.expose()).ok()
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(..)")
    }
}

impl From<String> for SecretValue {
    fn from(text: String) -> Self {
        Self::new(text.into_bytes())
    }
}

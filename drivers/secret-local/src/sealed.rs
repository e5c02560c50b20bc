//! One sealed value as it is stored.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{AeadInOut as _, Generate as _},
};
use occ_core::{
    driver::SecretIdentity,
    id::{NamespaceId, SecretId},
    secret_value::{SECRET_VALUE_MAX_BYTES, SecretValue},
};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{
    error::Error,
    key_ring::{KeyRing, SealingKey},
};

/// The format that this version writes; older ones stay readable.
const FORMAT: u32 = 1;
const TAG_BYTES: usize = 16;

/// Whose value it is: what the sealed bytes are bound to, besides the key's id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Owner {
    /// The driver instance that sealed it.
    pub driver: String,
    /// The Namespace of the Secret.
    pub namespace: NamespaceId,
    /// The Secret.
    pub secret: SecretId,
}

impl Owner {
    pub fn new(driver_id: &str, secret: &SecretIdentity) -> Self {
        Self {
            driver: driver_id.to_owned(),
            namespace: secret.namespace_id,
            secret: secret.id,
        }
    }
}

/// A record: who owns it in clear, the value sealed.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sealed {
    format: u32,
    /// Whose value it is.
    pub owner: Owner,
    /// Identity of the object: a value that is created anew has another.
    pub uid: String,
    key_id: String,
    nonce: String,
    value: String,
}

impl Sealed {
    /// Seals `value` with the newest key.
    pub fn seal(owner: Owner, uid: String, value: &SecretValue, keys: &KeyRing) -> Result<Self, Error> {
        let bytes = value.expose();
        if bytes.is_empty() || bytes.len() > SECRET_VALUE_MAX_BYTES {
            return Err(Error::Length);
        }
        let key = keys.newest();
        let nonce = XNonce::try_generate().map_err(|_| Error::Unsealable)?;
        let mut buffer = Zeroizing::new(Vec::with_capacity(bytes.len() + TAG_BYTES));
        buffer.extend_from_slice(bytes);
        let bound = binding(&owner, &uid, key.id());
        cipher(key)
            .encrypt_in_place(&nonce, &bound, &mut *buffer)
            .map_err(|_| Error::Unsealable)?;
        Ok(Self {
            format: FORMAT,
            owner,
            uid,
            key_id: key.id().to_owned(),
            nonce: STANDARD.encode(nonce),
            value: STANDARD.encode(&*buffer),
        })
    }

    /// Opens the value with the key that sealed it.
    pub fn open(&self, keys: &KeyRing) -> Result<SecretValue, Error> {
        let key = keys.find(&self.key_id).ok_or(Error::KeyLost)?;
        let nonce: [u8; 24] = STANDARD
            .decode(&self.nonce)
            .ok()
            .and_then(|n| n.try_into().ok())
            .ok_or(Error::Unreadable)?;
        let mut buffer = Zeroizing::new(STANDARD.decode(&self.value).map_err(|_| Error::Unreadable)?);
        let bound = binding(&self.owner, &self.uid, &self.key_id);
        cipher(key)
            .decrypt_in_place(&XNonce::from(nonce), &bound, &mut *buffer)
            .map_err(|_| Error::Altered)?;
        // A copy of exact length: shrinking the buffer instead could leave unwiped bytes behind.
        Ok(SecretValue::new(buffer.as_slice().to_vec()))
    }

    /// The id of the key that sealed the value.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let sealed: Self = serde_json::from_slice(bytes).map_err(|_| Error::Unreadable)?;
        if sealed.format == FORMAT {
            Ok(sealed)
        } else {
            Err(Error::Unreadable)
        }
    }

    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(|_| Error::Unsealable)
    }
}

fn cipher(key: &SealingKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(key.bytes().into())
}

/// What the sealed bytes are bound to. Each part has its length in front, so that no two owners give the same bytes.
fn binding(owner: &Owner, uid: &str, key_id: &str) -> Vec<u8> {
    let Owner {
        driver,
        namespace,
        secret,
    } = owner;
    let parts = [
        "occ-secret-local/1",
        driver,
        &namespace.to_string(),
        &secret.to_string(),
        uid,
        key_id,
    ];
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

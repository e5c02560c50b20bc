//! The keys of a key file: several, so that they can rotate. The newest seals; each opens what it sealed.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chacha20poly1305::{
    XChaCha20Poly1305,
    aead::{Generate as _, Key},
};
use occ_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeroize::Zeroizing;

/// The format that this version writes.
const VERSION: u32 = 1;

/// The operating system gave no random bytes.
#[derive(Debug, Clone, Copy)]
pub struct NoRandomness;

/// One key. Has no `Debug`, and is wiped when dropped.
pub struct SealingKey {
    id: String,
    created_at: Timestamp,
    bytes: Zeroizing<[u8; 32]>,
}

impl SealingKey {
    fn generate(now: Timestamp) -> Result<Self, NoRandomness> {
        let key = Key::<XChaCha20Poly1305>::try_generate().map_err(|_| NoRandomness)?;
        Ok(Self {
            id: Uuid::new_v4().to_string(),
            created_at: now,
            bytes: Zeroizing::new(key.into()),
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }
}

/// The keys, oldest first; never empty.
pub struct KeyRing {
    older: Vec<SealingKey>,
    newest: SealingKey,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    keys: Vec<StoredKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoredKey {
    id: String,
    created_at: Timestamp,
    key: Zeroizing<String>,
}

impl KeyRing {
    pub fn generate(now: Timestamp) -> Result<Self, NoRandomness> {
        Ok(Self {
            older: Vec::new(),
            newest: SealingKey::generate(now)?,
        })
    }

    /// The same keys and a new one, which seals from now on.
    pub fn rotated(mut self, now: Timestamp) -> Result<Self, NoRandomness> {
        self.older
            .push(std::mem::replace(&mut self.newest, SealingKey::generate(now)?));
        Ok(self)
    }

    pub fn newest(&self) -> &SealingKey {
        &self.newest
    }

    pub fn find(&self, id: &str) -> Option<&SealingKey> {
        self.older.iter().chain([&self.newest]).find(|key| key.id == id)
    }

    /// Reads the content of a key file. The error says what is wrong in words that hold nothing of the content.
    pub fn parse(content: &[u8]) -> Result<Self, &'static str> {
        // serde's message is dropped: it could quote a key.
        let stored: Stored = serde_json::from_slice(content).map_err(|_| "it is not a key file's JSON")?;
        if stored.version != VERSION {
            return Err("it was written by another version");
        }
        let mut keys = Vec::with_capacity(stored.keys.len());
        for StoredKey { id, created_at, key } in stored.keys {
            let mut bytes = Zeroizing::new([0; 32]);
            match STANDARD.decode_slice(key.as_bytes(), &mut *bytes) {
                Ok(32) => {}
                _ => return Err("a key is not 32 bytes in base64"),
            }
            if keys.iter().any(|other: &SealingKey| other.id == id) {
                return Err("two keys have one id");
            }
            keys.push(SealingKey { id, created_at, bytes });
        }
        let newest = keys.pop().ok_or("it holds no key")?;
        Ok(Self { older: keys, newest })
    }

    /// The content of the key file.
    pub fn render(&self) -> Zeroizing<Vec<u8>> {
        let keys = self.older.iter().chain([&self.newest]).map(|key| StoredKey {
            id: key.id.clone(),
            created_at: key.created_at,
            key: Zeroizing::new(STANDARD.encode(*key.bytes)),
        });
        let stored = Stored {
            version: VERSION,
            keys: keys.collect(),
        };
        // A buffer that grew would leave unwiped pieces behind.
        let mut content = Zeroizing::new(Vec::with_capacity(64 + 192 * stored.keys.len()));
        serde_json::to_writer(&mut *content, &stored).expect("texts and numbers are always JSON");
        content.push(b'\n');
        content
    }
}

//! One document as it is stored.

use occ_core::{id::NamespaceId, resource::Document};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The format that this version writes; older ones stay readable.
const FORMAT: u32 = 1;

/// A document with what is needed to know that it is the right one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Record {
    format: u32,
    /// The Namespace that owns it.
    pub namespace_id: NamespaceId,
    /// 1 at creation, one more with each update.
    pub generation: u64,
    /// The native document.
    pub document: Document,
}

impl Record {
    pub fn new(namespace_id: NamespaceId, generation: u64, document: Document) -> Self {
        Self {
            format: FORMAT,
            namespace_id,
            generation,
            document,
        }
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let record: Self = serde_json::from_slice(bytes).map_err(|_| Error::Unreadable)?;
        if record.format == FORMAT {
            Ok(record)
        } else {
            Err(Error::Unreadable)
        }
    }

    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(|_| Error::Unwritable)
    }
}

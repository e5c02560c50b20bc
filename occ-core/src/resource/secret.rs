//! Secret: a named reference; the bytes stay with the Secret Driver (spec/engine 1.6).

use serde::{Deserialize, Serialize};

use super::Name;
use crate::{
    id::{NamespaceId, SecretId},
    time::Timestamp,
};

/// Where a Secret Driver keeps a value. A reference, never the value; private, so it is in no response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackendRef {
    /// The backend's own namespace.
    pub namespace_name: String,
    /// The object.
    pub name: String,
    /// The key within the object.
    pub key: String,
    /// The object's identity: a recreated object of the same name has another.
    pub uid: String,
}

/// A Secret's record. Its public view is `occ-api`'s; this one holds the private locator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Secret {
    /// Its id.
    pub id: SecretId,
    /// The Namespace that owns it.
    pub namespace_id: NamespaceId,
    /// Its name, unique in the Namespace.
    pub name: Name,
    /// The Secret Driver (instance id) that stored the value. Another driver never touches it.
    pub driver_id: String,
    /// Where that driver keeps it.
    pub backend_ref: BackendRef,
    /// Grows with each write; says nothing about the value.
    pub version: u64,
    /// Its deletion was begun and not finished: nothing new may refer to it, and only its deletion may be repeated.
    #[serde(default)]
    pub deleting: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

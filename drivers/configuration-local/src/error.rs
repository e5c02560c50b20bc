//! How this driver fails, and what that is to the engine.

use occ_core::driver::{EffectError, Fault, FaultKind};

/// Why a document was not read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The record under this id belongs to another Namespace.
    #[error("the document belongs to another Namespace")]
    Foreign,
    /// Another document is already stored under this id.
    #[error("another document is stored under this id")]
    Exists,
    /// There is no document to update.
    #[error("there is no such document")]
    Missing,
    /// The document has another generation than the caller read.
    #[error("the document has another generation")]
    Stale,
    /// The record is not one that this version wrote, nor an older one.
    #[error("the stored document cannot be read")]
    Unreadable,
    /// The document cannot be written as JSON.
    #[error("the document cannot be stored")]
    Unwritable,
}

impl From<Error> for EffectError {
    fn from(error: Error) -> Self {
        let (operation, kind) = match error {
            Error::Foreign => return Self::Ownership,
            Error::Exists => ("create a Configuration document", FaultKind::Conflict),
            Error::Missing => ("update a Configuration document", FaultKind::Missing),
            Error::Stale => (
                "update a Configuration document of this generation",
                FaultKind::Conflict,
            ),
            Error::Unreadable => ("read a stored Configuration document", FaultKind::Corrupt),
            Error::Unwritable => ("store a Configuration document", FaultKind::Corrupt),
        };
        Fault::new(operation, kind).into()
    }
}

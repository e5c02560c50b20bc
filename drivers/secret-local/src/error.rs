//! How this driver fails, and what that is to the engine.

use std::{
    io,
    path::{Path, PathBuf},
};

use occ_core::{
    driver::{EffectError, Fault, FaultKind},
    registry::BuildError,
};

/// The key file cannot be used. Names the file and what to do, never its content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// It existed and is gone.
    #[error(
        "the key file {path} is gone: restore it from a backup, without it no stored Secret can be read; to begin with a new key and \
         set every Secret anew, remove {path}.made as well",
        path = .0.display()
    )]
    Gone(PathBuf),
    /// The operating system refuses to read it.
    #[error("the key file {} cannot be read ({kind}): make it a file that the control plane's user may read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        kind: io::ErrorKind,
    },
    /// It, or its directory, cannot be written.
    #[error("the key file {} cannot be written ({kind}): let the control plane's user write to its directory, or set keyFile to another path", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        kind: io::ErrorKind,
    },
    /// Others than its owner may read or write it.
    #[error("the key file {} is open to others (mode {mode:04o}): run chmod 600 on it, and rotate the keys if somebody could have read them", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Others than its owner may replace files in its directory.
    #[error("the directory of the key file {} can be written by others (mode {mode:04o}): run chmod 700 on it", path.display())]
    DirectoryExposed {
        /// The file.
        path: PathBuf,
        /// The directory's permission bits.
        mode: u32,
    },
    /// It belongs to another user.
    #[error("the key file {} belongs to another user (uid {owner}): give it to the control plane's user with chown", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The owner's id.
        owner: u32,
    },
    /// It is a directory, a pipe or a device.
    #[error("the key file {} is not a regular file: set keyFile to another path", .0.display())]
    NotAFile(PathBuf),
    /// It is not a key file of this driver.
    #[error("the key file {} is damaged ({what}): restore it from a backup; do not delete it while Secrets exist that it seals", path.display())]
    Garbled {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The operating system gave no random bytes.
    #[error("no key can be made for {}: the operating system gave no random bytes", .0.display())]
    NoRandomness(PathBuf),
}

impl KeyFileError {
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self::Unreadable {
            path: path.to_owned(),
            kind: error.kind(),
        }
    }

    pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Self {
        Self::Unwritable {
            path: path.to_owned(),
            kind: error.kind(),
        }
    }
}

impl From<KeyFileError> for BuildError {
    fn from(error: KeyFileError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<KeyFileError> for EffectError {
    fn from(error: KeyFileError) -> Self {
        let (operation, kind) = match error {
            KeyFileError::Gone(_) => ("read the secret key file: it is gone", FaultKind::Missing),
            KeyFileError::Unreadable { kind, .. } => ("read the secret key file", FaultKind::Io(kind)),
            KeyFileError::Unwritable { kind, .. } => ("write the secret key file", FaultKind::Io(kind)),
            KeyFileError::Exposed { .. } | KeyFileError::DirectoryExposed { .. } => {
                ("use the secret key file: it is open to others", FaultKind::Denied)
            }
            KeyFileError::Foreign { .. } => ("use the secret key file: it belongs to another user", FaultKind::Denied),
            KeyFileError::NotAFile(_) => ("use the secret key file: it is not a regular file", FaultKind::Denied),
            KeyFileError::Garbled { .. } => ("read the secret key file: it is damaged", FaultKind::Corrupt),
            KeyFileError::NoRandomness(_) => ("make a secret key", FaultKind::Unavailable),
        };
        Fault::new(operation, kind).into()
    }
}

/// Why a value was not sealed or opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// The value is empty or longer than a Secret may be.
    #[error("a secret value has 1 to 65536 bytes")]
    Length,
    /// The record, or the reference to it, belongs to another Secret.
    #[error("the record belongs to another Secret")]
    Foreign,
    /// Another value is already stored for this Secret.
    #[error("another value is stored for this Secret")]
    Exists,
    /// There is no value.
    #[error("there is no value")]
    Missing,
    /// The record is not one that this version wrote, nor an older one.
    #[error("the stored record cannot be read")]
    Unreadable,
    /// The key that sealed the value is not in the key file.
    #[error("the key that sealed the value is not in the key file")]
    KeyLost,
    /// The sealed bytes, or what they are bound to, were altered.
    #[error("the sealed value was altered")]
    Altered,
    /// The value could not be sealed.
    #[error("the value could not be sealed")]
    Unsealable,
}

impl From<Error> for EffectError {
    fn from(error: Error) -> Self {
        let (operation, kind) = match error {
            Error::Foreign => return Self::Ownership,
            Error::Length => ("take a secret value: it must have 1 to 65536 bytes", FaultKind::Denied),
            Error::Exists => ("create a secret value: another one is stored", FaultKind::Conflict),
            Error::Missing => ("find a secret value", FaultKind::Missing),
            Error::Unreadable => ("read a sealed secret value", FaultKind::Corrupt),
            Error::KeyLost => ("open a secret value: its key is not in the key file", FaultKind::Denied),
            Error::Altered => ("open a secret value: it was altered", FaultKind::Corrupt),
            Error::Unsealable => ("seal a secret value", FaultKind::Unavailable),
        };
        Fault::new(operation, kind).into()
    }
}

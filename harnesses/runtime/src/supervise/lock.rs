//! One supervisor an Agent's component.

use std::{
    fs::{File, TryLockError},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use crate::identity::ProcessIdentity;

/// The lock, held for as long as this value lives; the kernel frees it when the process dies.
pub struct Lock {
    _file: File,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum NotLocked {
    /// A living supervisor holds it.
    #[error("another supervisor runs this component")]
    Held(Option<ProcessIdentity>),
    /// The file cannot be used.
    #[error("the lock file cannot be used: {0}")]
    Io(#[from] io::Error),
}

impl Lock {
    /// Takes the lock and writes this process's identity into it.
    pub fn take(path: &Path, own: &ProcessIdentity) -> Result<Self, NotLocked> {
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            // The text may be an earlier holder's for the moment in which the new one has locked and not written yet.
            Err(TryLockError::WouldBlock) => {
                return Err(NotLocked::Held(
                    ProcessIdentity::read(path).filter(ProcessIdentity::is_alive),
                ));
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        // In place: a renamed file would be another one than the one that is locked.
        file.set_len(0)?;
        file.write_all(&serde_json::to_vec(own).map_err(io::Error::other)?)?;
        Ok(Self { _file: file })
    }
}

/// The lock that the keepers hold while a process of the component lives.
pub fn tree_lock(lock: &str) -> PathBuf {
    format!("{lock}.tree").into()
}

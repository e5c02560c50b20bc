//! One operation at a time on one directory, over threads and processes.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use crate::{
    error::{Error, Result},
    storage,
};

/// An exclusive lock on a directory. An operation whose lease lapsed may still be running when the next one starts; the lock
/// makes the next one wait. The kernel frees it when the process dies.
#[derive(Debug)]
pub(crate) struct Guard {
    _dir: File,
}

impl Guard {
    /// Waits for the directory; `None` when it does not exist. Operations hold it shortly: none of them waits for a workload.
    pub(crate) fn enter(dir: &Path) -> Result<Option<Self>> {
        loop {
            let file = match File::open(dir) {
                Ok(file) => file,
                Err(error) if storage::absent(&error) => return Ok(None),
                Err(error) => return Err(Error::storage("open a directory")(error)),
            };
            file.lock().map_err(Error::storage("lock a directory"))?;
            let locked = file.metadata().map_err(Error::storage("look at a directory"))?;
            match fs::metadata(dir) {
                Ok(named) if (named.dev(), named.ino()) == (locked.dev(), locked.ino()) => {
                    return Ok(Some(Self { _dir: file }));
                }
                // It lost its name while this waited; another directory may have it now.
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_lost_its_name_is_not_entered() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent");
        fs::create_dir(&path).unwrap();
        let held = Guard::enter(&path).unwrap().unwrap();
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || Guard::enter(&path).map(|guard| guard.is_some())
        });
        fs::rename(&path, dir.path().join("gone")).unwrap();
        drop(held);
        assert_eq!(waiting.join().unwrap(), Ok(false));
    }
}

//! The key file on disk: made once, replaced whole, read by its owner alone.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use occ_core::time::Timestamp;
use rustix::fs::{Access, OFlags};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::{
    error::KeyFileError,
    key_ring::{KeyRing, NoRandomness},
};

/// A key file of a hundred keys has a fifth of this.
const MAX_BYTES: u64 = 64 * 1024;

/// A key file. It is read for each use: a key that is no longer on disk must not seal anything.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    /// Whether this process has seen the file. What vanished after that is never made anew: it sealed values.
    seen: AtomicBool,
}

impl KeyFile {
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            seen: AtomicBool::new(false),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks, and writes nothing: the file is usable, or can be made.
    pub fn check(&self) -> Result<(), KeyFileError> {
        if self.read()?.is_some() {
            return Ok(());
        }
        if self.was_made()? {
            return Ok(());
        }
        let existing = self.path.ancestors().skip(1).find(|directory| directory.exists());
        let directory = existing.unwrap_or(Path::new("."));
        rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|error| KeyFileError::unwritable(&self.path, &error.into()))
    }

    /// The keys; makes the file if it never existed.
    pub fn ensure(&self, now: Timestamp) -> Result<KeyRing, KeyFileError> {
        if let Some(ring) = self.read()? {
            self.remember()?;
            return Ok(ring);
        }
        if self.seen.load(Ordering::Relaxed) {
            return Err(KeyFileError::Gone(self.path.clone()));
        }
        if self.was_made()? {
            return self.load();
        }
        let ring = KeyRing::generate(now).map_err(|error| self.no_randomness(error))?;
        self.write(&ring, Placement::IfAbsent)?;
        // Another process may have been quicker: what is on disk counts.
        let ring = self.load()?;
        self.remember()?;
        Ok(ring)
    }

    /// Whether another process has made the file since this one looked; an error when it was made and is gone.
    fn was_made(&self) -> Result<bool, KeyFileError> {
        if !self.marker().exists() {
            return Ok(false);
        }
        // The mark comes after the file: whoever sees it sees the file too, if it is still there.
        self.load().map(|_| true)
    }

    /// Says beside the file that it was made, for processes that never saw it.
    fn remember(&self) -> Result<(), KeyFileError> {
        let marker = self.marker();
        if marker.exists() {
            return Ok(());
        }
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(marker)
            .and_then(|file| file.sync_all())
            .and_then(|()| File::open(self.directory())?.sync_all())
            .map_err(|error| KeyFileError::unwritable(&self.path, &error))
    }

    fn marker(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".made");
        self.path.with_file_name(name)
    }

    /// The keys; never makes the file.
    pub fn load(&self) -> Result<KeyRing, KeyFileError> {
        self.read()?.ok_or_else(|| KeyFileError::Gone(self.path.clone()))
    }

    /// Adds a key, which seals from now on. Returns its id.
    pub fn rotate(&self, now: Timestamp) -> Result<String, KeyFileError> {
        let unwritable = |error: io::Error| KeyFileError::unwritable(&self.path, &error);
        let directory = File::open(self.directory()).map_err(unwritable)?;
        // Held until the directory is closed: two rotations add two keys.
        directory.lock().map_err(unwritable)?;
        let ring = self.load()?.rotated(now).map_err(|error| self.no_randomness(error))?;
        self.write(&ring, Placement::Replace)?;
        Ok(ring.newest().id().to_owned())
    }

    fn directory(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    fn no_randomness(&self, _: NoRandomness) -> KeyFileError {
        KeyFileError::NoRandomness(self.path.clone())
    }

    fn read(&self) -> Result<Option<KeyRing>, KeyFileError> {
        let unreadable = |error: io::Error| KeyFileError::unreadable(&self.path, &error);
        // A pipe in its place must not block.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        self.guard(&file)?;
        let mut content = Zeroizing::new(Vec::with_capacity(8 * 1024));
        file.take(MAX_BYTES + 1).read_to_end(&mut content).map_err(unreadable)?;
        let garbled = |what| KeyFileError::Garbled {
            path: self.path.clone(),
            what,
        };
        if content.len() as u64 > MAX_BYTES {
            return Err(garbled("it is too long"));
        }
        let ring = KeyRing::parse(&content).map_err(garbled)?;
        self.seen.store(true, Ordering::Relaxed);
        Ok(Some(ring))
    }

    /// Refuses a file that others can read, write or replace.
    fn guard(&self, file: &File) -> Result<(), KeyFileError> {
        let path = || self.path.clone();
        let unreadable = |error: io::Error| KeyFileError::unreadable(&self.path, &error);
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(KeyFileError::NotAFile(path()));
        }
        let mode = metadata.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(KeyFileError::Exposed { path: path(), mode });
        }
        let owner = metadata.uid();
        if owner != 0 && owner != rustix::process::geteuid().as_raw() {
            return Err(KeyFileError::Foreign { path: path(), owner });
        }
        let mode = fs::metadata(self.directory()).map_err(unreadable)?.mode() & 0o7777;
        // With the sticky bit (as /tmp has), others can add files but not replace this one.
        if mode & 0o022 != 0 && mode & 0o1000 == 0 {
            return Err(KeyFileError::DirectoryExposed { path: path(), mode });
        }
        Ok(())
    }

    /// Writes a whole file beside the real one, makes it durable, and only then gives it its name.
    fn write(&self, ring: &KeyRing, placement: Placement) -> Result<(), KeyFileError> {
        let unwritable = |error: io::Error| KeyFileError::unwritable(&self.path, &error);
        let directory = self.directory();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(unwritable)?;
        let draft = Draft(directory.join(format!(".keys-{}.new", Uuid::new_v4())));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft.0)
            .map_err(unwritable)?;
        file.write_all(&ring.render())
            .and_then(|()| file.sync_all())
            .map_err(unwritable)?;
        let placed = match placement {
            Placement::Replace => fs::rename(&draft.0, &self.path),
            // A link never replaces: of two processes that race, one finds the other's file.
            Placement::IfAbsent => match fs::hard_link(&draft.0, &self.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            },
        };
        placed
            .and_then(|()| File::open(directory)?.sync_all())
            .map_err(unwritable)
    }
}

#[derive(Clone, Copy)]
enum Placement {
    IfAbsent,
    Replace,
}

/// A file that has no name of its own yet; removed when dropped, if it is still there.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

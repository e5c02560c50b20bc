//! Files directly inside a workspace, reached through its own descriptor so that no link leads out of it.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::fd::OwnedFd,
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags},
    io::Errno,
};

/// Longest text that is compared, in bytes: what is longer is neither stock nor submitted.
const MAX_BYTES: u64 = 64 * 1024;
/// What a write goes to before it is renamed. One name: whoever holds the supervisor's lock is alone here.
const TEMPORARY: &str = ".oce-workspace-setup.tmp";

/// An open workspace.
pub struct Workspace(OwnedFd);

/// What stands under a name.
pub enum Entry {
    /// Nothing.
    Absent,
    /// A regular file with one name.
    Text(Vec<u8>),
    /// A link, a file with further names, a directory, a device, or a file that is too long to be ours.
    Irregular,
}

impl Workspace {
    /// Opens the directory, and makes it when it is absent. `None` when something else stands there.
    pub fn open(path: &str) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(CWD, path, flags, Mode::empty());
        let opened = match open() {
            Err(Errno::NOENT) => {
                fs::create_dir(path)?;
                open()
            }
            opened => opened,
        };
        match opened {
            Ok(directory) => Ok(Some(Self(directory))),
            Err(Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What stands under this name.
    pub fn read(&self, name: &str) -> io::Result<Entry> {
        // Without NONBLOCK a pipe of this name would be waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Entry::Absent),
            // A symbolic link, a socket, a device without a driver.
            Err(Errno::LOOP | Errno::NXIO | Errno::NODEV) => return Ok(Entry::Irregular),
            Err(error) => return Err(error.into()),
        };
        let found = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || found.st_nlink != 1 {
            return Ok(Entry::Irregular);
        }
        let mut text = Vec::new();
        File::from(file).take(MAX_BYTES + 1).read_to_end(&mut text)?;
        Ok(if text.len() as u64 > MAX_BYTES {
            Entry::Irregular
        } else {
            Entry::Text(text)
        })
    }

    /// Puts a text under this name, whole or not at all, also when the machine fails meanwhile.
    pub fn write(&self, name: &str, text: &[u8]) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.0, TEMPORARY, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&self.0, TEMPORARY, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(text)?;
        file.sync_all()?;
        rustix::fs::renameat(&self.0, TEMPORARY, &self.0, name)?;
        rustix::fs::fsync(&self.0)?;
        Ok(())
    }
}

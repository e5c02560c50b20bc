//! Private directories and files that are whole or absent, also after a crash.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

use crate::error::{Error, Result};

/// Makes a directory that its owner alone can enter; an existing one is well, a link in its place is not.
pub(crate) fn private_dir(path: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => sync_parent(path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(path).map_err(Error::storage("look at a directory"))?;
            if found.is_dir() { Ok(()) } else { Err(Error::Foreign) }
        }
        Err(error) => Err(Error::storage("make a directory")(error)),
    }
}

/// Makes the directory and those above it, each private if it is new.
pub(crate) fn private_dirs(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        private_dirs(parent)?;
    }
    private_dir(path)
}

/// Replaces the file as a whole: a reader or a crash sees the old content or the new.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<()> {
    replace(path, content, 0o600)
}

/// The same for a file that nobody should change in place.
pub(crate) fn write_read_only(path: &Path, content: &[u8]) -> Result<()> {
    replace(path, content, 0o400)
}

fn replace(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    let temporary = write_beside(path, content, mode)?;
    fs::rename(&temporary, path).map_err(Error::storage("replace a file"))?;
    sync_parent(path)
}

/// Creates the file as a whole; `false` when one of this name exists, which stays as it is.
pub(crate) fn create(path: &Path, content: &[u8]) -> Result<bool> {
    let temporary = write_beside(path, content, 0o600)?;
    // A link is refused when the name is taken, unlike a rename; and it appears with its whole content.
    let linked = fs::hard_link(&temporary, path);
    let removed = fs::remove_file(&temporary);
    match linked {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(Error::storage("create a file")(error)),
    }
    removed.map_err(Error::storage("remove a temporary file"))?;
    sync_parent(path)?;
    Ok(true)
}

fn write_beside(path: &Path, content: &[u8], mode: u32) -> Result<std::path::PathBuf> {
    let temporary = crate::naming::unfinished(path);
    // One writer at a time (the Agent's guard): what is left here is of a call that was cut off.
    remove_file(&temporary)?;
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&temporary)?;
        file.write_all(content)?;
        file.sync_all()
    })();
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        Error::storage("write a file")(error)
    })?;
    Ok(temporary)
}

/// Whether there is room for a small file beside this one, and leave to write it.
pub(crate) fn trial(path: &Path) -> Result<()> {
    let temporary = write_beside(path, &[0; 4096], 0o600)?;
    fs::remove_file(&temporary).map_err(Error::storage("remove a temporary file"))
}

/// The file's content, if it exists and is a regular file of at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path);
    let file = match open {
        Ok(file) => file,
        Err(error) if absent(&error) => return Ok(None),
        Err(error) => return Err(Error::storage("open a file")(error)),
    };
    let mut content = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut content)
        .map_err(Error::storage("read a file"))?;
    if content.len() as u64 > limit {
        Err(Error::Foreign)
    } else {
        Ok(Some(content))
    }
}

/// Removes the file; absent is well.
pub(crate) fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if !absent(&error) => Err(Error::storage("remove a file")(error)),
        _ => Ok(()),
    }
}

/// Removes the directory and all in it, following no link; absent is well.
pub(crate) fn remove_tree(path: &Path) -> Result<()> {
    let failed = match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            // An Agent may have taken write or search permission from its own directories.
            open_up(path);
            fs::remove_dir_all(path)
        }
        other => other,
    };
    match failed {
        Err(error) if !absent(&error) => Err(Error::storage("remove a directory")(error)),
        _ => Ok(()),
    }
}

fn open_up(path: &Path) {
    let _ = fs::set_permissions(path, Permissions::from_mode(0o700));
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// Makes a change of `path`'s name durable.
pub(crate) fn sync_parent(path: &Path) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    File::open(parent)
        .and_then(|dir| dir.sync_all())
        .map_err(Error::storage("sync a directory"))
}

/// The names in a directory; none when it does not exist.
pub(crate) fn names(path: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(Error::storage("list a directory")(error)),
    };
    let names: io::Result<Vec<_>> = entries
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect();
    names.map_err(Error::storage("list a directory"))
}

/// Whether the error says that there is nothing.
pub(crate) fn absent(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_created_file_is_private_and_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        assert_eq!(create(&path, b"first"), Ok(true));
        assert_eq!(create(&path, b"second"), Ok(false));
        assert_eq!(read(&path, 100), Ok(Some(b"first".to_vec())));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names(dir.path()), Ok(vec!["password".to_owned()]));
    }

    #[test]
    fn what_a_cut_off_write_left_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("marker.json");
        fs::write(crate::naming::unfinished(&path), b"hal").unwrap();
        assert_eq!(write(&path, b"whole"), Ok(()));
        assert_eq!(read(&path, 100), Ok(Some(b"whole".to_vec())));
        assert_eq!(names(dir.path()), Ok(vec!["marker.json".to_owned()]));
    }

    #[test]
    fn links_are_not_followed_and_large_files_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, b"12345").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(read(&link, 100).is_err());
        assert_eq!(read(&target, 4), Err(Error::Foreign));
        assert_eq!(private_dir(&link), Err(Error::Foreign));
        assert_eq!(read(&dir.path().join("absent"), 4), Ok(None));
    }

    #[test]
    fn a_tree_goes_even_if_its_owner_locked_it() {
        let dir = tempfile::tempdir().unwrap();
        let locked = dir.path().join("tree/locked");
        fs::create_dir_all(&locked).unwrap();
        fs::write(locked.join("file"), b"x").unwrap();
        fs::set_permissions(&locked, Permissions::from_mode(0o000)).unwrap();
        assert_eq!(remove_tree(&dir.path().join("tree")), Ok(()));
        assert_eq!(remove_tree(&dir.path().join("tree")), Ok(()));
        assert_eq!(names(dir.path()), Ok(vec![]));
    }
}

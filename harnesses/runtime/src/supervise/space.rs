//! Whether there is room to write.

use std::{
    io::{ErrorKind, Write as _},
    path::Path,
};

/// Less room than this, in bytes, is none: a program that starts writes more.
const LEAST: usize = 64 * 1024;

/// Whether hardly anything can be written below this directory any more. It is tried out: a quota shows in no statistics of the
/// file system. What cannot be tried out is not called full.
pub fn is_full(directory: &Path) -> bool {
    let written = tempfile::tempfile_in(directory).and_then(|mut file| {
        file.write_all(&vec![0; LEAST])?;
        file.sync_all()
    });
    written.is_err_and(|error| matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
}

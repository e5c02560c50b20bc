//! Key files: one line, readable by their owner alone.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use occ_core::secret_value::SecretValue;

use crate::exit::{Done, Failure};

/// Longer than any key.
const MAX_BYTES: u64 = 4096;

/// Reads a service key. A file that others can read is refused: the key in it is not secret any more.
pub(crate) fn read_key(path: &Path) -> Done<SecretValue> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(format!(
            "there is no key file {shown}: start `occ up` once, or name one with --key-file"
        )),
        io::ErrorKind::PermissionDenied => Failure::usage(format!("the key file {shown} may not be read by you")),
        kind => Failure::usage(format!("cannot read the key file {shown}: {kind}")),
    })?;
    let metadata = file
        .metadata()
        .map_err(|error| Failure::usage(format!("cannot read the key file {shown}: {}", error.kind())))?;
    if !metadata.is_file() {
        return Err(Failure::usage(format!("{shown} is not a file")));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(Failure::usage(format!(
            "the key file {shown} is open to others: run `chmod 600 {shown}`, and replace the key if it was shared"
        )));
    }
    let mut text = String::new();
    let read = file.take(MAX_BYTES).read_to_string(&mut text);
    let key = text.trim();
    if read.is_err() || key.is_empty() || key.contains(char::is_whitespace) || key.contains(char::is_control) {
        return Err(Failure::usage(format!(
            "the key file {shown} does not hold one service key"
        )));
    }
    Ok(SecretValue::from(key.to_owned()))
}

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
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    let key = text.trim();
    let whole = read.is_ok_and(|length| length as u64 <= MAX_BYTES);
    if !whole || key.is_empty() || key.contains(char::is_whitespace) || key.contains(char::is_control) {
        return Err(Failure::usage(format!(
            "the key file {shown} does not hold one service key"
        )));
    }
    Ok(SecretValue::from(key.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        path::PathBuf,
    };

    use super::*;
    use crate::exit::Exit;

    const KEY: &str = "occ_canary";

    fn file(dir: &tempfile::TempDir, content: &[u8], mode: u32) -> PathBuf {
        let path = dir.path().join("key");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn refused(path: &Path) -> String {
        let failure = read_key(path).expect_err("this is no key file");
        assert_eq!(failure.exit(), Exit::Usage);
        let message = failure.to_string();
        assert!(message.contains(&path.display().to_string()), "{message}");
        assert!(!message.contains("canary"), "{message}");
        message
    }

    #[test]
    fn a_key_is_the_one_line_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        for mode in [0o600, 0o400] {
            let path = file(&dir, format!("{KEY}\n").as_bytes(), mode);
            assert_eq!(read_key(&path).unwrap().expose(), KEY.as_bytes());
            fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for mode in [0o640, 0o604, 0o620, 0o601] {
            let message = refused(&file(&dir, KEY.as_bytes(), mode));
            assert!(message.contains("chmod 600"), "{message}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused_without_showing_it() {
        let dir = tempfile::tempdir().unwrap();
        for content in [
            &b""[..],
            b"\n",
            b"canary canary",
            b"canary\ncanary",
            b"can\0ary",
            &[0xff, 0xfe],
        ] {
            refused(&file(&dir, content, 0o600));
        }
        refused(&file(&dir, &[b'x'; 5000], 0o600));
        refused(dir.path());
        assert!(refused(&dir.path().join("none")).contains("occ up"));
    }
}

//! What commands read: native documents, and values that no argument may hold.

use std::{
    fs::File,
    io::{self, IsTerminal as _, Read, Write as _},
    path::Path,
};

use console::Term;
use occ_core::{
    resource::Document,
    secret_value::{SECRET_VALUE_MAX_BYTES, SecretValue},
};
use serde_json::value::{RawValue, to_raw_value};

use crate::exit::{Done, Failure};

/// More than the API takes: what is longer is refused there, in its words.
const DOCUMENT_MAX_BYTES: u64 = 1024 * 1024;

/// A native document: JSON or YAML, from a file or, for `-`, from standard input.
///
/// JSON is passed on as it is written: what is wrong with it beyond its form, such as a name that is there twice, is the API's
/// to refuse.
pub(crate) fn document(path: &Path) -> Done<Box<RawValue>> {
    let text = text(path)?;
    if text.trim().is_empty() {
        return Err(Failure::usage(format!(
            "{} is empty: expected a document, as JSON or YAML",
            path.display()
        )));
    }
    if serde_json::from_str::<Document>(&text).is_ok() {
        return RawValue::from_string(text).map_err(Failure::usage);
    }
    let document = serde_saphyr::from_str::<Document>(&text).map_err(|error| {
        let at = error.location();
        let place = at.map_or_else(String::new, |at| format!(":{}:{}", at.line(), at.column()));
        // The error may quote the document; where it is wrong is enough.
        Failure::usage(format!(
            "{}{place}: this is not a document: expected an object, as JSON or YAML",
            path.display()
        ))
    })?;
    to_raw_value(&document).map_err(Failure::usage)
}

/// A text file, or standard input for `-`.
pub(crate) fn text(path: &Path) -> Done<String> {
    let shown = path.display();
    let failed = |error: &io::Error| Failure::usage(format!("cannot read {shown}: {}", error.kind()));
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().take(DOCUMENT_MAX_BYTES + 1).read_to_string(&mut text)
    } else {
        let file = File::open(path).map_err(|error| failed(&error))?;
        file.take(DOCUMENT_MAX_BYTES + 1).read_to_string(&mut text)
    };
    match read {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(Failure::usage(format!("{shown} is not UTF-8 text")))
        }
        Err(error) => Err(failed(&error)),
        Ok(_) if text.len() as u64 > DOCUMENT_MAX_BYTES => Err(Failure::usage(format!("{shown} is larger than 1 MiB"))),
        Ok(_) => Ok(text),
    }
}

/// A Secret's value: from the file, else from standard input; a terminal asks for it without showing it.
pub(crate) fn secret(file: Option<&Path>) -> Done<SecretValue> {
    let bytes = match file {
        Some(path) if path != Path::new("-") => {
            let failed =
                |error: &io::Error| Failure::usage(format!("cannot read {}: {}", path.display(), error.kind()));
            read_value(File::open(path).map_err(|error| failed(&error))?).map_err(|error| failed(&error))?
        }
        _ if io::stdin().is_terminal() => {
            let _ = write!(io::stderr(), "Value (not shown): ");
            let line = Term::stderr().read_secure_line();
            line.map_err(|error| Failure::usage(format!("cannot read the value: {}", error.kind())))?
                .into_bytes()
        }
        _ => read_value(io::stdin())
            .map_err(|error| Failure::usage(format!("cannot read the value from standard input: {}", error.kind())))?,
    };
    SecretValue::from_caller(bytes).map_err(Failure::usage)
}

/// All of it, without the line break that editors and `echo` put at the end.
fn read_value(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(SECRET_VALUE_MAX_BYTES as u64 + 3).read_to_end(&mut bytes)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use serde_json::json;

    use super::*;

    fn file(dir: &tempfile::TempDir, content: &[u8]) -> PathBuf {
        let path = dir.path().join("input");
        fs::write(&path, content).unwrap();
        path
    }

    #[test]
    fn a_document_is_json_or_yaml() {
        let dir = tempfile::tempdir().unwrap();
        let expected = json!({ "gateway": { "mode": "local", "port": 1 }, "list": [true, null] });
        for text in [
            r#"{"gateway":{"mode":"local","port":1},"list":[true,null]}"#,
            "gateway:\n  mode: local\n  port: 1\nlist: [true, null]\n",
        ] {
            let read = document(&file(&dir, text.as_bytes())).unwrap();
            assert_eq!(serde_json::from_str::<serde_json::Value>(read.get()).unwrap(), expected);
        }
    }

    #[test]
    fn json_is_passed_on_as_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"{"a": 1, "a": 1.0, "b": 12345678901234567890123}"#;
        assert_eq!(document(&file(&dir, text.as_bytes())).unwrap().get(), text);
    }

    #[test]
    fn a_wrong_document_says_where_and_not_what() {
        let dir = tempfile::tempdir().unwrap();
        for text in [
            "canary",
            "[canary]",
            "a: 1\nb: {canary\n",
            "{\"a\": canary",
            "a: canary\na: canary\n",
        ] {
            let path = file(&dir, text.as_bytes());
            let message = document(&path).unwrap_err().to_string();
            assert!(message.starts_with(&path.display().to_string()), "{message}");
            assert!(!message.contains("canary"), "{message}");
        }
        let message = document(&file(&dir, &[0xff, 0xfe])).unwrap_err().to_string();
        assert!(message.contains("not UTF-8"), "{message}");
    }

    #[test]
    fn a_value_loses_one_line_break_and_nothing_else() {
        for (content, value) in [
            (&b"v"[..], &b"v"[..]),
            (b"v\n", b"v"),
            (b"v\r\n", b"v"),
            (b"v\n\n", b"v\n"),
            (b" v \n", b" v "),
            (b"v\r", b"v\r"),
        ] {
            assert_eq!(read_value(content).unwrap(), value);
        }
    }

    #[test]
    fn a_value_that_no_secret_can_have_is_refused_without_repeating_it() {
        let dir = tempfile::tempdir().unwrap();
        let long = vec![b'x'; SECRET_VALUE_MAX_BYTES + 1];
        for content in [&b""[..], b"\n", b"can\0ary", &[b'c', 0xff], &long] {
            let message = secret(Some(&file(&dir, content))).unwrap_err().to_string();
            assert!(message.contains("a secret value must"), "{message}");
            assert!(!message.contains("can"), "{message}");
        }
        let whole = vec![b'x'; SECRET_VALUE_MAX_BYTES];
        assert!(secret(Some(&file(&dir, &whole))).is_ok());
    }
}

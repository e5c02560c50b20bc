//! serde's messages in an operator's words, without the value that they quote.

use std::fmt::Write as _;

use serde_path_to_error::{Path, Segment};

/// The path as a JSON pointer.
pub(super) fn pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        let _ = match segment {
            Segment::Seq { index } => write!(pointer, "/{index}"),
            Segment::Map { key: name } | Segment::Enum { variant: name } => {
                write!(pointer, "/{}", name.replace('~', "~0").replace('/', "~1"))
            }
            Segment::Unknown => break,
        };
    }
    pointer
}

/// `invalid type: string "hunter2", expected u16` becomes `expected an integer from 0 to 65535`.
///
/// Only serde's own messages are read, and only the part after their last `, expected `, which types write and values do not
/// reach. What a type says in words of its own may repeat its input and is dropped.
pub(super) fn value_free(message: &str) -> String {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| message.starts_with(prefix));
    let expected = message.rsplit_once(", expected ").map(|(_, expected)| expected);
    match expected {
        Some(expected) if begins(&["invalid type: ", "invalid value: ", "invalid length "]) => {
            format!("expected {}", plain(expected))
        }
        Some(expected) if begins(&["unknown variant `"]) => format!("expected {expected}"),
        Some(expected) if begins(&["unknown field `"]) => {
            format!(
                "unknown setting; accepted: {}",
                expected.strip_prefix("one of ").unwrap_or(expected)
            )
        }
        None if begins(&["unknown field `"]) => "unknown setting; none is accepted here".to_owned(),
        None if begins(&["missing field `"]) => message.replacen("field", "setting", 1),
        _ => "the value is not accepted".to_owned(),
    }
}

/// Rust's words for a type in YAML's.
fn plain(expected: &str) -> &str {
    match expected {
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" => "an integer from 0 to 4294967295",
        "u64" | "usize" => "an integer from 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer",
        "f32" | "f64" => "a number",
        "a string" | "a borrowed string" | "string" => "a text",
        "a map" => "a mapping",
        "a sequence" => "a list",
        "a nonzero u8" | "a nonzero u16" | "a nonzero u32" | "a nonzero u64" | "a nonzero usize" => {
            "an integer above 0"
        }
        _ if expected.starts_with("struct ") || expected.starts_with("internally tagged enum ") => "a mapping",
        _ if expected.starts_with("enum ") => "a text or a mapping with one key",
        _ => expected,
    }
}

#[cfg(test)]
mod tests {
    use super::value_free;

    #[test]
    fn a_message_keeps_what_is_accepted_and_loses_the_value() {
        for (message, words) in [
            (
                "invalid type: string \"hunter2\", expected u16",
                "expected an integer from 0 to 65535",
            ),
            (
                "invalid type: string \"a, expected b\", expected a boolean",
                "expected a boolean",
            ),
            (
                "invalid value: integer `70000`, expected u16",
                "expected an integer from 0 to 65535",
            ),
            (
                "invalid length 0, expected struct Settings with 2 elements",
                "expected a mapping",
            ),
            (
                "unknown variant `hunter2`, expected `on` or `off`",
                "expected `on` or `off`",
            ),
            (
                "unknown field `prt`, expected `port`",
                "unknown setting; accepted: `port`",
            ),
            (
                "unknown field `a, b`, expected one of `x`, `y`",
                "unknown setting; accepted: `x`, `y`",
            ),
            (
                "unknown field `x`, there are no fields",
                "unknown setting; none is accepted here",
            ),
            ("missing field `port`", "missing setting `port`"),
            ("hunter2 is no colour", "the value is not accepted"),
            (
                "invalid colour: expected red, found hunter2",
                "the value is not accepted",
            ),
            (
                "data did not match any variant of untagged enum Place",
                "the value is not accepted",
            ),
        ] {
            assert_eq!(value_free(message), words);
        }
    }
}

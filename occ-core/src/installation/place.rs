//! Where something stands in an Installation file.

use std::fmt;

use super::credential;

/// A line and a column, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl Position {
    pub(super) const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A file, a position in it, and the path of the setting there: `occ.yaml:12:7: drivers.compute.configuration.tools.node`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named by whoever gave it.
    pub file: String,
    /// The position.
    pub position: Position,
    /// The path; empty for the document as a whole.
    pub path: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.position)?;
        if self.path.is_empty() {
            Ok(())
        } else {
            write!(f, ": {}", self.path)
        }
    }
}

/// The path of a setting, built key by key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Path(String);

impl Path {
    const KEY_MAX_CHARS: usize = 64;

    /// The path of `key` below this one. A key that is not plainly a name is not repeated: it may be a value in the wrong place.
    pub(super) fn key(&self, key: &str) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        let shown =
            (1..=Self::KEY_MAX_CHARS).contains(&key.len()) && key.chars().all(plain) && !credential::is_one(key);
        let quoted = key.contains(['.', '/']);
        Self(match (shown, quoted) {
            (false, _) => format!("{}[?]", self.0),
            (true, true) => format!("{}[\"{key}\"]", self.0),
            (true, false) if self.0.is_empty() => key.to_owned(),
            (true, false) => format!("{}.{key}", self.0),
        })
    }

    /// The path of the item with this index, counted from 0.
    pub(super) fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn at(self, file: &str, position: Position) -> Place {
        Place {
            file: file.to_owned(),
            position,
            path: self.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_like_the_file() {
        let path = Path::default()
            .key("drivers")
            .key("harness")
            .index(1)
            .key("configuration")
            .key("a.b/c");
        assert_eq!(path.as_str(), "drivers.harness[1].configuration[\"a.b/c\"]");
    }

    #[test]
    fn a_key_that_is_no_name_is_not_repeated() {
        for key in [
            "",
            "two words",
            "line\nbreak",
            "\u{1b}[31m",
            &"k".repeat(65),
            "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        ] {
            assert_eq!(Path::default().key("labels").key(key).as_str(), "labels[?]");
        }
    }
}

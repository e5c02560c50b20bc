//! What can be wrong in an Installation file.

use super::Position;

/// What is wrong at a place, and what is accepted there. Holds no value of the file: most variants hold static words only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is not YAML.
    #[error("not well-formed YAML: {0}")]
    Syntax(String),
    /// There is no document in it.
    #[error("the file is empty; an Installation file has at least the key `drivers`")]
    Empty,
    /// A second document begins.
    #[error("a second document begins here; an Installation file is one document")]
    ManyDocuments,
    /// An anchor, an alias or a merge key.
    #[error("anchors, aliases and merge keys are not accepted: write the value where it is used")]
    Alias,
    /// A tag.
    #[error("tags are not accepted: write the value without one")]
    Tag,
    /// The document is nested too deeply.
    #[error("nested too deeply: at most {0} levels are accepted")]
    TooDeep(usize),
    /// The document has too many parts.
    #[error("too many values: at most {0} are accepted")]
    TooMany(usize),
    /// A key is something else than a text.
    #[error("a key must be a text: put it in quotes")]
    KeyNotText,
    /// A key is there twice.
    #[error("this key was already given at line {}", .first.line)]
    DuplicateKey {
        /// Where it was first.
        first: Position,
    },
    /// A number that not every reader of the file understands alike, or none at all.
    #[error(
        "the number cannot be read exactly: accepted are finite numbers, and integers within ±9007199254740991; put longer ones in quotes"
    )]
    UnsafeNumber,
    /// A text with NUL in it.
    #[error("NUL is not accepted in a text")]
    Nul,
    /// The key, or the value itself, says that this is a credential (spec/contracts 2.5).
    #[error(
        "this looks like a plaintext credential, and an Installation file holds none: \
         keep it in a file that only its owner can read, and give the path in a setting that is made for it"
    )]
    Credential,
    /// A key that has no place anywhere in an Installation file (spec/contracts 2.5).
    #[error("this key is not accepted anywhere in an Installation file: {0}")]
    Reserved(&'static str),
    /// A key that is not among the accepted ones.
    #[error("unknown key; keys here: {0}")]
    UnknownKey(&'static str),
    /// A key of the specification that this version does not support.
    #[error("not supported by this version of OCC yet; remove it; keys here: {0}")]
    Unsupported(&'static str),
    /// A key is missing.
    #[error("this key is missing; keys here: {0}")]
    Missing(&'static str),
    /// A value of the wrong type.
    #[error("expected {expected}, found {found}")]
    Type {
        /// What is accepted.
        expected: &'static str,
        /// The type that was found, in words.
        found: &'static str,
    },
    /// A value of the right type and the wrong form.
    #[error("expected {0}")]
    Form(&'static str),
    /// Two drivers of one kind have one id.
    #[error("this id was already given at line {}; every harness needs its own", .first.line)]
    DuplicateId {
        /// Where it was first.
        first: Position,
    },
}

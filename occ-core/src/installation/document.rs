//! YAML text to tree: one bounded document without aliases, and errors that quote nothing.

use serde_saphyr::{
    Error, Options,
    budget::BudgetBreach,
    options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy},
};

use super::{Path, Position, Problem, node::Node};

/// Deepest nesting of mappings and lists; the stack and every reader of the tree rely on it.
const DEPTH_MAX: usize = 32;
/// Most values of a document.
const VALUES_MAX: usize = 20_000;

/// The message by which the tree's own key check is told from the library's messages.
pub(super) const KEY_NOT_TEXT: &str = "a key must be a text";

/// Something wrong, and where; the file's name is added at the edge.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: Position,
    pub(super) path: Path,
    pub(super) problem: Problem,
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_nodes: VALUES_MAX,
            max_anchors: 0,
            max_aliases: 0,
        },
        // The scan finds both, with their path.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Error,
        // YAML 1.2 throughout: `no` and `0755` and `1_000` are texts, so that nobody is surprised by what they were read as.
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

/// Reads the one document of `text`.
pub(super) fn read(text: &str) -> Result<Node, Fault> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| {
        let at = error.location().map_or(Position::START, Position::from);
        Fault {
            at,
            path: Path::default(),
            problem: problem(&error),
        }
    })
}

fn problem(error: &Error) -> Problem {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => problem(error),
        Error::Eof { .. } => Problem::Empty,
        Error::MultipleDocuments { .. } => Problem::ManyDocuments,
        Error::MergeKeyNotAllowed { .. } | Error::UnknownAnchor { .. } => Problem::Alias,
        Error::UnsupportedTag { .. }
        | Error::TaggedScalarCannotDeserializeIntoString { .. }
        | Error::InvalidBinaryBase64 { .. }
        | Error::BinaryNotUtf8 { .. } => Problem::Tag,
        Error::NonFiniteFloat { .. } | Error::InvalidScalar { .. } => Problem::UnsafeNumber,
        Error::Budget { breach, .. } => match breach {
            BudgetBreach::Anchors { .. } | BudgetBreach::Aliases { .. } => Problem::Alias,
            BudgetBreach::Depth { .. } => Problem::TooDeep(DEPTH_MAX),
            BudgetBreach::Documents { .. } => Problem::ManyDocuments,
            _ => Problem::TooMany(VALUES_MAX),
        },
        Error::Message { msg, .. } if msg.contains(KEY_NOT_TEXT) => Problem::KeyNotText,
        Error::ExternalMessage { msg, .. } if msg.contains("recursion limit") => Problem::TooDeep(DEPTH_MAX),
        // The scanner's messages are fixed texts, except for one that quotes the character that it stopped at.
        Error::ExternalMessage { msg, .. } if !msg.contains('`') => Problem::Syntax(msg.clone()),
        Error::ExternalMessage { .. } => {
            Problem::Syntax("a character that cannot stand here without quotes".to_owned())
        }
        _ => Problem::Syntax("this cannot be read as a mapping, a list or a plain value".to_owned()),
    }
}

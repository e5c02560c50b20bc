//! How an Installation fails to be read or composed.

use std::io::ErrorKind;

use super::{CompositionError, Place, Problem};
use crate::registry::RegistryError;

/// Why an Installation file gave no Installation. Says where and what is accepted; never holds a value of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallationError {
    /// The file could not be read at all.
    #[error("{file}: {problem}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        problem: Unreadable,
    },
    /// Something in the file is not accepted, whatever is linked.
    #[error("{place}: {problem}")]
    Content {
        /// Where.
        place: Place,
        /// What.
        problem: Problem,
    },
    /// The selected driver is not linked.
    #[error("{place}: {source}")]
    Unlinked {
        /// Where it is selected.
        place: Place,
        /// What is linked.
        source: Box<RegistryError>,
    },
    /// The driver does not accept one of its settings.
    #[error("{place}: {expected}")]
    Setting {
        /// Where.
        place: Place,
        /// What is wrong and what is accepted, in the driver's words.
        expected: String,
    },
    /// The driver accepts its settings and cannot work here.
    #[error("{place}: {reason}")]
    Unavailable {
        /// Where it is selected.
        place: Place,
        /// Why, in the driver's words.
        reason: String,
    },
    /// The driver does not carry the kind, id and implementation that it was built with; a fault of the driver.
    #[error("{place}: {package} built a driver with another identity than it was given; its {part} must be kept")]
    Identity {
        /// Where it is selected.
        place: Place,
        /// The crate.
        package: String,
        /// Which part differs: kind, id or implementation.
        part: &'static str,
    },
    /// The drivers do not work together.
    #[error("{place}: {source}")]
    Composition {
        /// The driver at fault.
        place: Place,
        /// Why.
        source: CompositionError,
    },
}

/// Why a file could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// There is none.
    #[error("there is no such file")]
    Missing,
    /// It is a directory.
    #[error("this is a directory; expected a YAML file")]
    Directory,
    /// It is larger than [`FILE_MAX_BYTES`](super::FILE_MAX_BYTES).
    #[error("larger than 1 MiB, which is the most that an Installation file may have")]
    TooLarge,
    /// It is not UTF-8.
    #[error("line {line} is not UTF-8 text")]
    NotUtf8 {
        /// The first line that is not, counted from 1.
        line: u64,
    },
    /// The operating system refused.
    #[error("cannot be read: {0}")]
    Io(ErrorKind),
}

//! What the driver refuses.

use std::path::PathBuf;

/// Files that are not used. Says where and what, for whoever wrote them; it is never part of an answer of the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPolicies {
    /// A file cannot be read, is larger than 4 MiB, or is not UTF-8.
    #[error("{} cannot be read as a text of at most 4 MiB", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
    },
    /// The policies are not written in Cedar's language.
    #[error("{}: {problem}", path.display())]
    Policies {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A policy has no id, or one that another policy has. Decisions name the policies that they rest on by it.
    #[error("{}: each policy needs an @id(\"...\") of its own; policy number {number} has none", path.display())]
    Unnamed {
        /// Which file.
        path: PathBuf,
        /// Which policy, from 1 on.
        number: usize,
    },
    /// The entities do not fit the schema.
    #[error("{}: {problem}", path.display())]
    Entities {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The file of entities holds something else than people and groups: those are the control plane's to say.
    #[error("{}: only entities of the types Person and Group may be listed, and {found} is none", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// Its type.
        found: String,
    },
}

//! Why nothing was measured.

use std::path::PathBuf;

use occ_core::{
    admission::Refusal,
    store::{postgres, sqlite},
};

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No directory of its own could be made for the database file.
    #[error("no directory can be made in {}: name another one with --directory", path.display())]
    Directory {
        /// Where it was tried.
        path: PathBuf,
    },
    /// The database could not be opened.
    #[error(transparent)]
    Open(#[from] sqlite::OpenError),
    /// The database of the server could not be opened.
    #[error(transparent)]
    OpenPostgres(#[from] postgres::OpenError),
    /// There is no server to measure on.
    #[error("PostgreSQL cannot be started here: install the package postgresql, or leave it out with --store")]
    NoServer,
    /// A rival's program failed.
    #[error(
        "{program} could not be measured: are `npm install` and the release build of awa done in the directory of --rivals, and is \
         --node line 24?"
    )]
    Rival {
        /// Which.
        program: &'static str,
    },
    /// The floor could not be measured.
    #[error("the database refused the plain commits that are measured as the floor")]
    Floor,
    /// The statement that an admission is compared with could not be measured.
    #[error("the database refused the rows that are written by hand")]
    ByHand,
    /// A history could not be written.
    #[error("the database refused the finished revisions")]
    History,
    /// The system does not say what a process uses.
    #[error("/proc does not say what this process uses")]
    Usage,
    /// The HTTP API did not answer as it should.
    #[error("the HTTP API did not answer: {0}")]
    Answer(#[from] reqwest::Error),
    /// The HTTP API could not be served.
    #[error(transparent)]
    Serve(#[from] occ_api::BindError),
    /// The control plane refused something that it should admit.
    #[error("the control plane refused an operation: {0}")]
    Refused(#[from] Refusal),
    /// A deployment ended otherwise than with success.
    #[error("{failed} deployments failed; their numbers would mean nothing")]
    Failed {
        /// How many.
        failed: u64,
    },
    /// The work did not end.
    #[error("the worker did not end its work in time")]
    Stuck,
    /// The numbers could not be written.
    #[error("the numbers cannot be written to {}", path.display())]
    Unwritable {
        /// Where.
        path: PathBuf,
    },
}

//! The Installation file: read, scanned and brought into shape, before any driver is looked at.

use std::{
    fmt,
    io::{ErrorKind, Read as _},
    path::Path as FilePath,
};

use serde_json::Value;

use super::{InstallationError, OidcProvider, Path, Place, Position, Unreadable, document, node::Node, scan, shape};
use crate::{driver::DriverKind, resource::Backend};

/// Largest Installation file, in bytes.
pub const FILE_MAX_BYTES: u64 = 1 << 20;

/// How much the control plane logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// What happens.
    #[default]
    Info,
    /// What an operator should look at.
    Warn,
    /// What does not work.
    Error,
}

impl LogLevel {
    /// The word in the Installation file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One entry of `drivers`: which driver, under which id, with which settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    pub(super) kind: DriverKind,
    pub(super) id: String,
    pub(super) driver: String,
    pub(super) settings: Node,
    pub(super) path: Path,
    pub(super) at: Position,
    pub(super) driver_at: Position,
}

impl Selection {
    /// The kind that it is selected for.
    pub fn kind(&self) -> DriverKind {
        self.kind
    }

    /// The operator's name for this instance.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name of the driver.
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// Its settings as they stand in the file.
    pub fn settings(&self) -> Value {
        self.settings.to_json()
    }
}

/// An Installation file (spec/contracts 2.1-2.5): well-formed, free of plaintext credentials, and of the right shape.
///
/// Whether its drivers are linked and like their settings is seen by [`compose`](super::compose).
#[derive(Debug, Clone, PartialEq)]
pub struct InstallationFile {
    pub(super) origin: String,
    pub(super) cluster: Option<String>,
    pub(super) log_level: LogLevel,
    pub(super) oidc: Option<OidcProvider>,
    pub(super) backends: Vec<Backend>,
    pub(super) selections: Vec<Selection>,
}

impl InstallationFile {
    /// Reads the file at `path`.
    pub fn read(path: &FilePath) -> Result<Self, InstallationError> {
        let origin = path.display().to_string();
        let fail = |problem| InstallationError::Unreadable {
            file: origin.clone(),
            problem,
        };
        let io = |error: std::io::Error| {
            fail(match error.kind() {
                ErrorKind::NotFound => Unreadable::Missing,
                ErrorKind::IsADirectory => Unreadable::Directory,
                kind => Unreadable::Io(kind),
            })
        };
        let file = std::fs::File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.is_dir() {
            return Err(fail(Unreadable::Directory));
        }
        // One byte more than is accepted tells a file that is too large, whatever its metadata say.
        let mut bytes = Vec::new();
        file.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() as u64 > FILE_MAX_BYTES {
            return Err(fail(Unreadable::TooLarge));
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self::parse(text, &origin),
            Err(error) => {
                let line = bytes[..error.valid_up_to()].split(|&b| b == b'\n').count() as u64;
                Err(fail(Unreadable::NotUtf8 { line }))
            }
        }
    }

    /// Reads `text`; `origin` is its name in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self, InstallationError> {
        if text.len() as u64 > FILE_MAX_BYTES {
            return Err(InstallationError::Unreadable {
                file: origin.to_owned(),
                problem: Unreadable::TooLarge,
            });
        }
        let parts = document::read(text).and_then(|document| {
            scan::scan(&document)?;
            shape::shape(&document)
        });
        match parts {
            Ok(shape::Parts {
                cluster,
                log_level,
                oidc,
                backends,
                selections,
            }) => Ok(Self {
                origin: origin.to_owned(),
                cluster,
                log_level,
                oidc,
                backends,
                selections,
            }),
            Err(fault) => Err(InstallationError::Content {
                place: fault.path.at(origin, fault.at),
                problem: fault.problem,
            }),
        }
    }

    /// The Backends that Agents may be associated with.
    pub fn backends(&self) -> &[Backend] {
        &self.backends
    }

    /// The file's name in errors.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The name of the cluster that the control plane itself lives in.
    pub fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    /// How much the control plane logs.
    pub fn log_level(&self) -> LogLevel {
        self.log_level
    }

    /// The identity provider that people sign in through.
    pub fn oidc(&self) -> Option<&OidcProvider> {
        self.oidc.as_ref()
    }

    /// The selected drivers, in the order in which they are built.
    pub fn selections(&self) -> &[Selection] {
        &self.selections
    }

    pub(super) fn place(&self, path: Path, position: Position) -> Place {
        path.at(&self.origin, position)
    }
}

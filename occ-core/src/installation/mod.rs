//! The Installation: which drivers a control plane runs with, and how they are composed (spec/contracts 2).
//!
//! ```text
//! InstallationFile::read ── well-formed ── scanned ── of the right shape ──▶ compose(&file, &registry, &host) ──▶ Drivers
//! ```
//!
//! An embedder that has its drivers in hand skips the file: [`Drivers::builder`]. Nothing in the file is replaced from the
//! environment, nothing is reloaded while the control plane runs, and no error repeats a value of the file.

mod authentication;
mod compose;
mod composition;
mod credential;
mod describe;
mod document;
mod drivers;
mod error;
mod file;
mod node;
mod place;
mod problem;
mod scan;
mod shape;
mod stock;

pub use authentication::{OidcProvider, SecretPlace};
pub use compose::compose;
pub use composition::CompositionError;
pub use describe::{DriverRow, LinkedDriver, linked_drivers};
pub use drivers::{Drivers, DriversBuilder};
pub use error::{InstallationError, Unreadable};
pub use file::{FILE_MAX_BYTES, InstallationFile, LogLevel, Selection};
pub use place::{Place, Position};
pub use problem::Problem;
pub use stock::stock_yaml;

use place::Path;

//! Admission: the ordered checks that a request must pass, as pure functions over what was gathered for it.
//!
//! The functions here do no I/O and read no clock. [`control`](crate::control) gathers, asks them, and commits.

pub mod deploy;
pub mod draft;
mod grants;
mod phrase;
pub(crate) mod plugins;
mod record;
mod refusal;
pub mod source;

pub use grants::Grants;
pub(crate) use grants::denied;
pub(crate) use phrase::Phrase;
pub(crate) use record::Record;
pub(crate) use refusal::is_conflict;
pub use refusal::{DETAILS_MAX, Detail, DetailCode, MESSAGE_MAX_CHARS, Refusal};

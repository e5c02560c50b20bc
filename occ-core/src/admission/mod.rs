//! Admission: the ordered checks that a request must pass, as pure functions over what was gathered for it.
//!
//! The functions here do no I/O and read no clock. [`control`](crate::control) gathers, asks them, and commits.

mod phrase;
mod refusal;

pub(crate) use phrase::{Phrase, Sayable};
pub(crate) use refusal::is_conflict;
pub use refusal::{DETAILS_MAX, Detail, DetailCode, MESSAGE_MAX_CHARS, Refusal};

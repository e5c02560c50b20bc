//! What `occ-runtime launch` answers: an exit code and, for two of them, one line of JSON.

use serde::{Deserialize, Serialize};

use crate::identity::ProcessIdentity;

/// The supervisor runs; its identity is on standard output.
pub const LAUNCHED: u8 = 0;
/// The command line is not understood.
pub const USAGE: u8 = 2;
/// A living supervisor holds the lock; its identity is on standard output.
pub const HELD: u8 = 3;
/// The launch spec cannot be read or is not one.
pub const INVALID_SPEC: u8 = 4;
/// The secrets on standard input cannot be read, or one that the spec names is not among them.
pub const INVALID_SECRETS: u8 = 5;
/// A directory or file that the supervisor needs cannot be used.
pub const STORAGE: u8 = 6;
/// The supervisor could not be started, or ended before it answered.
pub const START_FAILED: u8 = 7;

/// The line that `launch` prints when a supervisor runs: the new one's, or the one that holds the lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Answer {
    /// Whose identity it is. Absent only for a holder that has not written its own yet.
    pub identity: Option<ProcessIdentity>,
}

/// How a launch ended, as its caller reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launched {
    /// The new supervisor runs.
    Started(ProcessIdentity),
    /// Another one holds the lock.
    Held(Option<ProcessIdentity>),
}

/// A launch that started nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LaunchFailed {
    /// See [`INVALID_SPEC`].
    #[error("the launch spec was refused")]
    Spec,
    /// See [`INVALID_SECRETS`].
    #[error("the secrets of the launch were refused")]
    Secrets,
    /// See [`STORAGE`].
    #[error("the supervisor cannot use its files")]
    Storage,
    /// Anything else: see [`START_FAILED`]; also an answer that is none.
    #[error("the supervisor did not start")]
    Start,
}

/// Reads what `occ-runtime launch` answered.
pub fn read(code: Option<i32>, stdout: &[u8]) -> Result<Launched, LaunchFailed> {
    let answer = || serde_json::from_slice::<Answer>(stdout).ok();
    match code.and_then(|code| u8::try_from(code).ok()) {
        Some(LAUNCHED) => answer()
            .and_then(|a| a.identity)
            .map(Launched::Started)
            .ok_or(LaunchFailed::Start),
        Some(HELD) => Ok(Launched::Held(answer().and_then(|a| a.identity))),
        Some(INVALID_SPEC) => Err(LaunchFailed::Spec),
        Some(INVALID_SECRETS) => Err(LaunchFailed::Secrets),
        Some(STORAGE) => Err(LaunchFailed::Storage),
        _ => Err(LaunchFailed::Start),
    }
}

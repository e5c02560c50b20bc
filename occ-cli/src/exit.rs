//! How a command ends: a message for people, a code for scripts.

use std::{fmt, process::ExitCode};

use serde_json::json;

use crate::{output::Format, wait::say};

/// The exit codes. `occ --help` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The operation was refused, or a deployment failed.
    Refused = 1,
    /// The command line is wrong (clap uses the same).
    Usage = 2,
    /// The API does not answer.
    Unreachable = 3,
    /// The awaited thing did not happen in time.
    Timeout = 4,
    /// The control plane cannot start as it is configured or where it is.
    Startup = 5,
    /// The command was interrupted.
    Interrupted = 130,
}

/// For `occ --help`.
pub(crate) const HELP: &str = "\
Exit codes: 0 done; 1 refused, or the deployment failed; 2 wrong command line; 3 the API does not answer; \
4 not done in time; 5 the control plane cannot start; 130 interrupted.";

/// Why a command ended without doing what it is for.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    /// The API's or the deployment's code.
    code: Option<String>,
    message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self {
            exit,
            code: None,
            message: message.to_string(),
        }
    }

    /// The same, with the code that scripts look at.
    pub(crate) fn with_code(mut self, code: impl fmt::Display) -> Self {
        self.code = Some(code.to_string());
        self
    }

    pub(crate) fn startup(message: impl fmt::Display) -> Self {
        Self::new(Exit::Startup, message)
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn refused(message: impl fmt::Display) -> Self {
        Self::new(Exit::Refused, message)
    }

    pub(crate) const fn exit(&self) -> Exit {
        self.exit
    }

    /// Says why, on standard error, and gives the process's code.
    pub(crate) fn report(&self, format: Format) -> ExitCode {
        match format {
            Format::Text => say(&format!("occ: {}", self.message)),
            Format::Json => say(&self.json().to_string()),
        }
        ExitCode::from(self.exit as u8)
    }

    fn json(&self) -> serde_json::Value {
        let Self { exit, code, message } = self;
        json!({ "error": { "code": code, "message": message, "exit": *exit as u8 } })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// What every command returns.
pub(crate) type Done<T = ()> = Result<T, Failure>;

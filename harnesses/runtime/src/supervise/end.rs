//! How a supervisor's work comes to its end, and the evidence of it.

use occ_core::{
    reason::{Cause, Preparation, PreparationReason, PreparationStage, RuntimeCode, RuntimeFailure, Token},
    time::{Clock as _, SystemClock},
};

use crate::status::{Exit, State};

/// Why the work does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The supervisor was told to stop.
    Stop,
    /// The component failed by itself.
    Held(Box<Held>),
}

/// A failure that is held until somebody stops the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The failure.
    pub failure: RuntimeFailure,
    /// Facts about a failed preparation.
    pub preparation: Option<Preparation>,
}

impl Held {
    /// A failure without more facts, found now.
    pub fn new(component: &Token, check: Token, code: RuntimeCode, cause: Option<Cause>) -> Self {
        let failure = RuntimeFailure {
            component: component.clone(),
            check,
            checked_at: SystemClock.now(),
            code,
            cause,
        };
        Self {
            failure,
            preparation: None,
        }
    }

    /// The same with what was found while preparing.
    #[must_use]
    pub fn because(mut self, stage: PreparationStage, reason: PreparationReason, exit: Option<Exit>) -> Self {
        let (exit_status, signal) = match exit {
            Some(Exit::Status(status)) => (Some(status), None),
            Some(Exit::Signal(number)) => (None, Some(signal_name(number))),
            None => (None, None),
        };
        self.preparation = Some(Preparation {
            stage,
            reason,
            component: Some(self.failure.component.clone()),
            exit_status,
            signal,
            at: self.failure.checked_at,
        });
        self
    }
}

impl From<Held> for End {
    fn from(held: Held) -> Self {
        Self::Held(Box::new(held))
    }
}

impl From<Held> for State {
    fn from(held: Held) -> Self {
        Self::Held {
            failure: held.failure,
            preparation: held.preparation,
        }
    }
}

/// The name of a signal, such as `SIGKILL`; `SIG` and the number for one without a name.
pub fn signal_name(number: i32) -> Token {
    const NAMES: [&str; 32] = [
        "SIG0",
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    let name = usize::try_from(number).ok().and_then(|number| NAMES.get(number));
    let text = name.map_or_else(|| format!("SIG{number}"), |name| (*name).to_owned());
    Token::parse(&text).unwrap_or(const { Token::known("SIG0") })
}

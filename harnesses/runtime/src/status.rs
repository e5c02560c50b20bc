//! What a supervisor says of its component: bounded, closed, and without any text that a component or provider wrote.

use std::path::Path;

use occ_core::{
    id::RevisionId,
    reason::{Pending, Preparation, RuntimeCode, RuntimeFailure, Token},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::identity::{ProcessIdentity, read_bounded};

/// Longest status that is written or read, in bytes (spec/drivers 1.16).
pub const STATUS_MAX_BYTES: u64 = 64 * 1024;

/// A supervisor's report, rewritten whole at each change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Status {
    /// The version that it runs.
    pub revision_id: RevisionId,
    /// The component.
    pub component: Token,
    /// The supervisor itself. A status whose supervisor is not alive is history.
    pub supervisor: ProcessIdentity,
    /// How far it is.
    pub state: State,
    /// When it came there.
    pub since: Timestamp,
    /// When this was written.
    pub at: Timestamp,
    /// The component's process, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_pid: Option<u32>,
    /// How often the component was started again after it had been ready.
    pub restarts: u32,
    /// How it ended the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_exit: Option<Exit>,
}

/// How far a supervisor is with its component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "phase",
    deny_unknown_fields
)]
pub enum State {
    /// The workspace is being set up.
    Setup {
        /// A run failed and is repeated.
        retrying: bool,
    },
    /// The model is being checked.
    Probing,
    /// All that can be checked without the component is as it should be. The end of a run that only checks.
    Checked,
    /// The component was started and does not report ready yet.
    Starting,
    /// The component reported ready.
    Ready,
    /// The component ended after it had been ready; it is being started again.
    Restarting,
    /// It failed by itself. The supervisor stays, so that this and the logs can be read, until it is stopped.
    Held {
        /// What was found.
        failure: RuntimeFailure,
        /// Facts about a failed preparation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preparation: Option<Preparation>,
    },
    /// It was told to stop, and the component is draining.
    Stopping,
    /// Nothing of it runs any more. The supervisor has ended, or is about to.
    Stopped,
}

impl State {
    /// The phase's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Setup { .. } => "setup",
            Self::Probing => "probing",
            Self::Checked => "checked",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Restarting => "restarting",
            Self::Held { .. } => "held",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }
}

/// How a component's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Exit {
    /// With this status.
    Status(u8),
    /// By the signal of this number.
    Signal(i32),
}

impl Status {
    /// Reads a status file. An absent, partial or foreign one reads as `None`.
    pub fn read(path: &Path) -> Option<Self> {
        Self::parse(&read_bounded(path, STATUS_MAX_BYTES)?)
    }

    /// Reads a status from bytes, as [`Status::read`] does.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let status: Self = serde_json::from_slice(bytes).ok()?;
        match &status.state {
            State::Held { failure, .. } if failure.validate().is_err() => None,
            _ => Some(status),
        }
    }

    /// Whether the component reported ready.
    pub fn ready(&self) -> bool {
        self.state == State::Ready
    }

    /// Why the component is not ready yet; `None` when it is ready, failed, or stopped.
    pub const fn pending(&self) -> Option<Pending> {
        match self.state {
            State::Setup { retrying: true } => Some(Pending::WorkspaceSetupRetrying),
            State::Setup { retrying: false } | State::Probing | State::Starting | State::Restarting => {
                Some(Pending::RevisionIncomplete)
            }
            State::Checked | State::Ready | State::Held { .. } | State::Stopping | State::Stopped => None,
        }
    }

    /// What the component says of itself while it is not ready: the held failure, or that it is not ready yet, which colours
    /// the convergence deadline's error.
    pub fn evidence(&self) -> Option<RuntimeFailure> {
        let check = match &self.state {
            State::Held { failure, .. } => return Some(failure.clone()),
            State::Setup { .. } => Token::known("workspace-setup"),
            State::Probing => Token::known("model-probe"),
            State::Starting | State::Restarting => Token::known("readiness"),
            State::Checked | State::Ready | State::Stopping | State::Stopped => return None,
        };
        Some(RuntimeFailure {
            component: self.component.clone(),
            check,
            checked_at: self.at,
            code: RuntimeCode::NotReady,
            cause: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use occ_core::reason::Cause;

    use super::*;

    fn status(state: State) -> Status {
        Status {
            revision_id: RevisionId::random(),
            component: Token::known("gateway"),
            supervisor: ProcessIdentity {
                pid: 1,
                start_time: 2,
                boot_id: "b".into(),
            },
            state,
            since: Timestamp::from_millis(0),
            at: Timestamp::from_millis(1),
            child_pid: None,
            restarts: 0,
            last_exit: Some(Exit::Signal(9)),
        }
    }

    fn held(code: RuntimeCode, cause: Option<Cause>) -> State {
        let failure = RuntimeFailure {
            component: Token::known("gateway"),
            check: Token::known("model-probe"),
            checked_at: Timestamp::from_millis(0),
            code,
            cause,
        };
        State::Held {
            failure,
            preparation: None,
        }
    }

    #[test]
    fn every_state_reads_back_as_it_was_written() {
        for state in [
            State::Setup { retrying: true },
            State::Probing,
            State::Checked,
            State::Starting,
            State::Ready,
            State::Restarting,
            held(RuntimeCode::ModelProbeFailed, Some(Cause::InvalidJson)),
            State::Stopping,
            State::Stopped,
        ] {
            let status = status(state);
            let bytes = serde_json::to_vec(&status).unwrap();
            assert_eq!(Status::parse(&bytes), Some(status.clone()), "{}", status.state.name());
            assert_eq!(Status::parse(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn a_status_with_an_impossible_cause_or_an_unknown_member_is_none() {
        let mut wrong = serde_json::to_value(status(held(RuntimeCode::Unavailable, Some(Cause::InvalidJson)))).unwrap();
        assert_eq!(Status::parse(wrong.to_string().as_bytes()), None);
        wrong = serde_json::to_value(status(State::Setup { retrying: false })).unwrap();
        wrong["state"]["setup"]["note"] = "free text".into();
        assert_eq!(Status::parse(wrong.to_string().as_bytes()), None);
    }

    #[test]
    fn only_a_state_on_the_way_is_pending() {
        assert_eq!(
            status(State::Setup { retrying: true }).pending(),
            Some(Pending::WorkspaceSetupRetrying)
        );
        assert_eq!(status(State::Probing).pending(), Some(Pending::RevisionIncomplete));
        assert_eq!(status(State::Ready).pending(), None);
        assert_eq!(status(held(RuntimeCode::Unavailable, None)).pending(), None);
        assert_eq!(
            status(State::Starting).evidence().map(|e| e.code),
            Some(RuntimeCode::NotReady)
        );
        assert_eq!(status(State::Stopped).evidence(), None);
    }
}

//! A live claim on a piece of work.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Target;
use crate::{
    reason::{Failure, Pending},
    resource::PrincipalId,
    time::Timestamp,
    trace::TraceContext,
};

/// The fencing token of one claim. Whoever publishes must still hold it, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClaimToken(pub Uuid);

/// What the latest attempt recorded; the status shows it as `progress.lastAttempt`. A newer version may have said more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastAttempt {
    /// Why the work waits.
    pub code: Pending,
    /// When that was first recorded; a repetition of the same keeps it, except for refused stops.
    pub at: Timestamp,
    /// The refusal that waits for its stop (spec/engine 6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Failure>,
    /// How many stops of the refused candidate failed in a row.
    #[serde(default)]
    pub failed_stops: u32,
}

impl LastAttempt {
    /// Whether this says the same as the attempt before: no new evidence then, and the first moment stays.
    pub fn repeats(&self, before: &Self) -> bool {
        self.code == before.code && self.refusal == before.refusal
    }
}

/// A claimed piece of work. Consumed by the settlement that publishes its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The fencing token.
    pub token: ClaimToken,
    /// What it is for.
    pub target: Target,
    /// Who asked for it.
    pub actor: PrincipalId,
    /// This attempt's number, counted from 1.
    pub attempt: u32,
    /// When the work was enqueued, by the database's clock.
    pub created_at: Timestamp,
    /// When it was claimed, by the database's clock.
    pub claimed_at: Timestamp,
    /// What the attempt before recorded.
    pub last_attempt: Option<LastAttempt>,
    /// Where the request that asked for the work is in its trace.
    pub trace: Option<TraceContext>,
}

impl Claim {
    /// How old the work was when it was claimed.
    pub fn age(&self) -> Duration {
        self.claimed_at.since(self.created_at)
    }
}

/// How long a claim lasts without renewal, and how often it may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// From each renewal, by the database's clock.
    pub duration: Duration,
    /// Attempts after which work is no longer claimed.
    pub max_attempts: u32,
}

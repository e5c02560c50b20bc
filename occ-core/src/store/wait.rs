//! Deployments that wait for their Compute.

use std::time::Duration;

use crate::{id::AgentId, time::Timestamp};

/// Queued work of a deployment that need not be looked at for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The key of the work.
    pub key: String,
    /// The owning Agent.
    pub agent: AgentId,
    /// The version of the Agent's row when the deployment was looked at. With another one it comes due at once: something was asked
    /// of the Agent meanwhile.
    pub version: u64,
    /// How soon it may come due, at the least: until it is looked at in memory again. From the database's present, as what follows.
    pub least: Duration,
    /// When it comes due at the latest. Due sooner than `least` or later than this, it is put at this moment: nothing is written for
    /// what lies between them, and both zero make it due at once.
    pub most: Duration,
}

impl Wait {
    /// When work comes due instead that is due at `due`, by the database's present; nothing when that may stay. `holds` tells whether
    /// the Agent is still of this version.
    pub fn placed(&self, now: Timestamp, due: Timestamp, holds: bool) -> Option<Timestamp> {
        let (earliest, latest) = if holds {
            (now.plus(self.least), now.plus(self.most))
        } else {
            (due, now)
        };
        (due < earliest || due > latest).then_some(latest)
    }

    /// Whether any work may have been made due, by what is known of which are held off.
    pub fn any_due(waits: &[Self], held: &[bool]) -> bool {
        waits.iter().zip(held).any(|(wait, held)| !held || wait.most.is_zero())
    }
}

//! Deployments that wait for their Compute.

use std::time::Duration;

use crate::id::AgentId;

/// Queued work of a deployment that need not be looked at when it comes due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The key of the work.
    pub key: String,
    /// The owning Agent.
    pub agent: AgentId,
    /// The version of the Agent's row when the deployment was looked at. With another one nothing is put off: something was asked of
    /// the Agent meanwhile.
    pub version: u64,
    /// For how long, from the database's present.
    pub delay: Duration,
}

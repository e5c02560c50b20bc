//! How much is measured.

use std::time::Duration;

/// How many samples each number rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Whether this is the quick run.
    pub quick: bool,
    /// Agents; the growth of time per deployment is looked for over all of them.
    pub agents: usize,
    /// Plain commits of the floor, measured before and after the rest.
    pub floor: usize,
    /// Admissions by one caller, by several, and by many.
    pub admissions: usize,
    /// How many callers "several" are.
    pub callers: usize,
    /// How many callers "many" are: admissions only.
    pub crowd: usize,
    /// Reads, and deployments, that the HTTP API answers to one client.
    pub answers: usize,
    /// Deployments that are admitted at once, and driven as fast as the worker can.
    pub deployments: usize,
    /// Deployments that meet an idle worker, one after the other.
    pub latencies: usize,
    /// How long the idle worker is watched.
    pub idle: Duration,
    /// How often each Agent is deployed, one deployment after the other.
    pub rounds: usize,
}

impl Sizes {
    /// Enough to trust a number.
    pub const FULL: Self = Self {
        quick: false,
        agents: 100,
        floor: 1000,
        admissions: 500,
        callers: 8,
        crowd: 32,
        answers: 1000,
        deployments: 500,
        latencies: 300,
        idle: Duration::from_secs(20),
        rounds: 10,
    };

    /// Enough to see that everything runs.
    pub const QUICK: Self = Self {
        quick: true,
        agents: 100,
        floor: 100,
        admissions: 40,
        callers: 8,
        crowd: 32,
        answers: 40,
        deployments: 40,
        latencies: 20,
        idle: Duration::from_secs(3),
        rounds: 1,
    };
}

//! The durable queue's rules, as pure data and functions (spec/engine 4).
//!
//! A lane is an Agent, or a Namespace. At most one claim per lane is live, so one Agent never runs twice; lanes run in parallel.

mod claim;
mod recovery;
mod settle;
mod target;

pub use claim::{Claim, ClaimToken, LastAttempt, Lease};
pub use recovery::{Again, Lost};
pub use settle::{FailureData, Policy, Transition, Warning, backoff, readiness_cadence, refused_stop_delay};
pub use target::{Lane, NewWork, Target};

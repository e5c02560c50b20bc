//! The worker: a pure core that decides the next step of a pass, and an interpreter that performs it.
//!
//! A pass is one claimed attempt at a piece of work. [`decide`](Pass::decide) looks at what was read and at what the steps so
//! far brought ([`Progress`]), and names the next [`Step`]; it does no I/O, reads no clock and is total. The interpreter performs the
//! step under the claim's lease and records the [`Event`]. The last step is always [`Step::Finish`]; [`settle`] turns its
//! [`Outcome`] into a transition that is published under the claim's token, or not at all.

mod agent;
mod authority;
mod dispatch;
mod facts;
mod health;
mod interpreter;
mod lease;
mod namespace;
mod pass;
mod publish;
mod refusal;
mod revision;
mod runtime;
mod settle;
mod sources;
mod telemetry;
mod unreadable;
mod waiting;
mod withdrawal;

pub use authority::Authority;
pub use dispatch::{Worker, WorkerHandle};
pub use health::WorkerHealth;
pub use pass::{ComputeFacts, Event, Outcome, Pass, Progress, Step, StopRecord, WriteBox};
pub use settle::{Consequences, consequences, settle};

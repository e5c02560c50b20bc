#![doc = include_str!("../README.md")]

mod error;
mod floor;
mod measure;
mod observer;
mod report;
mod run;
mod scene;
mod sizes;
mod table;

pub use error::Error;
pub use observer::{Calls, Ended, Observer};
pub use report::{
    Admissions, ClaimLatency, Deployments, Floor, Growth, Idle, Report, StoreKind, StoreReport, Transactions,
};
pub use run::run;
pub use sizes::Sizes;

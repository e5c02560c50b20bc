#![doc = include_str!("../README.md")]

mod answers;
mod by_hand;
mod error;
mod floor;
mod ground;
mod load;
mod measure;
mod observer;
mod report;
mod rivals;
mod run;
mod scene;
mod sizes;
mod table;
mod usage;

pub use error::Error;
pub use load::Load;
pub use observer::{Calls, Ended, Observer};
pub use report::{
    Admissions, Answers, Deployments, Floor, Growth, History, Idle, Latency, Pending, Report, Rival, StoreKind,
    StoreReport, Transactions,
};
pub use rivals::Rivals;
pub use run::run;
pub use sizes::Sizes;

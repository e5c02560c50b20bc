#![doc = include_str!("../README.md")]

mod canary;
mod case;
pub mod compute;
pub mod configuration;
pub mod harness;
pub mod iam;
mod patience;
mod records;
pub mod secret;
#[cfg(feature = "store")]
pub mod store;

pub use case::{Case, run};

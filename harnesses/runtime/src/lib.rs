#![doc = include_str!("../README.md")]

pub mod exit;
pub mod identity;
#[cfg(feature = "identity")]
pub mod orphans;
pub mod spec;
pub mod status;

#[cfg(feature = "supervisor")]
pub mod cli;
#[cfg(feature = "supervisor")]
mod keep;
#[cfg(feature = "supervisor")]
mod launch;
#[cfg(feature = "supervisor")]
mod log;
#[cfg(feature = "supervisor")]
mod probe;
#[cfg(feature = "supervisor")]
mod secrets;
#[cfg(feature = "supervisor")]
mod setup;
#[cfg(feature = "supervisor")]
mod supervise;
#[cfg(feature = "supervisor")]
mod tree;

#![doc = include_str!("../README.md")]

mod active;
mod admission;
mod cgroup;
mod credentials;
mod diagnostics;
mod driver;
mod error;
mod gateway;
mod guard;
mod launch;
mod logs;
mod namespace;
mod naming;
mod observe;
mod ownership;
mod place;
mod ports;
mod preflight;
mod prepare;
mod settings;
mod setup;
mod stage;
mod stop;
mod storage;
mod workspace;

pub use driver::ProcessCompute;
pub use settings::{Limits, Log, PortRange, Settings};

occ_core::register_compute!(ProcessCompute);

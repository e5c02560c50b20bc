#![doc = include_str!("../README.md")]

mod credential;
mod document;
mod driver;
mod error;
mod gateway;
mod model;
mod plan;
mod provider;
mod render;
mod resolve;
mod settings;

pub use driver::OpenClaw;
pub use error::message;
pub use settings::{LogLevel, Settings};

occ_core::register_harness!(OpenClaw);

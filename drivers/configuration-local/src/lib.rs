#![doc = include_str!("../README.md")]

mod driver;
mod error;
mod record;
mod settings;

pub use driver::ConfigurationLocal;
pub use settings::Settings;

occ_core::register_configuration!(ConfigurationLocal);

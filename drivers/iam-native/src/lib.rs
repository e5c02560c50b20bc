#![doc = include_str!("../README.md")]

mod driver;
mod error;
mod evaluate;
mod settings;
mod validity;

pub use driver::NativeIam;
pub use error::InvalidPolicy;
pub use evaluate::evaluate;
pub use settings::Settings;
pub use validity::check_policy;

occ_core::register_iam!(NativeIam);

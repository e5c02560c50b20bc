#![doc = include_str!("../README.md")]

mod driver;
mod error;
mod evaluate;
mod settings;
mod validity;

pub use driver::NativeIam;
pub use error::{InvalidPolicy, InvalidRequest};
pub use evaluate::evaluate;
pub use settings::Settings;
pub use validity::{check_policy, check_request};

occ_core::register_iam!(NativeIam);

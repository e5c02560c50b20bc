#![doc = include_str!("../README.md")]

mod driver;
mod error;
mod files;
mod policies;
mod schema;
mod settings;

pub use driver::CedarIam;
pub use error::InvalidPolicies;
pub use schema::schema;
pub use settings::Settings;

occ_core::register_iam!(CedarIam);

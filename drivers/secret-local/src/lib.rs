#![doc = include_str!("../README.md")]

mod driver;
mod error;
mod key_file;
mod key_ring;
mod sealed;
mod settings;

pub use driver::SecretLocal;
pub use error::KeyFileError;
pub use settings::Settings;

occ_core::register_secret!(SecretLocal);

//! The Installation file, from text to composed drivers, through the public API.

mod bad_files;
mod composing;
mod describing;
mod fixtures;
mod reading;
mod stock;

#![doc = include_str!("../README.md")]

pub mod exit;
pub mod identity;
pub mod spec;
pub mod status;

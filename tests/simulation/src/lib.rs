//! What proves the engine by enumeration: a model of the store, and whole control planes that a seed decides.

pub mod chaos;
pub mod crash;
pub mod memory;

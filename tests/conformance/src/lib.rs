//! The suites that every implementation of one of OCC's contracts passes.
//!
//! A suite is a list of named cases. An implementation's tests run each case over a fresh instance of their own.

#[cfg(feature = "store")]
pub mod store;

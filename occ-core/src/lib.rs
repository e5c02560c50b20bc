//! OCC's core: the contracts that drivers implement and, behind the `engine` feature, the revision and admission engine.
//!
//! With `default-features = false` this crate is the contract alone: no store, no HTTP, no container client.

#[cfg(feature = "engine")]
pub mod admission;
pub mod audit;
#[cfg(feature = "engine")]
pub mod control;
pub mod digest;
pub mod driver;
pub mod iam;
pub mod id;
#[cfg(feature = "engine")]
pub mod installation;
pub mod plan;
pub mod randomness;
pub mod reason;
pub mod registry;
pub mod resource;
#[cfg(feature = "engine")]
pub mod retention;
#[cfg(feature = "engine")]
pub mod revision;
pub mod secret_value;
#[cfg(feature = "engine")]
pub mod status;
#[cfg(feature = "engine")]
pub mod store;
pub mod time;
#[cfg(feature = "engine")]
pub mod trace;
#[cfg(feature = "engine")]
pub mod work;
#[cfg(feature = "engine")]
pub mod worker;

/// What the registration macros expand to; not for direct use.
#[doc(hidden)]
pub use inventory;

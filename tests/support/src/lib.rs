//! Counterparts that OCC's tests and its quickstart talk to, where the real one costs money or needs an account.
//!
//! [`model_server`] stands in for a model provider; `postgres` (a feature) starts a database server, `proxy` stands before it
//! and fails; `otlp` (a feature) collects traces; [`drivers`] are drivers that run nothing, for tests of the engine. Nothing here belongs in an installation.

pub mod drivers;
pub mod model_server;
#[cfg(feature = "oidc")]
pub mod oidc_provider;
#[cfg(feature = "otlp")]
pub mod otlp;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "postgres")]
pub mod proxy;
mod store_reads;

//! Counterparts that OCC's tests and its quickstart talk to, where the real one costs money or needs an account.
//!
//! [`model_server`] stands in for a model provider. Nothing here belongs in an installation.

pub mod model_server;

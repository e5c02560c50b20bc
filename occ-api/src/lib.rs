//! The HTTP API of OCC, as an axum [`Router`] that an embedder can mount (spec/engine 2).
//!
//! [`router`] gives the routes over a [`ControlPlane`]; [`serve`] runs them on a listener until it is told to stop. Every response has
//! the same envelope and headers, whoever wrote it: a handler, a refusal, a wrong path or a panic.

mod audit;
mod call;
mod catalogue;
mod envelope;
mod headers;
mod openapi;
mod operation;
mod operations;
mod reject;
mod routes;
mod server;
mod span;
mod strict_json;

pub use openapi::document as openapi;
pub use operations::{Metrics, operations};
pub use server::{BindError, bind, serve};

use axum::Router;
use occ_core::control::ControlPlane;

/// The API over a control plane.
pub fn router(plane: ControlPlane) -> Router {
    envelope::wrap(routes::all().with_state(Api { plane }))
}

/// What every handler shares.
#[derive(Clone)]
pub(crate) struct Api {
    pub plane: ControlPlane,
}

//! The HTTP API of OCC, as an axum [`Router`] that an embedder can mount (spec/engine 2).
//!
//! [`router`] gives the routes over a [`ControlPlane`]; [`serve`] runs them on a listener until it is told to stop. Every response has
//! the same envelope and headers, whoever wrote it: a handler, a refusal, a wrong path or a panic.

mod access;
mod audit;
mod call;
mod catalogue;
mod client;
mod credential;
mod docs;
mod envelope;
mod headers;
mod listeners;
mod oidc;
mod openapi;
mod operation;
mod operations;
mod reject;
mod routes;
mod server;
mod span;
mod strict_json;

pub use access::{Access, InvalidOrigin, InvalidProxy, TrustedOrigin, TrustedProxy};
pub use oidc::{InvalidOidc, Oidc, OidcSettings};
pub use openapi::document as openapi;
pub use operations::{Metrics, operations};
pub use server::{BindError, bind, serve};

use std::sync::Arc;

use axum::Router;
use occ_core::control::ControlPlane;

use listeners::Listeners;

/// The API over a control plane. Nothing around it is trusted: no proxy, and no web page but its own.
pub fn router(plane: ControlPlane) -> Router {
    router_with(plane, Access::default())
}

/// The same, with what the installation trusts around it.
///
/// The client's address is that of the connection, which [`serve`] and axum's `into_make_service_with_connect_info` say.
pub fn router_with(plane: ControlPlane, access: Access) -> Router {
    let listeners = Listeners::new(access.listeners);
    let access = Arc::new(access);
    envelope::wrap(routes::all().with_state(Api {
        plane,
        access,
        listeners,
    }))
}

/// What every handler shares.
#[derive(Clone)]
pub(crate) struct Api {
    pub plane: ControlPlane,
    pub access: Arc<Access>,
    pub listeners: Listeners,
}

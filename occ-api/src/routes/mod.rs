//! The routes, by resource (spec/engine 2.1).

mod agents;
mod configurations;
mod health;
mod iam;
mod installation;
mod namespaces;
mod revisions;
mod secrets;

use axum::Router;

use crate::{Api, envelope::Reply, reject::Rejected};

/// What a handler returns.
type Handled = Result<Reply, Rejected>;

/// Every route.
pub(crate) fn all() -> Router<Api> {
    Router::new()
        .merge(health::routes())
        .merge(installation::routes())
        .merge(namespaces::routes())
        .merge(configurations::routes())
        .merge(secrets::routes())
        .merge(agents::routes())
        .merge(revisions::routes())
        .merge(iam::routes())
}

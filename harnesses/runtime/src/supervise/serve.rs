//! The status over HTTP (spec/drivers 1.16), for a Compute that cannot read the supervisor's files.

use std::{io, net::SocketAddr};

use axum::{Json, Router, http::StatusCode, routing::get};
use tokio::net::TcpListener;

use super::Publisher;

/// Serves `/openclaw/runtime/status` and `/readyz` until the process ends.
pub async fn serve(address: SocketAddr, publisher: Publisher) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let status = {
        let publisher = publisher.clone();
        move || async move { Json(publisher.status()) }
    };
    let readyz = move || async move {
        let ready = publisher.status().ready();
        let code = if ready {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        (code, Json(serde_json::json!({ "ready": ready })))
    };
    let router = Router::new()
        .route("/openclaw/runtime/status", get(status))
        .route("/readyz", get(readyz));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(())
}

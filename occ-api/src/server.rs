//! Serving the API on a listener.

use std::{future::Future, io, net::SocketAddr, time::Duration};

use axum::{Extension, Router, extract::ConnectInfo, http::Request};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::net::TcpListener;
use tower::util::MapRequest;

/// How long a connection may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long open requests may take once the server was told to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// Tells long answers that the server stops.
pub(crate) type Stopping = tokio_util::sync::CancellationToken;

/// The API could not listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody else listens there.
    #[error("{0} is in use by another program: stop it, or choose another address")]
    InUse(SocketAddr),
    /// The operating system does not permit it.
    #[error("listening on {0} is not permitted: choose a port above 1023, or another address")]
    Denied(SocketAddr),
    /// The address is not one of this machine.
    #[error("{0} is not an address of this machine")]
    NotLocal(SocketAddr),
    /// Something else.
    #[error("cannot listen on {0}: {1}")]
    Other(SocketAddr, io::ErrorKind),
}

/// Listens on an address.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse(address),
        io::ErrorKind::PermissionDenied => BindError::Denied(address),
        io::ErrorKind::AddrNotAvailable => BindError::NotLocal(address),
        kind => BindError::Other(address, kind),
    })
}

/// Serves until `shutdown` resolves; open requests are finished first.
pub async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()> + Send) {
    let graceful = GracefulShutdown::new();
    let stopping = Stopping::new();
    let router = router.layer(Extension(stopping.clone()));
    tokio::pin!(shutdown);
    loop {
        let (stream, peer) = tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, most likely: connections that end make room.
                    tracing::warn!(kind = ?error.kind(), "http.accept");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let service = MapRequest::new(router.clone(), move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            request
        });
        let service = TowerToHyperService::new(service);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service);
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            // A connection that breaks off is its caller's affair.
            let _ = watched.await;
        });
    }
    drop(listener);
    stopping.cancel();
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, graceful.shutdown()).await;
}

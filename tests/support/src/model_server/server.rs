//! The handle: listens, changes its behaviour, stops.

use super::behaviour::Behaviour;
use super::key::ExpectedKey;
use super::record::RecordedRequest;
use super::routes::{Shared, lock, router};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Why the server does not listen.
#[derive(Debug, thiserror::Error)]
pub enum ModelServerError {
    /// The address could not be taken.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// The address is not on this machine's loopback; a test double must not be reachable from elsewhere.
    #[error("{0} is not a loopback address")]
    NotLoopback(SocketAddr),
}

/// A running model server. Dropping it stops it as well, without waiting.
pub struct ModelServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    state: State,
}

enum State {
    Listening {
        closing: CancellationToken,
        task: JoinHandle<io::Result<()>>,
    },
    /// The socket is bound but does not listen: connections are refused and nobody else gets the port.
    Refusing(TcpSocket),
    /// Only while changing from one to the other, or after that failed.
    Closed,
}

impl ModelServer {
    /// Listens on a free port of 127.0.0.1 and expects no key.
    pub async fn start(behaviour: Behaviour) -> Result<Self, ModelServerError> {
        Self::start_on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), behaviour).await
    }

    /// Listens on `address`, which has to be a loopback address; port 0 takes a free one.
    pub async fn start_on(address: SocketAddr, behaviour: Behaviour) -> Result<Self, ModelServerError> {
        if !address.ip().is_loopback() {
            return Err(ModelServerError::NotLoopback(address));
        }
        let failed = |source| ModelServerError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared {
            behaviour: Mutex::new(behaviour),
            expected_key: Mutex::new(None),
            requests: Mutex::new(Vec::new()),
        });
        let state = serve(&shared, listener);
        Ok(Self { shared, address, state })
    }

    /// The value for a provider's `baseUrl`: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Answers the requests from now on in this way.
    pub fn set(&self, behaviour: Behaviour) {
        *lock(&self.shared.behaviour) = behaviour;
    }

    /// From now on answers 401 unless the bearer equals `key`; `None` accepts every request. Only a digest is kept.
    pub fn expect_key(&self, key: Option<&str>) {
        *lock(&self.shared.expected_key) = key.map(ExpectedKey::new);
    }

    /// The requests so far, in the order of arrival.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        lock(&self.shared.requests).clone()
    }

    /// Ends open connections and refuses new ones, but keeps the port for [`ModelServer::listen_again`].
    pub async fn refuse_connections(&mut self) -> Result<(), ModelServerError> {
        if matches!(self.state, State::Refusing(_)) {
            return Ok(());
        }
        self.stop_serving().await;
        let bound = TcpSocket::new_v4().and_then(|socket| {
            socket.set_reuseaddr(true)?;
            socket.bind(self.address)?;
            Ok(socket)
        });
        self.state = State::Refusing(bound.map_err(|source| self.listen_error(source))?);
        Ok(())
    }

    /// Accepts connections on the same port again.
    pub fn listen_again(&mut self) -> Result<(), ModelServerError> {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Refusing(socket) => {
                let listener = socket.listen(128).map_err(|source| self.listen_error(source))?;
                self.state = serve(&self.shared, listener);
            }
            other => self.state = other,
        }
        Ok(())
    }

    /// Ends open connections and frees the port.
    pub async fn shutdown(mut self) {
        self.stop_serving().await;
    }

    async fn stop_serving(&mut self) {
        if let State::Listening { closing, task } = std::mem::replace(&mut self.state, State::Closed) {
            closing.cancel();
            // It ends with the last connection; its result says nothing that the caller could use.
            let _ = task.await;
        }
    }

    fn listen_error(&self, source: io::Error) -> ModelServerError {
        ModelServerError::Listen {
            address: self.address,
            source,
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if let State::Listening { closing, .. } = &self.state {
            closing.cancel();
        }
    }
}

fn serve(shared: &Arc<Shared>, listener: TcpListener) -> State {
    let closing = CancellationToken::new();
    let app = router(Arc::clone(shared), closing.clone());
    let stopped = closing.clone().cancelled_owned();
    let task = tokio::spawn(async move { axum::serve(listener, app).with_graceful_shutdown(stopped).await });
    State::Listening { closing, task }
}

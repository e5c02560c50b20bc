//! A model provider on loopback for as long as a test runs.

use occ_test_support::model_server::{Behaviour, ModelServer, RecordedRequest};
use tokio::runtime::{Builder, Runtime};

/// A model server with the threads that it needs.
pub struct Model {
    server: Option<ModelServer>,
    runtime: Runtime,
}

impl Model {
    /// Listens, and takes this key alone when one is named.
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn start(behaviour: Behaviour, key: Option<&str>) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("threads can be started");
        let server = runtime
            .block_on(ModelServer::start(behaviour))
            .expect("loopback has a free port");
        server.expect_key(key);
        Self {
            server: Some(server),
            runtime,
        }
    }

    fn server(&self) -> &ModelServer {
        self.server.as_ref().expect("it runs until it is dropped")
    }

    /// Its address, as a provider's `baseUrl`.
    pub fn base_url(&self) -> String {
        self.server().base_url()
    }

    /// What it was asked.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.server().requests()
    }

    /// Refuses connections from now on.
    ///
    /// # Panics
    /// When it cannot keep its port.
    pub fn refuse_connections(&mut self) {
        let server = self.server.as_mut().expect("it runs until it is dropped");
        self.runtime
            .block_on(server.refuse_connections())
            .expect("the port is its own");
    }
}

//! A test double of a paid model provider: the `OpenAI` Responses API on loopback, with faults on request.
//!
//! There is no model behind it. It answers `POST /v1/responses` (over SSE, or as one document when the request does
//! not ask for a stream) and `GET /v1/models` in the shapes that the real `OpenClaw` and Codex read (spec/drivers 8.3),
//! so that whole topologies run without a credential, and it can fail in each of the ways that the model probe
//! classifies (spec/drivers 7.1).
//!
//! ```
//! use occ_test_support::model_server::{Behaviour, ModelServer};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let server = ModelServer::start(Behaviour::echo()).await?;
//! assert!(server.base_url().ends_with("/v1"));
//! server.set(Behaviour::RateLimited { retry_after: None });
//! assert!(server.requests().is_empty());
//! server.shutdown().await;
//! # Ok::<(), occ_test_support::model_server::ModelServerError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod behaviour;
mod key;
mod record;
mod routes;
mod server;
mod turn;

pub use behaviour::{Behaviour, Reply};
pub use key::Authorization;
pub use record::{Endpoint, RecordedRequest};
pub use server::{ModelServer, ModelServerError};

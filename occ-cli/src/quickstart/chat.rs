//! One message to an Agent through its own gateway.

use std::time::Duration;

use occ_core::driver::GatewayEndpoint;
use serde_json::{Value, json};

use crate::exit::{Done, Exit, Failure};

/// How long one turn may take: a first turn on a busy machine is slow.
const TURN: Duration = Duration::from_mins(3);

/// Sends a message and returns the reply.
pub(crate) async fn ask(gateway: &GatewayEndpoint, message: &str) -> Done<String> {
    let file = gateway.password_file.as_deref().ok_or_else(|| {
        Failure::refused("this Compute gives no password file: ask your operator how to reach the gateway")
    })?;
    let password = std::fs::read_to_string(file).map_err(|error| {
        Failure::refused(format!(
            "cannot read the gateway's password file {file}: {}",
            error.kind()
        ))
    })?;
    let failed = |why: &str| Failure::new(Exit::Unreachable, format!("the gateway at {} {why}", gateway.url));
    let response = reqwest::Client::builder()
        .no_proxy()
        .timeout(TURN)
        .build()
        .map_err(|_| failed("cannot be asked: the HTTP client could not be set up"))?
        .post(format!("{}/v1/chat/completions", gateway.url))
        .bearer_auth(password.trim())
        .json(&json!({ "model": "openclaw/default", "messages": [{ "role": "user", "content": message }] }))
        .send()
        .await
        .map_err(|error| {
            failed(if error.is_timeout() {
                "did not answer in time"
            } else {
                "cannot be reached"
            })
        })?;
    let status = response.status();
    let body: Value = response
        .json()
        .await
        .map_err(|_| failed("answered something that is not JSON"))?;
    match body["choices"][0]["message"]["content"].as_str() {
        Some(reply) if status.is_success() => Ok(reply.to_owned()),
        _ => Err(failed(&format!(
            "answered with status {}; see the Agent's log",
            status.as_u16()
        ))),
    }
}

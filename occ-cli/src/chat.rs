//! One message to an Agent through its own gateway.

use std::{path::Path, time::Duration};

use occ_core::driver::GatewayEndpoint;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    client,
    exit::{Done, Exit, Failure},
    host::read_key,
};

/// Sends a message and returns the reply.
pub(crate) async fn ask(gateway: &GatewayEndpoint, message: &str, turn: Duration) -> Done<String> {
    let file = gateway.password_file.as_deref().ok_or_else(|| {
        Failure::refused("this Compute gives no password file: ask your operator how to reach the gateway")
    })?;
    let password = read_key(Path::new(file))?;
    let password = password
        .expose_str()
        .ok_or_else(|| Failure::refused(format!("{file} does not hold a password")))?;
    let failed = |why: &str| Failure::new(Exit::Unreachable, format!("the gateway at {} {why}", gateway.url));
    let response = client::http(turn)?
        .post(format!("{}/v1/chat/completions", gateway.url))
        .bearer_auth(password)
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
        _ => Err(refused(status, &body)),
    }
}

/// The gateway's own words are for whoever asked, and for nobody's log.
fn refused(status: StatusCode, body: &Value) -> Failure {
    let why = body["error"]["message"].as_str().unwrap_or_default();
    let why: String = why.chars().filter(|c| !c.is_control()).take(500).collect();
    Failure::refused(format!("the gateway answered {}: {why}", status.as_u16()))
}

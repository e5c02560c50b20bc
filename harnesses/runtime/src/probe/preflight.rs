//! A quick question to the provider that can save the whole check: is the credential rejected? (spec/drivers 7.1.1)

use std::time::Duration;

use reqwest::{Client, StatusCode, header, redirect::Policy};

use crate::{
    spec::Probe,
    supervise::{End, Supervisor},
};

/// How long the provider may take.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Whether the provider answers 401 to an empty request. Everything else, no answer included, proves nothing.
///
/// The Harness names the address in `expect.preflight` only where a 401 is the provider's own word on this credential.
pub async fn rejects(supervisor: &mut Supervisor, probe: &Probe) -> Result<bool, End> {
    let expect = |key: &str| probe.expect.get(key).map(String::as_str);
    let source = expect("credentialEnv").and_then(|name| probe.environment.get(name));
    let (Some(url), Some(credential)) = (expect("preflight"), source.and_then(|s| supervisor.secrets.resolve(s)))
    else {
        return Ok(false);
    };
    let Some(request) = request(url, expect("preflightAuth"), credential) else {
        return Ok(false);
    };
    tokio::select! {
        () = supervisor.stop.requested() => Err(End::Stop),
        answer = request.send() => Ok(answer.is_ok_and(|answer| answer.status() == StatusCode::UNAUTHORIZED)),
    }
}

fn request(url: &str, auth: Option<&str>, credential: &str) -> Option<reqwest::RequestBuilder> {
    let client = Client::builder()
        .redirect(Policy::none())
        .timeout(TIMEOUT)
        .no_proxy()
        .build()
        .ok()?;
    let mut value = match auth {
        Some("x-api-key") => header::HeaderValue::from_str(credential),
        _ => header::HeaderValue::from_str(&format!("Bearer {credential}")),
    }
    .ok()?;
    value.set_sensitive(true);
    let request = client
        .post(url)
        .header(header::CONTENT_TYPE, "application/json")
        .body("{}");
    Some(match auth {
        Some("x-api-key") => request
            .header("x-api-key", value)
            .header("anthropic-version", "2023-06-01"),
        _ => request.header(header::AUTHORIZATION, value),
    })
}

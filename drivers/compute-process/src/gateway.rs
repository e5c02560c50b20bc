//! The Agent's gateway: where it is, and whether it answers now.

use std::time::Duration;

use occ_core::driver::{GatewayEndpoint, RevisionRef};
use occ_runtime::{spec::LaunchSpec, status::Status};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::{active, error::Result, naming::AgentPaths, place::Instance, place::find_revision};

/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Longest answer that is read, in bytes.
const ANSWER_MAX_BYTES: u64 = 64 * 1024;

/// Where the version's gateway is; `None` when the version is not on the route, or its gateway does not run: whoever listens on
/// its port then would be given its password.
pub(crate) fn endpoint(instance: &Instance, target: &RevisionRef) -> Result<Option<GatewayEndpoint>> {
    let Some(agent) = instance.look(&target.agent)? else {
        return Ok(None);
    };
    if active::read(&agent)?.is_none_or(|active| active.revision_id != target.id) {
        return Ok(None);
    }
    let Some(revision) = find_revision(&agent, instance, target)? else {
        return Ok(None);
    };
    let status = Status::read(&revision.serving(&agent).status);
    if !status.is_some_and(|status| status.revision_id == target.id && status.ready() && status.supervisor.is_alive()) {
        return Ok(None);
    }
    let Some(readiness) = readiness_url(instance, &agent, target)? else {
        return Ok(None);
    };
    let password = agent.password();
    Ok(base(&readiness).map(|url| GatewayEndpoint {
        url: url.to_owned(),
        password_file: password.exists().then(|| password.to_string_lossy().into_owned()),
    }))
}

/// The URL at which the version's gateway says that it serves, from what its supervisor was told.
pub(crate) fn readiness_url(instance: &Instance, agent: &AgentPaths, target: &RevisionRef) -> Result<Option<String>> {
    let Some(revision) = find_revision(agent, instance, target)? else {
        return Ok(None);
    };
    Ok(LaunchSpec::read(&revision.serving(agent).spec)
        .ok()
        .map(|spec| spec.readiness.url))
}

/// A URL without its path.
fn base(url: &str) -> Option<&str> {
    let authority = url.strip_prefix("http://")?;
    let end = authority.find('/').unwrap_or(authority.len());
    url.get(.."http://".len() + end)
}

/// Asks the gateway itself: whether it answers 200 with a JSON text.
pub(crate) async fn answers(url: &str) -> bool {
    matches!(timeout(TIMEOUT, get(url)).await, Ok(Some(answer)) if is_ready(&answer))
}

// A loopback request of one line needs no client, whose TLS would want certificates that a host may lack.
async fn get(url: &str) -> Option<Vec<u8>> {
    let base = base(url)?;
    let path = url.get(base.len()..).filter(|path| !path.is_empty()).unwrap_or("/");
    let host = base.strip_prefix("http://")?;
    let mut stream = TcpStream::connect(host).await.ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nAccept: application/json\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX_BYTES).read_to_end(&mut answer).await.ok()?;
    Some(answer)
}

fn is_ready(answer: &[u8]) -> bool {
    let split = answer.windows(4).position(|window| window == b"\r\n\r\n");
    let Some((head, body)) = split.and_then(|at| Some((answer.get(..at)?, answer.get(at + 4..)?))) else {
        return false;
    };
    let status = head.split(|byte| *byte == b' ').nth(1);
    let whole = head.starts_with(b"HTTP/1.") && status == Some(b"200");
    whole && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_base() {
        assert_eq!(base("http://127.0.0.1:40123/readyz"), Some("http://127.0.0.1:40123"));
        assert_eq!(base("http://127.0.0.1:40123"), Some("http://127.0.0.1:40123"));
        assert_eq!(base("https://x/"), None);
    }

    #[test]
    fn only_200_with_json_is_ready() {
        assert!(is_ready(b"HTTP/1.1 200 OK\r\nx: y\r\n\r\n{\"ready\":true}"));
        for other in [
            &b"HTTP/1.1 503 Service Unavailable\r\n\r\n{\"ready\":false}"[..],
            b"HTTP/1.1 200 OK\r\n\r\n<html>",
            b"HTTP/1.1 200 OK\r\n",
            b"SSH-2.0-x",
            b"",
        ] {
            assert!(!is_ready(other), "{}", String::from_utf8_lossy(other));
        }
    }
}

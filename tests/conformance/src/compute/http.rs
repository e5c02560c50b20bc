//! A gateway's client, as small as can be.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use url::Url;

/// For one request: a gateway that does not answer is asked again.
const TIMEOUT: Duration = Duration::from_secs(10);
const RESPONSE_MAX_BYTES: u64 = 1024 * 1024;

/// The body of a 200 answer to `GET path` at an `http` URL; `None` for everything else.
pub(super) async fn get(base: &str, path: &str) -> Option<Vec<u8>> {
    let base = Url::parse(base).ok().filter(|url| url.scheme() == "http")?;
    let (host, port) = (base.host_str()?, base.port_or_known_default()?);
    tokio::time::timeout(TIMEOUT, ask(host, port, path)).await.ok()?
}

async fn ask(host: &str, port: u16, path: &str) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await.ok()?;
    // HTTP/1.0: the body ends where the connection does, without chunks.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.take(RESPONSE_MAX_BYTES).read_to_end(&mut answer).await.ok()?;
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.lines().next()?.split(' ').nth(1)?;
    (status == "200").then(|| answer.split_off(end + 4))
}

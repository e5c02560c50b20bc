//! Whether a component serves.

use std::time::Duration;

use reqwest::Url;

use super::listener;

/// Longest answer that is read, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(3);

/// What one look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// 200 with a JSON body.
    Ready,
    /// No answer, or another status: it may still come.
    NotYet,
    /// 200 with something else, or from a process that is none of the component's: another program answers in its place.
    Foreign,
}

/// Looks at one loopback URL.
pub struct Readiness {
    client: reqwest::Client,
    url: Url,
}

impl Readiness {
    /// A look at this URL; `None` when it is none.
    pub fn new(url: &str) -> Option<Self> {
        // Loopback speaks no TLS: without roots the client needs none of the host's certificates, which may be absent.
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .tls_certs_only([])
            .build()
            .ok()?;
        Some(Self {
            client,
            url: Url::parse(url).ok()?,
        })
    }

    /// Asks once.
    pub async fn look(&self) -> Seen {
        let Ok(mut response) = self.client.get(self.url.clone()).send().await else {
            return Seen::NotYet;
        };
        if response.status() != reqwest::StatusCode::OK {
            return Seen::NotYet;
        }
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() <= MAX_BYTES => body.extend_from_slice(&chunk),
                Ok(Some(_)) => return Seen::Foreign,
                Ok(None) => break,
                Err(_) => return Seen::NotYet,
            }
        }
        let json = serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok();
        let ours = self.url.port_or_known_default().and_then(listener::is_ours);
        if json && ours != Some(false) {
            Seen::Ready
        } else {
            Seen::Foreign
        }
    }
}

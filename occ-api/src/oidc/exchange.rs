//! One request to the provider: within a time, within a length, and to nowhere that is not safe.

use std::time::Duration;

use openidconnect::{HttpRequest, HttpResponse};
use reqwest::{StatusCode, redirect::Policy};
use url::{Host, Url};

use super::InvalidOidc;

/// Longest answer of the provider that is read.
const ANSWER_MAX: usize = 1024 * 1024;

/// What asks the provider.
#[derive(Clone)]
pub(super) struct Exchange {
    http: reqwest::Client,
    /// The provider itself is on this machine, without TLS.
    loopback: bool,
}

/// The provider could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("the provider did not answer, failed, answered with too much, or names a place without TLS")]
pub(super) struct Unanswered;

fn on_loopback(url: &Url) -> bool {
    url.scheme() == "http"
        && match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        }
}

impl Exchange {
    pub(super) fn new(issuer: &Url, timeout: Duration) -> Result<Self, InvalidOidc> {
        let loopback = on_loopback(issuer);
        if !loopback && issuer.scheme() != "https" {
            return Err(InvalidOidc::Issuer);
        }
        // The process's TLS provider; a second call keeps the first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .timeout(timeout)
            .no_proxy()
            // A redirect could lead to an address inside.
            .redirect(Policy::none())
            .build()
            .map_err(|_| InvalidOidc::Client)?;
        Ok(Self { http, loopback })
    }

    /// Whether what the provider names may be gone to.
    pub(super) fn is_safe(&self, url: &Url) -> bool {
        url.scheme() == "https" || self.loopback && on_loopback(url)
    }

    pub(super) async fn send(self, request: HttpRequest) -> Result<HttpResponse, Unanswered> {
        let request = reqwest::Request::try_from(request).map_err(|_| Unanswered)?;
        if !self.is_safe(request.url()) {
            return Err(Unanswered);
        }
        let mut response = self.http.execute(request).await.map_err(|_| Unanswered)?;
        if response.status().is_server_error() || response.status() == StatusCode::TOO_MANY_REQUESTS {
            return Err(Unanswered);
        }
        let mut answer = HttpResponse::new(Vec::new());
        *answer.status_mut() = response.status();
        *answer.headers_mut() = std::mem::take(response.headers_mut());
        while let Some(chunk) = response.chunk().await.map_err(|_| Unanswered)? {
            if answer.body().len() + chunk.len() > ANSWER_MAX {
                return Err(Unanswered);
            }
            answer.body_mut().extend_from_slice(&chunk);
        }
        Ok(answer)
    }
}

//! From where the API is asked: which proxies speak for their clients, and which web pages may act for a person.

use std::{net::IpAddr, str::FromStr, sync::Arc};

use ipnet::IpNet;
use url::Url;

use crate::oidc::Oidc;

/// What an installation says about those around its API. Nobody is trusted unless named.
#[derive(Debug, Clone)]
pub struct Access {
    /// Proxies whose `Forwarded` or `X-Forwarded-*` headers are believed. From anybody else such a header is refused.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// Origins whose pages may act for a signed-in person; the API's own, as the browser calls it, when none is named.
    pub origins: Vec<TrustedOrigin>,
    /// How many callers may wait for news of deployments at once.
    pub listeners: usize,
    /// The identity provider that people may sign in through.
    pub oidc: Option<Arc<Oidc>>,
}

impl Default for Access {
    fn default() -> Self {
        Self {
            trusted_proxies: Vec::new(),
            origins: Vec::new(),
            listeners: 256,
            oidc: None,
        }
    }
}

/// An address, or a network in CIDR notation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedProxy(IpNet);

/// A scheme, a host and perhaps a port, as browsers send them in `Origin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedOrigin(String);

/// A text is not a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an address or a network, such as 10.0.0.7 or 10.0.0.0/8")]
pub struct InvalidProxy;

/// A text is not an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an origin without a path, such as https://occ.example.com")]
pub struct InvalidOrigin;

impl TrustedOrigin {
    /// In its one spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TrustedProxy {
    type Err = InvalidProxy;
    fn from_str(text: &str) -> Result<Self, InvalidProxy> {
        let network = text.parse::<IpNet>().ok();
        let network = network.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        network.map(Self).ok_or(InvalidProxy)
    }
}

impl FromStr for TrustedOrigin {
    type Err = InvalidOrigin;
    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        origin(text).map(Self).ok_or(InvalidOrigin)
    }
}

/// The one spelling of an origin: lower case, without the scheme's own port.
pub(crate) fn origin(text: &str) -> Option<String> {
    let url: Url = text.parse().ok()?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let nobody = url.username().is_empty() && url.password().is_none();
    let web = matches!(url.scheme(), "http" | "https") && url.has_host();
    (web && bare && nobody).then(|| url.origin().ascii_serialization())
}

impl Access {
    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|proxy| proxy.0.contains(&peer))
    }

    /// Whether pages of this origin may act for a person; `own` is the API's, as the browser calls it.
    pub(crate) fn accepts(&self, page: &str, own: Option<&str>) -> bool {
        if self.origins.is_empty() {
            own == Some(page)
        } else {
            self.origins.iter().any(|trusted| trusted.0 == page)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_one_spelling_and_no_path() {
        for (text, normal) in [
            ("https://OCC.example.com:443", Some("https://occ.example.com")),
            ("http://127.0.0.1:8080/", Some("http://127.0.0.1:8080")),
            ("http://[::1]:80", Some("http://[::1]")),
            ("https://a/b", None),
            ("https://a?b", None),
            ("https://u@a", None),
            ("file:///a", None),
            ("null", None),
            ("", None),
        ] {
            assert_eq!(origin(text).as_deref(), normal, "{text}");
        }
    }

    #[test]
    fn a_proxy_is_an_address_or_a_network() {
        let trusts = |text: &str, peer: &str| {
            let access = Access {
                trusted_proxies: vec![text.parse().unwrap()],
                ..Access::default()
            };
            access.trusts(peer.parse().unwrap())
        };
        assert!(trusts("10.0.0.0/8", "10.1.2.3") && trusts("10.0.0.7", "10.0.0.7") && trusts("::1", "::1"));
        assert!(!trusts("10.0.0.7", "10.0.0.8") && !trusts("10.0.0.0/8", "::1"));
        assert_eq!("10.0.0.0/33".parse::<TrustedProxy>(), Err(InvalidProxy));
        assert!(!Access::default().trusts("127.0.0.1".parse().unwrap()));
    }
}

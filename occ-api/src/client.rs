//! Who is at the other end: the client's address and how it calls the API, by what a trusted proxy says or by the connection.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::ConnectInfo,
    http::{HeaderMap, header, request::Parts, uri::Authority},
};
use occ_core::{admission::Refusal, reason::ApiCode};

use crate::access::{Access, origin};

/// Headers by which a proxy speaks for its client.
const FORWARDING: [&str; 5] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-real-ip",
];

/// The other end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Client {
    /// Its address, as far as it is known.
    pub address: Option<IpAddr>,
    /// The API's origin, as the client calls it.
    pub own: Option<String>,
    /// Whether it came over https.
    pub secure: bool,
}

/// What proxies said of one hop.
#[derive(Debug, Default, Clone)]
struct Hop {
    address: Option<IpAddr>,
    proto: Option<String>,
    host: Option<String>,
}

impl Client {
    /// 403 when somebody who is not a trusted proxy speaks for others (spec/engine 19.3).
    pub(crate) fn of(parts: &Parts, access: &Access) -> Result<Self, Refusal> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map(|ConnectInfo(peer)| peer.ip().to_canonical());
        let host = one(&parts.headers, header::HOST.as_str()).or_else(|| parts.uri.authority().map(Authority::as_str));
        let mut hop = Hop {
            address: peer,
            ..Hop::default()
        };
        if FORWARDING.iter().any(|name| parts.headers.contains_key(*name)) {
            if !peer.is_some_and(|peer| access.trusts(peer)) {
                return Err(Refusal::fixed(
                    ApiCode::Forbidden,
                    "Forwarding headers are accepted from a trusted proxy only.",
                ));
            }
            hop = forwarded(&parts.headers, access)?;
            hop.address = hop.address.map(|address| address.to_canonical());
        }
        let secure = match hop.proto.as_deref() {
            Some("https") => true,
            Some("http") => false,
            Some(_) => return Err(Refusal::invalid("A forwarding header names no known scheme.")),
            None => parts.uri.scheme_str() == Some("https"),
        };
        let scheme = if secure { "https" } else { "http" };
        let host = hop.host.as_deref().or(host);
        Ok(Self {
            address: hop.address,
            own: host.and_then(|host| origin(&format!("{scheme}://{host}"))),
            secure,
        })
    }

    /// 403 unless the page that makes a browser send this may act for a person. A client that is no browser sends no `Origin`,
    /// which is enough where nothing is sent by itself (`needed` is false).
    pub(crate) fn check_origin(&self, headers: &HeaderMap, access: &Access, needed: bool) -> Result<(), Refusal> {
        let refused = || {
            tracing::warn!(address = ?self.address, "http.untrusted-origin");
            Refusal::fixed(ApiCode::Forbidden, "The request's origin is not trusted.")
        };
        let mut pages = headers.get_all(header::ORIGIN).iter();
        let page = match (pages.next(), pages.next()) {
            (None, _) => None,
            (Some(page), None) => Some(page.to_str().ok().and_then(origin).ok_or_else(refused)?),
            (Some(_), Some(_)) => return Err(refused()),
        };
        let accepted = match &page {
            Some(page) => access.accepts(page, self.own.as_deref()),
            None => !needed,
        };
        // A named origin may be another site than the API; without one, what the browser says of the relation must agree.
        let relation = one(headers, "sec-fetch-site");
        let related = !access.origins.is_empty() && page.is_some()
            || matches!(relation, None | Some("same-origin" | "none"))
                && headers.get_all("sec-fetch-site").iter().count() <= 1;
        if accepted && related { Ok(()) } else { Err(refused()) }
    }
}

/// The one value of a header.
fn one<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Every item of a header that is a list, over all its lines.
fn items<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    let values = headers.get_all(name).iter();
    let texts = values.map(|value| value.to_str().unwrap_or_default());
    texts.flat_map(|text| text.split(',').map(str::trim)).collect()
}

/// The hop that trusted proxies say is the client: the last that is not a trusted proxy itself.
fn forwarded(headers: &HeaderMap, access: &Access) -> Result<Hop, Refusal> {
    let standard = headers.contains_key("forwarded");
    if standard && FORWARDING[1..].iter().any(|name| headers.contains_key(*name)) {
        return Err(Refusal::invalid(
            "Send either Forwarded or X-Forwarded headers, not both.",
        ));
    }
    let hops = if standard {
        items(headers, "forwarded").into_iter().map(hop).collect()
    } else {
        listed(headers)
    };
    let mut client = Hop::default();
    for hop in hops.into_iter().rev() {
        let proxy = hop.address.is_some_and(|address| access.trusts(address.to_canonical()));
        client = hop;
        if !proxy {
            break;
        }
    }
    Ok(client)
}

/// One element of `Forwarded` (RFC 7239).
fn hop(element: &str) -> Hop {
    let mut hop = Hop::default();
    for pair in element.split(';') {
        let Some((name, value)) = pair.split_once('=') else {
            continue;
        };
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "for" => hop.address = address(value),
            "proto" => hop.proto = Some(value.to_ascii_lowercase()),
            "host" => hop.host = Some(value.to_owned()),
            _ => {}
        }
    }
    hop
}

/// The hops of the `X-Forwarded` headers. Their schemes and hosts are one for each hop, or one for all.
fn listed(headers: &HeaderMap) -> Vec<Hop> {
    let mut addresses = items(headers, "x-forwarded-for");
    if addresses.is_empty() {
        addresses = items(headers, "x-real-ip");
    }
    let (protos, hosts) = (items(headers, "x-forwarded-proto"), items(headers, "x-forwarded-host"));
    let hops = addresses.len().max(1);
    let at = |values: &[&str], index: usize| {
        let value = if values.len() == hops {
            values.get(index)
        } else {
            values.last()
        };
        value.map(|value| (*value).to_owned())
    };
    (0..hops)
        .map(|index| Hop {
            address: addresses.get(index).and_then(|text| address(text)),
            proto: at(&protos, index).map(|proto| proto.to_ascii_lowercase()),
            host: at(&hosts, index),
        })
        .collect()
}

/// An address, perhaps with a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    let plain = bare.parse().ok();
    plain.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn access() -> Access {
        Access {
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
            ..Access::default()
        }
    }

    fn client(peer: &str, headers: &[(&str, &str)]) -> Result<Client, Refusal> {
        let mut request = Request::builder().uri("/accounts").header("host", "occ.internal:8080");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let peer: IpAddr = peer.parse().unwrap();
        parts.extensions.insert(ConnectInfo(SocketAddr::from((peer, 1))));
        Client::of(&parts, &access())
    }

    fn seen(address: &str, own: &str) -> Client {
        Client {
            address: Some(address.parse().unwrap()),
            own: Some(own.to_owned()),
            secure: own.starts_with("https"),
        }
    }

    #[test]
    fn a_trusted_proxy_speaks_for_its_client() {
        for (headers, expected) in [
            (&[][..], seen("10.0.0.1", "http://occ.internal:8080")),
            (
                &[
                    ("x-forwarded-for", "192.0.2.1"),
                    ("x-forwarded-proto", "https"),
                    ("x-forwarded-host", "occ.example.com"),
                ],
                seen("192.0.2.1", "https://occ.example.com"),
            ),
            // What the client itself wrote stands before what the proxies added.
            (
                &[("x-forwarded-for", "198.51.100.9, 192.0.2.1, 10.0.0.2")],
                seen("192.0.2.1", "http://occ.internal:8080"),
            ),
            (
                &[("x-forwarded-for", "192.0.2.1"), ("x-forwarded-for", "10.0.0.2")],
                seen("192.0.2.1", "http://occ.internal:8080"),
            ),
            (
                &[("x-forwarded-for", "[2001:db8::1]:99")],
                seen("2001:db8::1", "http://occ.internal:8080"),
            ),
            (
                &[("x-forwarded-for", "::ffff:192.0.2.1")],
                seen("192.0.2.1", "http://occ.internal:8080"),
            ),
            (
                &[("x-real-ip", "192.0.2.1")],
                seen("192.0.2.1", "http://occ.internal:8080"),
            ),
            (&[("x-forwarded-proto", "http, https")], {
                Client {
                    address: None,
                    ..seen("::", "https://occ.internal:8080")
                }
            }),
            (
                &[(
                    "forwarded",
                    "for=198.51.100.9;proto=http, For=\"[2001:db8::1]:4711\";Proto=https;Host=occ.example.com, for=10.0.0.2;proto=http",
                )],
                seen("2001:db8::1", "https://occ.example.com"),
            ),
            (
                &[("forwarded", "for=unknown")],
                Client {
                    address: None,
                    ..seen("::", "http://occ.internal:8080")
                },
            ),
        ] {
            assert_eq!(client("10.0.0.1", headers), Ok(expected), "{headers:?}");
        }
    }

    #[test]
    fn nobody_else_does() {
        for (name, value) in [
            ("forwarded", "for=192.0.2.1"),
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "occ.example.com"),
            ("x-real-ip", "192.0.2.1"),
        ] {
            let refusal = client("192.0.2.7", &[(name, value)]).unwrap_err();
            assert_eq!(refusal.code(), ApiCode::Forbidden, "{name}");
        }
        let both = [("forwarded", "for=192.0.2.1"), ("x-forwarded-proto", "https")];
        assert_eq!(client("10.0.0.1", &both).unwrap_err().code(), ApiCode::InvalidRequest);
        let odd = [("x-forwarded-proto", "gopher")];
        assert_eq!(client("10.0.0.1", &odd).unwrap_err().code(), ApiCode::InvalidRequest);
    }

    fn checked(headers: &[(&str, &str)], origins: &[&str], needed: bool) -> bool {
        let access = Access {
            origins: origins.iter().map(|origin| origin.parse().unwrap()).collect(),
            ..Access::default()
        };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(axum::http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        seen("192.0.2.1", "https://occ.example.com")
            .check_origin(&map, &access, needed)
            .is_ok()
    }

    #[test]
    fn only_trusted_pages_act_for_a_person() {
        let own = ("origin", "https://occ.example.com");
        let site = |value| ("sec-fetch-site", value);
        for (headers, trusted) in [
            (&[own][..], true),
            (&[own, site("same-origin")], true),
            (&[own, site("cross-site")], false),
            (&[own, site("same-site")], false),
            (&[own, own], false),
            (&[("origin", "https://OCC.example.com:443")], true),
            (&[("origin", "http://occ.example.com")], false),
            (&[("origin", "https://occ.example.com:8443")], false),
            (&[("origin", "https://evil.example")], false),
            (&[("origin", "null")], false),
            (&[], false),
            (&[site("same-origin")], false),
        ] {
            assert_eq!(checked(headers, &[], true), trusted, "{headers:?}");
        }
        // Where the browser sends nothing by itself, a client that is none needs no origin; a browser's is looked at all the same.
        assert!(checked(&[], &[], false));
        assert!(!checked(&[("origin", "https://evil.example")], &[], false));
        assert!(!checked(&[site("cross-site")], &[], false));
        // With origins named, those and no others.
        let console = ["https://console.example"];
        assert!(checked(
            &[("origin", "https://console.example"), site("cross-site")],
            &console,
            true
        ));
        assert!(!checked(&[own], &console, true));
    }
}

//! The headers that make a request conditional.

use axum::http::{HeaderMap, Method, header};
use occ_core::{
    admission::Refusal,
    control::{Conditions, IfMatch, Once, Tag},
    digest,
};

use crate::operation::Operation;

const KEY_MAX: usize = 255;

/// What the headers ask for, as far as the operation takes it.
pub(crate) fn conditions(
    headers: &HeaderMap,
    operation: Option<&Operation>,
    method: &Method,
    path: &str,
    body: &[u8],
) -> Result<Conditions, Refusal> {
    Ok(Conditions {
        once: once(headers, operation, method, path, body)?,
        if_match: if_match(headers, operation)?,
    })
}

/// The one value of a header.
fn one<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value
            .to_str()
            .map(Some)
            .map_err(|_| Refusal::invalid("A header holds characters that it may not.")),
        (Some(_), Some(_)) => Err(Refusal::invalid("A header is there twice.")),
    }
}

fn once(
    headers: &HeaderMap,
    operation: Option<&Operation>,
    method: &Method,
    path: &str,
    body: &[u8],
) -> Result<Option<Once>, Refusal> {
    let Some(key) = one(headers, "idempotency-key")? else {
        return Ok(None);
    };
    if !operation.is_some_and(|operation| operation.once) {
        return Err(Refusal::invalid("This request takes no Idempotency-Key."));
    }
    let visible = |b: u8| (0x21..=0x7e).contains(&b);
    if key.is_empty() || key.len() > KEY_MAX || !key.bytes().all(visible) {
        return Err(Refusal::invalid(
            "An Idempotency-Key must be 1 to 255 visible characters without spaces.",
        ));
    }
    let mut request = format!("{method} {path}\n").into_bytes();
    request.extend_from_slice(body);
    Ok(Some(Once {
        key: key.to_owned(),
        fingerprint: digest::hex(&request),
    }))
}

fn if_match(headers: &HeaderMap, operation: Option<&Operation>) -> Result<Option<IfMatch>, Refusal> {
    let Some(value) = one(headers, header::IF_MATCH.as_str())? else {
        return Ok(None);
    };
    if !operation.is_some_and(|operation| operation.tagged && operation.method != "GET") {
        return Err(Refusal::invalid("This request takes no If-Match."));
    }
    if value.trim() == "*" {
        return Ok(Some(IfMatch::Any));
    }
    let tags: Vec<_> = value.split(',').map(|tag| Tag(tag.trim().to_owned())).collect();
    let quoted = |tag: &Tag| {
        let strong = tag.0.strip_prefix("W/").unwrap_or(&tag.0);
        strong.len() >= 2 && strong.starts_with('"') && strong.ends_with('"')
    };
    if tags.iter().all(quoted) {
        Ok(Some(IfMatch::Tags(tags)))
    } else {
        Err(Refusal::invalid(
            "If-Match must be * or the ETags of states, in quotes.",
        ))
    }
}

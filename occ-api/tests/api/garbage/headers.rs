//! Headers that say nothing anybody understands.

use reqwest::header::HeaderValue;

use super::{Ground, routes::routes};

type Headers = &'static [(&'static str, &'static [u8])];

const CASES: &[(&str, Headers)] = &[
    ("no key", &[("x-api-key", b"")]),
    ("a key in bytes", &[("x-api-key", b"\xff\xfe")]),
    (
        "a token that is none",
        &[("authorization", b"Bearer x"), ("authorization", b"Bearer")],
    ),
    (
        "a cookie that is none",
        &[("cookie", b"occ_session=\xff; ; =; occ_session")],
    ),
    ("an empty Idempotency-Key", &[("idempotency-key", b"")]),
    ("an Idempotency-Key with a space", &[("idempotency-key", b"a b")]),
    ("an Idempotency-Key in bytes", &[("idempotency-key", b"\xff")]),
    (
        "two Idempotency-Keys",
        &[("idempotency-key", b"a"), ("idempotency-key", b"b")],
    ),
    ("an empty If-Match", &[("if-match", b"")]),
    ("an If-Match that is not closed", &[("if-match", b"\"")]),
    ("an If-Match of nothing but commas", &[("if-match", b",,,")]),
    ("two If-Match", &[("if-match", b"*"), ("if-match", b"*")]),
    (
        "a trace that is none",
        &[("traceparent", b"00-0-0-\xff"), ("tracestate", b"=,=,")],
    ),
    ("an origin that is none", &[("origin", b"\xff"), ("origin", b"null")]),
    ("a forwarding that is none", &[("forwarded", b"for=\";;;,,,=")]),
    (
        "a forwarded client that is none",
        &[("x-forwarded-for", b"999.1.1.1, \xff")],
    ),
    ("a range", &[("range", b"bytes=-1,0-,9-1")]),
    (
        "encodings that are none",
        &[
            ("accept-encoding", b"*;q=0"),
            ("content-encoding", b"\xff"),
            ("te", b"x"),
        ],
    ),
    (
        "a type that is not served",
        &[("accept", b"\xff/\xff;q=-1"), ("accept-charset", b"utf-16")],
    ),
    (
        "an upgrade",
        &[("upgrade", b"h2c, websocket"), ("http2-settings", b"AAMAAABkAAQAAP__")],
    ),
    ("another method", &[("x-http-method-override", b"DELETE")]),
    ("another host", &[("host", b"\xff:99999999")]),
];

#[tokio::test]
async fn headers_that_are_none_are_no_failure_of_any_route_and_write_nothing() {
    let mut ground = Ground::new().await;
    let long = HeaderValue::from_bytes(&b"a".repeat(100_000)).expect("a long value");
    for route in routes() {
        if route.is_callback() {
            continue;
        }
        for (case, headers) in CASES {
            // Whatever is thought of the headers, the query is refused.
            let path = format!("{}?stranger", route.path(&ground.named));
            let mut request = ground.request_to(&route, &path);
            for (name, value) in *headers {
                request = request.header(*name, HeaderValue::from_bytes(value).expect("a value"));
            }
            let body = if route.body.is_some() { "{" } else { "" };
            let request = request.header("content-type", "application/json").body(body);
            let status = ground.answer(&route, case, request).await;
            let of = format!("{} {} with {case}", route.method, route.template);
            assert!(status.is_client_error() || route.is_deaf(), "{of}: {status}");
            ground.unmoved(&of).await;
        }
        let path = format!("{}?stranger", route.path(&ground.named));
        let request = ground.request_to(&route, &path).header("x-long", &long);
        let status = ground.answer(&route, "a header of 100,000 bytes", request).await;
        assert!(
            status.is_client_error() || route.is_deaf(),
            "{}: {status}",
            route.template
        );
    }
    ground.unmoved("a header of 100,000 bytes").await;
}

//! The span of a request, in the trace that the caller names (W3C Trace Context).

use axum::http::{HeaderMap, StatusCode};
use occ_core::{
    id::RequestId,
    trace::{self, TraceContext},
};
use tracing::{Span, field::Empty, info_span};

/// Where the caller is in its trace. What is no context is ignored: nobody is refused for it.
pub(crate) fn context(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all("traceparent").iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else {
        return None;
    };
    let states: Option<Vec<_>> = headers
        .get_all("tracestate")
        .iter()
        .map(|value| value.to_str().ok())
        .collect();
    let state = states.map(|states| states.join(","));
    TraceContext::parse(parent.to_str().ok()?, state.as_deref())
}

/// The span of a request. It names the route's template, and nothing that the caller wrote.
pub(crate) fn request(id: RequestId, method: &'static str, route: Option<&str>, parent: Option<&TraceContext>) -> Span {
    let span = info_span!(
        "http.request",
        otel.kind = "server",
        otel.name = %format_args!("{method} {}", route.unwrap_or("none")),
        otel.status_code = Empty,
        request = %id,
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
    );
    if let Some(parent) = parent {
        trace::adopt(&span, parent);
    }
    span
}

/// What was answered. A refusal is the caller's, and no error of the server.
pub(crate) fn answered(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(pairs: &[(&'static str, &[u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_bytes(value).expect("a value"));
        }
        headers
    }

    #[test]
    fn a_context_is_read_from_one_parent_and_any_number_of_states() {
        let parent = ("traceparent", PARENT.as_bytes());
        let found = context(&headers(&[parent, ("tracestate", b"a=1"), ("tracestate", b"b=2")])).expect("a context");
        assert_eq!((found.parent(), found.state()), (PARENT, Some("a=1,b=2")));
        let found = context(&headers(&[parent, ("tracestate", b"\xff")])).expect("a context");
        assert_eq!((found.parent(), found.state()), (PARENT, None));
    }

    #[test]
    fn without_exactly_one_good_parent_there_is_no_context() {
        let parent = ("traceparent", PARENT.as_bytes());
        for garbage in [
            headers(&[]),
            headers(&[("tracestate", b"a=1")]),
            headers(&[parent, parent]),
            headers(&[("traceparent", b"garbage")]),
            headers(&[("traceparent", b"\xff")]),
        ] {
            assert_eq!(context(&garbage), None, "{garbage:?}");
        }
    }
}

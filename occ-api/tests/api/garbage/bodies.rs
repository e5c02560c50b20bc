//! Bodies that are none, too long, or of another type.

use super::{
    Ground, faults,
    routes::{routes, taking},
    sample::Sampler,
};
use crate::served::Seen;

#[tokio::test]
async fn a_body_that_is_none_is_refused_by_every_route_and_writes_nothing() {
    let mut ground = Ground::new().await;
    let document = occ_api::openapi();
    for (route, body) in taking() {
        let sampler = Sampler {
            document: &document,
            named: &ground.named,
        };
        for (case, bytes) in faults::of(&sampler.body(&body.schema)) {
            assert!(bytes.len() < body.limit, "{} {case}", route.template);
            let request = ground.request(&route).header("content-type", "application/json");
            ground.refused(&route, &case, request.body(bytes), &[400]).await;
        }
    }
}

#[tokio::test]
async fn a_sound_body_of_another_type_is_refused_by_every_route_and_writes_nothing() {
    let mut ground = Ground::new().await;
    let document = occ_api::openapi();
    let types: [&[&[u8]]; 15] = [
        &[],
        &[b""],
        &[b"text/plain"],
        &[b"text/json"],
        &[b"application/jsonp"],
        &[b"application/vnd.api+json"],
        &[b"application/x-www-form-urlencoded"],
        &[b"multipart/form-data; boundary=x"],
        &[b"application/json; charset=utf-16"],
        &[b"application/json; charset=utf-8; other=x"],
        &[b"application/json, text/plain"],
        &[b"*/*"],
        &[b"\xff\xfe"],
        // Twice is none, whichever comes first.
        &[b"application/json", b"text/plain"],
        &[b"text/plain", b"application/json"],
    ];
    for (route, body) in taking() {
        let sampler = Sampler {
            document: &document,
            named: &ground.named,
        };
        let sound = sampler.body(&body.schema).to_string();
        for values in types {
            let mut request = ground.request(&route);
            for value in values {
                request = request.header("content-type", *value);
            }
            let case = format!(
                "the type {:?}",
                values
                    .iter()
                    .map(|value| value.escape_ascii().to_string())
                    .collect::<Vec<_>>()
            );
            ground.refused(&route, &case, request.body(sound.clone()), &[415]).await;
        }
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_by_every_route_and_one_of_the_longest_is_read() {
    let mut ground = Ground::new().await;
    for (route, body) in taking() {
        let padded = |length: usize| format!("{{{}", " ".repeat(length - 1));
        for (length, status) in [(body.limit, 400), (body.limit + 1, 413)] {
            let request = ground.request(&route).header("content-type", "application/json");
            let case = format!("a body of {length} bytes");
            ground
                .refused(&route, &case, request.body(padded(length)), &[status])
                .await;
        }
    }
}

#[tokio::test]
async fn a_route_that_takes_no_body_refuses_every_one_and_writes_nothing() {
    let mut ground = Ground::new().await;
    for route in routes() {
        if route.body.is_some() || route.is_deaf() {
            continue;
        }
        for (body, status) in [("{}", 400), ("\0", 400), (&*"x".repeat(64 * 1024 + 1), 413)] {
            let request = ground.request(&route).header("content-type", "application/json");
            let case = format!("a body of {} bytes", body.len());
            ground
                .refused(&route, &case, request.body(body.to_owned()), &[status])
                .await;
        }
    }
}

/// What the other tests break is sound: of each body, at most what it says is not acceptable.
#[tokio::test]
async fn the_bodies_that_are_broken_are_sound_before() {
    let ground = Ground::new().await;
    let document = occ_api::openapi();
    for (route, body) in taking() {
        let sampler = Sampler {
            document: &document,
            named: &ground.named,
        };
        let request = ground.request(&route).json(&sampler.body(&body.schema));
        let seen = Seen::of(request.send().await.expect("an answer")).await;
        let (path, code) = seen.detail();
        let shapeless = [
            "UNKNOWN_FIELD",
            "REQUIRED",
            "INVALID_TYPE",
            "INVALID_FORMAT",
            "TOO_DEEP",
        ];
        // The keys of a map may be those of a catalogue, which the document does not have.
        let shape = shapeless.contains(&code) && !path.ends_with("/api_key");
        assert!(!shape, "{}: {path} is {code}", route.template);
    }
}

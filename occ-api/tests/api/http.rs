//! The API over real HTTP on loopback: envelope, headers, statuses, closed bodies and queries.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::served::{Seen, Served};

#[tokio::test]
async fn every_answer_has_the_envelope_whoever_wrote_it() {
    let served = Served::new().await;
    for (method, path, status, code) in [
        (Method::GET, "/installation", 200, ""),
        (Method::GET, "/healthz", 200, ""),
        (Method::GET, "/readyz", 200, ""),
        (Method::GET, "/nothing/here", 404, "NOT_FOUND"),
        (Method::GET, "/%ff%fe", 404, "NOT_FOUND"),
        (Method::PUT, "/namespaces", 405, "METHOD_NOT_ALLOWED"),
        (
            Method::GET,
            "/namespaces/ns_123e4567-e89b-42d3-a456-426614174000",
            404,
            "NOT_FOUND",
        ),
        (
            Method::GET,
            "/namespaces/agt_123e4567-e89b-42d3-a456-426614174000",
            400,
            "INVALID_REQUEST",
        ),
        (
            Method::GET,
            "/namespaces/NS_123e4567-e89b-42d3-a456-426614174000",
            400,
            "INVALID_REQUEST",
        ),
        (Method::GET, "/namespaces/%00", 400, "INVALID_REQUEST"),
        (Method::GET, "/namespaces?other=1", 400, "INVALID_REQUEST"),
    ] {
        let seen = served.send(method, path).await;
        assert_eq!((seen.status.as_u16(), seen.code()), (status, code), "{path}");
        if status == 405 {
            let allow = seen
                .headers
                .get("allow")
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default();
            assert!(allow.contains("GET") && allow.contains("POST"), "{allow}");
        }
    }
}

#[tokio::test]
async fn every_failure_of_authentication_reads_the_same() {
    let served = Served::new().await;
    let url = format!("http://{}/namespaces", served.address);
    let unknown = "occ_123e4567-e89b-42d3-a456-426614174000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let mut wrong = served.key.clone();
    let last = wrong.pop().expect("a key has characters");
    wrong.push(if last == 'A' { 'B' } else { 'A' });
    let tries = [
        served.http.get(&url),
        served.http.get(&url).header("x-api-key", ""),
        served.http.get(&url).header("x-api-key", unknown),
        served.http.get(&url).header("x-api-key", &wrong),
        served.http.get(&url).header("x-api-key", "x".repeat(5000)),
        served.http.get(&url).bearer_auth(&served.key),
        served
            .http
            .get(&url)
            .header("x-api-key", &served.key)
            .header("x-api-key", &served.key),
        served
            .http
            .post(&url)
            .header("x-api-key", &wrong)
            .json(&json!({ "name": "n" })),
    ];
    for (number, request) in tries.into_iter().enumerate() {
        let seen = Seen::of(request.send().await.expect("an answer")).await;
        assert_eq!(
            (seen.status.as_u16(), seen.code()),
            (401, "UNAUTHENTICATED"),
            "try {number}"
        );
        assert_eq!(
            seen.body["error"]["message"], "Sign in, or send a valid service key in the x-api-key header.",
            "try {number}"
        );
    }
}

#[tokio::test]
async fn bodies_are_closed_and_each_fault_is_pointed_at() {
    let served = Served::new().await;
    let configuration = served.world.configuration(json!({})).await;
    let agents = served.agents();
    let valid = json!({ "name": "a", "configurationId": configuration });
    let with = |key: &str, value: Value| {
        let mut body = valid.clone();
        body[key] = value;
        body
    };
    for (body, path, code) in [
        (json!({ "configurationId": configuration }), "/name", "REQUIRED"),
        (
            with("servicePrincipalId", json!("spn_x")),
            "/servicePrincipalId",
            "UNKNOWN_FIELD",
        ),
        (with("modelApiKey", json!("x")), "/modelApiKey", "UNKNOWN_FIELD"),
        (with("configuration", json!({})), "/configuration", "UNKNOWN_FIELD"),
        (with("name", json!(7)), "/name", "INVALID_TYPE"),
        (with("name", json!("x".repeat(201))), "/name", "TOO_LONG"),
        (with("name", json!(" x")), "/name", "INVALID_VALUE"),
        (
            with("configurationId", json!("sec_123e4567-e89b-42d3-a456-426614174000")),
            "/configurationId",
            "INVALID_FORMAT",
        ),
        (with("executionMode", json!("other")), "/executionMode", "INVALID_VALUE"),
        (
            with("harnessAuth", json!({ "method": "oauth" })),
            "/harnessAuth",
            "INVALID_VALUE",
        ),
        (
            with("initialWorkspaceFiles", json!({ "OTHER.md": "x" })),
            "/initialWorkspaceFiles",
            "INVALID_VALUE",
        ),
        (json!([]), "", "INVALID_TYPE"),
    ] {
        let seen = served.json(Method::POST, &agents, &body).await;
        assert_eq!((seen.status.as_u16(), seen.code()), (400, "INVALID_REQUEST"), "{body}");
        let (found, found_code) = seen.detail();
        assert!(found.starts_with(path), "{body}: {}", seen.body);
        assert_eq!(found_code, code, "{body}: {}", seen.body);
    }
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    assert_eq!(served.text(Method::POST, &agents, deep).await.detail().1, "TOO_DEEP");
    let listed = served.send(Method::GET, &agents).await;
    assert_eq!(
        listed.body["data"],
        json!([]),
        "no refused request left anything behind"
    );
}

#[tokio::test]
async fn bodies_have_a_type_a_limit_and_a_place() {
    let served = Served::new().await;
    let agents = served.agents();
    let large = json!({ "name": "x".repeat(449 * 1024) }).to_string();
    assert_eq!(
        served.text(Method::POST, &agents, large).await.code(),
        "PAYLOAD_TOO_LARGE"
    );
    let untyped = served
        .request(Method::POST, &agents)
        .body("{}")
        .send()
        .await
        .expect("an answer");
    assert_eq!(Seen::of(untyped).await.code(), "UNSUPPORTED_MEDIA_TYPE");
    let agent = served.world.deployable("a").await.id;
    for path in [format!("{agents}/{agent}/deploy"), format!("{agents}/{agent}/stop")] {
        let seen = served.json(Method::POST, &path, &json!({})).await;
        assert_eq!((seen.status.as_u16(), seen.code()), (400, "INVALID_REQUEST"), "{path}");
    }
    let seen = served.send(Method::POST, &format!("{agents}/{agent}/deploy")).await;
    assert_eq!(seen.status, StatusCode::ACCEPTED);
    assert_eq!(seen.body["data"]["revision"], 1);
}

#[tokio::test]
async fn null_clears_and_silence_keeps() {
    let served = Served::new().await;
    let agent = served.world.deployable("a").await;
    let path = format!("{}/{}", served.agents(), agent.id);
    let keep = json!({ "configurationId": agent.configuration_id });
    let seen = served.json(Method::PATCH, &path, &keep).await;
    assert_eq!(seen.body["data"]["harnessAuth"]["method"], "api_key");
    let clear = json!({ "configurationId": agent.configuration_id, "harnessAuth": null });
    let seen = served.json(Method::PATCH, &path, &clear).await;
    assert_eq!(seen.body["data"]["harnessAuth"], Value::Null);
    let seen = served.send(Method::POST, &format!("{path}/deploy")).await;
    assert_eq!(
        (seen.status.as_u16(), seen.code()),
        (409, "RESOURCE_CONFLICT"),
        "authentication is missing"
    );
}

#[tokio::test]
async fn a_secrets_value_goes_in_and_never_comes_out() {
    let served = Served::new().await;
    let secrets = format!("/namespaces/{}/secrets", served.world.namespace);
    let created = served
        .json(Method::POST, &secrets, &json!({ "name": "s", "value": "canary-value" }))
        .await;
    assert_eq!(created.status, StatusCode::CREATED);
    let id = created.body["data"]["id"].as_str().expect("an id").to_owned();
    let read = served.send(Method::GET, &format!("{secrets}/{id}")).await;
    let list = served.send(Method::GET, &secrets).await;
    let taken = served
        .json(Method::POST, &secrets, &json!({ "name": "s", "value": "canary-value" }))
        .await;
    assert_eq!((taken.status.as_u16(), taken.code()), (409, "RESOURCE_CONFLICT"));
    let long = served
        .json(
            Method::PATCH,
            &format!("{secrets}/{id}"),
            &json!({ "value": "canary".repeat(20_000) }),
        )
        .await;
    assert_eq!((long.status.as_u16(), long.detail()), (400, ("/value", "TOO_LONG")));
    for seen in [created, read, list, taken, long] {
        assert!(!seen.body.to_string().contains("canary"), "{}", seen.body);
    }
    assert_eq!(
        served.send(Method::DELETE, &format!("{secrets}/{id}")).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        served.send(Method::GET, &format!("{secrets}/{id}")).await.status,
        StatusCode::NOT_FOUND
    );
}

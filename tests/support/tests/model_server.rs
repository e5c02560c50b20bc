//! The model server, as a plain HTTP client sees it.

use occ_test_support::model_server::{Authorization, Behaviour, Endpoint, ModelServer, ModelServerError, Reply};
use reqwest::{Response, StatusCode, header};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinHandle;

type TestResult = Result<(), Box<dyn std::error::Error>>;

fn request(stream: bool) -> Value {
    json!({ "model": "gpt-5", "stream": stream, "input": [{ "role": "user", "content": "Hello there" }] })
}

async fn ask(server: &ModelServer, key: Option<&str>, stream: bool) -> reqwest::Result<Response> {
    let post = client()
        .post(format!("{}/responses", server.base_url()))
        .json(&request(stream));
    match key {
        Some(key) => post.bearer_auth(key),
        None => post,
    }
    .send()
    .await
}

/// The events of a stream; each has to be named like its type.
fn events(body: &str) -> Vec<Value> {
    body.split("\n\n")
        .filter(|block| !block.is_empty())
        .map(|block| {
            let field = |name| {
                block
                    .lines()
                    .find_map(|line: &str| line.strip_prefix(name))
                    .map(str::trim)
            };
            let event: Value = serde_json::from_str(field("data:").expect("an event has data")).expect("data is JSON");
            assert_eq!(event["type"].as_str(), field("event:"));
            event
        })
        .collect()
}

#[tokio::test]
async fn a_stream_has_every_event_in_order_and_repeats_what_the_user_said() -> TestResult {
    let server = ModelServer::start(Behaviour::echo()).await?;
    let response = ask(&server, None, true).await?;
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
    let events = events(&response.text().await?);

    let types: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(
        types,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let said: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(said, "Model server heard: Hello there");

    let response = &events.last().expect("not empty")["response"];
    assert_eq!(response["output"][0]["content"][0]["text"], said);
    assert_eq!(response["model"], "gpt-5");
    let usage = &response["usage"];
    assert_eq!(
        usage["total_tokens"].as_u64(),
        usage["input_tokens"]
            .as_u64()
            .zip(usage["output_tokens"].as_u64())
            .map(|(input, output)| input + output)
    );
    Ok(())
}

#[tokio::test]
async fn without_stream_the_answer_is_one_document() -> TestResult {
    let server = ModelServer::start(Behaviour::text("READY")).await?;
    let body: Value = ask(&server, None, false).await?.json().await?;
    assert_eq!(body["status"], "completed");
    assert_eq!(body["output"][0]["content"][0]["text"], "READY");
    Ok(())
}

#[tokio::test]
async fn the_models_are_listed() -> TestResult {
    let server = ModelServer::start(Behaviour::echo()).await?;
    let body: Value = client()
        .get(format!("{}/models", server.base_url()))
        .send()
        .await?
        .json()
        .await?;
    assert_eq!(body["object"], "list");
    assert!(body["data"][0]["id"].is_string());
    assert_eq!(server.requests()[0].endpoint, Endpoint::Models);
    Ok(())
}

#[tokio::test]
async fn only_the_expected_key_is_accepted_and_no_key_is_remembered() -> TestResult {
    let server = ModelServer::start(Behaviour::echo()).await?;
    server.expect_key(Some("canary-right"));

    for (key, status) in [
        (None, StatusCode::UNAUTHORIZED),
        (Some("canary-wrong"), StatusCode::UNAUTHORIZED),
        (Some("canary-righ"), StatusCode::UNAUTHORIZED),
        (Some("canary-right"), StatusCode::OK),
    ] {
        let response = ask(&server, key, true).await?;
        assert_eq!(response.status(), status, "{key:?}");
        assert!(!response.text().await?.contains("canary"));
    }
    server.expect_key(None);
    assert_eq!(ask(&server, Some("canary-other"), true).await?.status(), StatusCode::OK);

    let seen: Vec<_> = server.requests().iter().map(|request| request.authorization).collect();
    assert_eq!(
        seen,
        [
            Authorization::Missing,
            Authorization::Differs,
            Authorization::Differs,
            Authorization::Matches,
            Authorization::NotExpected,
        ]
    );
    assert!(!format!("{:?}", server.requests()).contains("canary"));
    Ok(())
}

#[tokio::test]
async fn each_fault_answers_in_the_providers_words() -> TestResult {
    let server = ModelServer::start(Behaviour::ModelNotFound).await?;
    let limited = |retry_after| Behaviour::RateLimited { retry_after };
    for (behaviour, status, code, retry_after) in [
        (
            Behaviour::ModelNotFound,
            StatusCode::BAD_REQUEST,
            "model_not_found",
            None,
        ),
        (
            Behaviour::ServerError,
            StatusCode::INTERNAL_SERVER_ERROR,
            "server_error",
            None,
        ),
        (
            limited(None),
            StatusCode::TOO_MANY_REQUESTS,
            "rate_limit_exceeded",
            None,
        ),
        (
            limited(Some(Duration::from_secs(7))),
            StatusCode::TOO_MANY_REQUESTS,
            "rate_limit_exceeded",
            Some("7"),
        ),
    ] {
        server.set(behaviour);
        let response = ask(&server, None, true).await?;
        assert_eq!(response.status(), status);
        let header = response
            .headers()
            .get(header::RETRY_AFTER)
            .map(|value| value.to_str())
            .transpose()?;
        assert_eq!(header, retry_after);
        let body: Value = response.json().await?;
        assert_eq!(body["error"]["code"], code);
    }
    Ok(())
}

#[tokio::test]
async fn garbage_is_an_event_that_is_not_json_and_a_web_page_is_html() -> TestResult {
    let server = ModelServer::start(Behaviour::Garbage).await?;
    for (behaviour, kind) in [
        (Behaviour::Garbage, "text/event-stream"),
        (Behaviour::WebPage, "text/html"),
    ] {
        server.set(behaviour);
        let response = ask(&server, None, true).await?;
        assert_eq!(response.status(), StatusCode::OK);
        let sent = response.headers()[header::CONTENT_TYPE].to_str()?.to_owned();
        assert!(sent.starts_with(kind), "{sent}");
        let body = response.text().await?;
        let data = body.lines().find_map(|line| line.strip_prefix("data:"));
        assert!(serde_json::from_str::<Value>(data.unwrap_or(&body)).is_err());
    }
    Ok(())
}

#[tokio::test]
async fn a_body_that_is_not_an_object_is_refused() -> TestResult {
    let server = ModelServer::start(Behaviour::echo()).await?;
    for body in ["", "{", "[]", "null"] {
        let url = format!("{}/responses", server.base_url());
        let response = client().post(url).body(body).send().await?;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{body:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_slow_turn_is_complete_in_the_end() -> TestResult {
    let slow = Behaviour::Slow {
        reply: Reply::Text("late".into()),
        pause: Duration::from_millis(1),
    };
    let server = ModelServer::start(slow).await?;
    let events = events(&ask(&server, None, true).await?.text().await?);
    assert_eq!(
        events.last().map(|event| &event["type"]),
        Some(&json!("response.completed"))
    );
    Ok(())
}

/// Asks in the background and returns once the server has read the request.
async fn ask_and_be_read(server: &ModelServer) -> JoinHandle<reqwest::Result<Response>> {
    let before = server.requests().len();
    let post = client()
        .post(format!("{}/responses", server.base_url()))
        .json(&request(true));
    let asked = tokio::spawn(post.send());
    while server.requests().len() == before {
        tokio::task::yield_now().await;
    }
    asked
}

#[tokio::test]
async fn shutdown_ends_a_request_that_hangs_and_frees_the_port() -> TestResult {
    let server = ModelServer::start(Behaviour::Hang).await?;
    let address: SocketAddr = server
        .base_url()
        .trim_start_matches("http://")
        .trim_end_matches("/v1")
        .parse()?;
    let asked = ask_and_be_read(&server).await;
    server.shutdown().await;
    // Whichever of the two the client saw, it is not left waiting.
    if let Ok(response) = asked.await? {
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
    ModelServer::start_on(address, Behaviour::echo())
        .await?
        .shutdown()
        .await;
    Ok(())
}

#[tokio::test]
async fn refused_connections_end_what_was_open_and_the_port_comes_back() -> TestResult {
    let mut server = ModelServer::start(Behaviour::Hang).await?;
    let url = server.base_url();
    let asked = ask_and_be_read(&server).await;

    server.refuse_connections().await?;
    let _ = asked.await?;
    assert!(ask(&server, None, true).await.is_err_and(|error| error.is_connect()));
    server.refuse_connections().await?;

    server.set(Behaviour::echo());
    server.listen_again()?;
    server.listen_again()?;
    assert_eq!(server.base_url(), url);
    assert_eq!(ask(&server, None, true).await?.status(), StatusCode::OK);
    assert_eq!(server.requests().len(), 2, "the refused request was never seen");
    Ok(())
}

#[tokio::test]
async fn an_address_beyond_loopback_is_refused() {
    let started = ModelServer::start_on(SocketAddr::from(([0, 0, 0, 0], 0)), Behaviour::echo()).await;
    assert!(matches!(started, Err(ModelServerError::NotLoopback(_))));
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_it() -> TestResult {
    let server = ModelServer::start(Behaviour::echo()).await?;
    let address: SocketAddr = server
        .base_url()
        .trim_start_matches("http://")
        .trim_end_matches("/v1")
        .parse()?;
    let Err(error) = ModelServer::start_on(address, Behaviour::echo()).await else {
        return Err("two servers share a port".into());
    };
    assert!(error.to_string().contains(&address.to_string()));
    Ok(())
}

/// A client. Whatever else is built beside this, it wants a TLS provider even for plain HTTP.
fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

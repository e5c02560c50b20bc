//! The client against servers that behave and that do not.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread::{self, JoinHandle},
};

use super::*;

const KEY: &str = "occ_canary";

fn client(base: &str) -> Client {
    Client::new(base, &SecretValue::from(KEY.to_owned())).unwrap()
}

/// A server that answers one request, and says what it was asked.
fn server(answer: &str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let answer = answer.to_owned();
    let asked = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.windows(4).any(|end| end == b"\r\n\r\n".as_slice()) {
            let mut part = [0; 1024];
            let read = stream.read(&mut part).unwrap();
            assert_ne!(read, 0, "the request ended early");
            request.extend_from_slice(&part[..read]);
        }
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(request).unwrap()
    });
    (base, asked)
}

fn response(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

async fn fails(base: &str) -> Failure {
    let answer = client(base).get::<Value>("/installation").await;
    answer.expect_err("this answer is no success").into()
}

#[tokio::test]
async fn the_data_of_the_envelope_is_the_answer() {
    let (base, asked) = server(&response("200 OK", "", r#"{"data":{"a":1},"meta":{}}"#));
    let answer: Value = client(&base).get("/installation").await.unwrap();
    assert_eq!(answer, serde_json::json!({ "a": 1 }));
    let asked = asked.join().unwrap();
    assert!(asked.starts_with("GET /installation HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("x-api-key: occ_canary\r\n"), "{asked}");
}

#[tokio::test]
async fn a_refusal_keeps_the_words_and_the_places_of_the_api() {
    let body = r#"{"error":{"code":"INVALID_REQUEST","message":"No.","details":[{"path":"/name","code":"REQUIRED"},{"path":"","code":"TOO_DEEP"}]},"meta":{}}"#;
    let (base, _asked) = server(&response("400 Bad Request", "", body));
    let failure = fails(&base).await;
    assert_eq!(failure.exit(), Exit::Refused);
    assert_eq!(
        failure.to_string(),
        "INVALID_REQUEST: No.\n  /name: REQUIRED\n  the body: TOO_DEEP"
    );
}

#[tokio::test]
async fn what_is_not_the_api_is_unreachable() {
    for answer in [
        response("200 OK", "", "<html>"),
        response("200 OK", "", r#"{"data":1,"meta":"#),
        response("502 Bad Gateway", "", r#"{"message":"canary"}"#),
        response("500 Internal Server Error", "", ""),
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{".to_owned(),
    ] {
        let (base, _asked) = server(&answer);
        let failure = fails(&base).await;
        assert_eq!(failure.exit(), Exit::Unreachable, "{answer}");
        assert!(!failure.to_string().contains("canary"), "{failure}");
    }
}

#[tokio::test]
async fn a_redirect_does_not_carry_the_key_away() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let location = format!("location: http://{}/\r\n", elsewhere.local_addr().unwrap());
    let (base, _asked) = server(&response("307 Temporary Redirect", &location, ""));
    assert_eq!(fails(&base).await.exit(), Exit::Unreachable);
    assert!(elsewhere.accept().is_err(), "the redirect was followed");
}

#[tokio::test]
async fn nobody_there_is_unreachable_and_says_what_to_do() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let failure = fails(&format!("http://{free}")).await;
    assert_eq!(failure.exit(), Exit::Unreachable);
    assert!(failure.to_string().contains("occ up"), "{failure}");
}

#[test]
fn an_address_that_cannot_be_the_api_is_refused() {
    for base in [
        "127.0.0.1:8080",
        "ftp://h",
        "file:///etc/passwd",
        "http://user:canary@h",
        "http://user@h",
        "",
    ] {
        let key = SecretValue::from(KEY.to_owned());
        let failure = Client::new(base, &key).err().expect("this is no address");
        assert_eq!(failure.exit(), Exit::Usage, "{base}");
        assert!(!failure.to_string().contains("canary"), "{failure}");
    }
}

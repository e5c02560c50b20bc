//! Behind a proxy: whose word counts.

use futures_util::future::join_all;
use occ_api::Access;
use reqwest::Method;
use serde_json::json;

use super::browser::{Browser, PASSWORD, account, ask, set_cookie, try_password};
use crate::served::Served;

const FORWARDED: [(&str, &str); 3] = [
    ("x-forwarded-for", "192.0.2.1"),
    ("x-forwarded-proto", "https"),
    ("x-forwarded-host", "occ.example.com"),
];

fn trusting() -> Access {
    Access {
        trusted_proxies: vec!["127.0.0.0/8".parse().expect("a network")],
        ..Access::default()
    }
}

#[tokio::test]
async fn a_trusted_proxy_says_who_asks_and_how() {
    let served = Served::with(trusting()).await;
    account(&served, "grace@example.com").await;
    served.world.store.take_audit();
    let url = format!("http://{}/api/auth/sign-in/email", served.address);
    let body = json!({ "email": "grace@example.com", "password": PASSWORD });
    let through = |request: reqwest::RequestBuilder| {
        FORWARDED
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value))
    };
    let seen = ask(through(served.http.post(&url)).json(&body)).await;
    assert!(
        set_cookie(&seen)
            .expect("a cookie")
            .ends_with("; HttpOnly; SameSite=Lax; Secure")
    );
    assert_eq!(served.world.store.take_audit()[0].details["clientAddress"], "192.0.2.1");
    // The API's origin is what the browser calls.
    let browser = Browser::of(&seen);
    let own = format!("http://{}", served.address);
    for (origin, status) in [
        ("https://occ.example.com", 204),
        (own.as_str(), 403),
        ("http://occ.example.com", 403),
    ] {
        let out = format!("{own}/api/auth/sign-out");
        let request = through(served.http.post(out)).header("cookie", &browser.cookie);
        let request = request.header("origin", origin).header("x-csrf-token", &browser.csrf);
        // The one that is let through comes last.
        if status == 403 {
            assert_eq!(ask(request).await.status.as_u16(), status, "{origin}");
        }
    }
    let request = through(served.http.post(format!("{own}/api/auth/sign-out"))).header("cookie", &browser.cookie);
    let request = request
        .header("origin", "https://occ.example.com")
        .header("x-csrf-token", &browser.csrf);
    assert_eq!(ask(request).await.status.as_u16(), 204);
    // Each client has limits of its own.
    let tries = (0..40).map(|_| try_password(&served, "nobody@example.com", "x"));
    let limited = join_all(tries)
        .await
        .iter()
        .filter(|seen| seen.status.as_u16() == 429)
        .count();
    assert!(limited > 0, "the proxy's own address is at its limit");
    assert_eq!(
        ask(through(served.http.post(&url)).json(&body)).await.status.as_u16(),
        200
    );
}

#[tokio::test]
async fn nobody_else_speaks_for_others() {
    let served = Served::new().await;
    account(&served, "grace@example.com").await;
    let body = json!({ "email": "grace@example.com", "password": PASSWORD });
    for (name, value) in FORWARDED {
        let url = format!("http://{}/api/auth/sign-in/email", served.address);
        let seen = ask(served.http.post(url).header(name, value).json(&body)).await;
        assert_eq!((seen.status.as_u16(), seen.code()), (403, "FORBIDDEN"), "{name}");
        let seen = ask(served.request(Method::GET, "/namespaces").header(name, value)).await;
        assert_eq!((seen.status.as_u16(), seen.code()), (403, "FORBIDDEN"), "{name}");
    }
}

#[tokio::test]
async fn with_origins_named_those_pages_act_and_no_others() {
    let served = Served::with(Access {
        origins: vec!["https://console.example".parse().expect("an origin")],
        ..Access::default()
    })
    .await;
    account(&served, "grace@example.com").await;
    let browser = super::browser::sign_in(&served, "grace@example.com").await;
    let own = format!("http://{}", served.address);
    for (origin, status) in [(own.as_str(), 403), ("https://console.example", 204)] {
        let request = served
            .http
            .post(format!("{own}/api/auth/sign-out"))
            .header("cookie", &browser.cookie);
        let request = request.header("origin", origin).header("x-csrf-token", &browser.csrf);
        assert_eq!(ask(request).await.status.as_u16(), status, "{origin}");
    }
}

//! Sessions: what they open, what their writes must show, and how they end.

use std::{sync::Arc, time::Duration};

use occ_core::{
    control::{ControlPlane, CreateServiceKey},
    digest,
    id::SessionId,
    store::{Change, NewSession, Store as _, Write},
};
use reqwest::Method;
use serde_json::json;

use super::browser::{Browser, PASSWORD, account, administrator, ask, set_cookie, sign_in, try_password};
use crate::served::Served;

#[tokio::test]
async fn a_write_shows_its_origin_and_its_token() {
    let served = Served::new().await;
    administrator(&served).await;
    let browser = sign_in(&served, "ada@example.com").await;
    let other = sign_in(&served, "ada@example.com").await;
    let own = format!("http://{}", served.address);
    let untrusted = "The request's origin is not trusted.";
    let no_token = "A session's write needs its CSRF token in the x-csrf-token header.";
    let url = format!("{own}/namespaces");
    for (number, (origin, site, token, refused)) in [
        (
            Some(own.as_str()),
            Some("same-origin"),
            Some(browser.csrf.as_str()),
            None,
        ),
        (Some(&own), None, Some(&browser.csrf), None),
        (None, Some("same-origin"), Some(&browser.csrf), Some(untrusted)),
        (Some("https://evil.example"), None, Some(&browser.csrf), Some(untrusted)),
        (Some("null"), None, Some(&browser.csrf), Some(untrusted)),
        (Some(&own), Some("cross-site"), Some(&browser.csrf), Some(untrusted)),
        (Some(&own), None, None, Some(no_token)),
        (Some(&own), None, Some(""), Some(no_token)),
        (Some(&own), None, Some(&other.csrf), Some(no_token)),
        (Some(&own), None, Some(&browser.csrf[1..]), Some(no_token)),
    ]
    .into_iter()
    .enumerate()
    {
        let mut request = served.http.post(&url).header("cookie", &browser.cookie);
        for (name, value) in [("origin", origin), ("sec-fetch-site", site), ("x-csrf-token", token)] {
            request = value
                .into_iter()
                .fold(request, |request, value| request.header(name, value));
        }
        let seen = ask(request.json(&json!({ "name": format!("n{number}") }))).await;
        match refused {
            None => assert_eq!(seen.status.as_u16(), 201, "{number}: {}", seen.body),
            Some(message) => {
                assert_eq!(
                    (seen.status.as_u16(), seen.code(), seen.message()),
                    (403, "FORBIDDEN", message),
                    "{number}"
                );
            }
        }
    }
    // Every way of writing, and none of reading.
    for (method, path) in [
        (Method::POST, "/api/auth/sign-out".to_owned()),
        (Method::POST, "/api/auth/password".to_owned()),
        (Method::DELETE, served.path("")),
        (
            Method::PATCH,
            served.path("/agents/agt_123e4567-e89b-42d3-a456-426614174000"),
        ),
        (
            Method::PUT,
            served.path("/agents/agt_123e4567-e89b-42d3-a456-426614174000/workspace/files/AGENTS.md"),
        ),
    ] {
        let request = served
            .http
            .request(method.clone(), format!("{own}{path}"))
            .header("cookie", &browser.cookie);
        let request = request.header("content-type", "application/json");
        let body = if matches!(method, Method::DELETE) || path.ends_with("out") {
            ""
        } else {
            "{}"
        };
        let seen = ask(request.body(body)).await;
        assert_eq!(
            (seen.status.as_u16(), seen.message()),
            (403, untrusted),
            "{method} {path}"
        );
    }
    assert_eq!(browser.get(&served, "/namespaces").await.status.as_u16(), 200);
    // A key has nothing that a browser would send by itself.
    let with_key = served
        .request(Method::POST, "/namespaces")
        .header("origin", "https://evil.example");
    assert_eq!(
        ask(with_key.json(&json!({ "name": "by-key" }))).await.status.as_u16(),
        201
    );
}

#[tokio::test]
async fn who_asks_is_never_a_guess() {
    let served = Served::new().await;
    administrator(&served).await;
    let browser = sign_in(&served, "ada@example.com").await;
    let url = format!("http://{}/namespaces", served.address);
    let get = || served.http.get(&url);
    let token = browser.cookie.strip_prefix("occ_session=").expect("the cookie's name");
    let (named, _) = token.rsplit_once('_').expect("two halves");
    let forged = format!("occ_session={named}_{}", "0".repeat(64));
    let unknown = format!(
        "occ_session=occ_session_{}_{}",
        SessionId::random().uuid(),
        "0".repeat(64)
    );
    for (number, request) in [
        get().header("cookie", &browser.cookie).header("x-api-key", &served.key),
        get().header("cookie", format!("{}; {}", browser.cookie, browser.cookie)),
        get()
            .header("cookie", &browser.cookie)
            .header("cookie", "occ_session=x"),
        get().header("cookie", forged),
        get().header("cookie", unknown),
        get().header("cookie", "occ_session="),
        get().header("cookie", format!("Occ_Session={token}")),
        // A session is no key, and a key no session.
        get().header("x-api-key", token),
        get().header("cookie", format!("occ_session={}", served.key)),
        get().bearer_auth(token),
    ]
    .into_iter()
    .enumerate()
    {
        let seen = ask(request).await;
        assert_eq!(
            (seen.status.as_u16(), seen.code()),
            (401, "UNAUTHENTICATED"),
            "{number}"
        );
    }
    let beside = get().header("cookie", format!("theme=dark; {}; x", browser.cookie));
    assert_eq!(ask(beside).await.status.as_u16(), 200);
    // A key has no session to look at or to end.
    let own = served.send(Method::GET, "/api/auth/session").await;
    assert_eq!(own.status.as_u16(), 401);
    assert_eq!(
        served.send(Method::POST, "/api/auth/sign-out").await.status.as_u16(),
        401
    );
}

#[tokio::test]
async fn a_session_ends_where_its_person_ends_it() {
    let served = Served::new().await;
    let person = account(&served, "grace@example.com").await;
    let (first, second) = (
        sign_in(&served, "grace@example.com").await,
        sign_in(&served, "grace@example.com").await,
    );
    let out = first.post(&served, "/api/auth/sign-out", &json!({})).await;
    assert_eq!(out.status.as_u16(), 400, "it takes no body");
    let out = ask(first.request(&served, Method::POST, "/api/auth/sign-out")).await;
    assert_eq!(out.status.as_u16(), 204);
    assert!(set_cookie(&out).is_some_and(|cookie| cookie.starts_with("occ_session=; Path=/; Max-Age=0;")));
    assert!(!first.is_signed_in(&served).await && second.is_signed_in(&served).await);

    let third = sign_in(&served, "grace@example.com").await;
    let change = |current: &str, new: &str| json!({ "currentPassword": current, "newPassword": new });
    let wrong = second
        .post(&served, "/api/auth/password", &change("wrong", "a new long password"))
        .await;
    assert_eq!(
        (wrong.status.as_u16(), wrong.message()),
        (403, "The current password is not right.")
    );
    let audit = served.world.store.take_audit();
    let last = audit.last().expect("a record");
    assert_eq!(
        (last.actor.as_str(), last.action.as_str(), last.reason_code.as_deref()),
        (
            person.as_str(),
            "openclaw.accounts.password.update",
            Some("WRONG_PASSWORD")
        )
    );
    let weak = second
        .post(&served, "/api/auth/password", &change(PASSWORD, "short"))
        .await;
    assert_eq!((weak.status.as_u16(), weak.detail().0), (400, "/newPassword"));
    assert!(third.is_signed_in(&served).await, "nothing was changed");
    let changed = second
        .post(&served, "/api/auth/password", &change(PASSWORD, "a new long password"))
        .await;
    let fourth = Browser::of(&changed);
    for ended in [&second, &third] {
        assert!(!ended.is_signed_in(&served).await);
    }
    assert!(fourth.is_signed_in(&served).await);
    assert_eq!(
        try_password(&served, "grace@example.com", PASSWORD)
            .await
            .status
            .as_u16(),
        401
    );
    let ended = served
        .send(Method::DELETE, &format!("/accounts/{person}/sessions"))
        .await;
    assert_eq!(ended.status.as_u16(), 204);
    assert!(!fourth.is_signed_in(&served).await);
}

#[tokio::test]
async fn a_session_ends_by_its_age_and_by_lying_idle() {
    let served = Served::new().await;
    let person = account(&served, "grace@example.com").await;
    let hour = Duration::from_hours(1);
    for (lifetime, idle, lasts) in [
        (hour, hour, true),
        (Duration::from_millis(1), hour, false),
        (hour, Duration::from_millis(1), false),
    ] {
        let (id, secret) = (SessionId::random(), "1".repeat(64));
        let session = NewSession {
            id,
            principal: person.parse().expect("an id"),
            token_hash: digest::hex(secret.as_bytes()),
            lifetime,
            idle,
        };
        let change = Change::new().write(Write::Session(session));
        served.world.store.commit(change).await.expect("it commits");
        let now = served.world.store.now().await.expect("the clock");
        while served.world.store.now().await.expect("the clock").since(now) < Duration::from_millis(2) {
            tokio::task::yield_now().await;
        }
        let browser = Browser {
            cookie: format!("occ_session=occ_session_{}_{secret}", id.uuid()),
            csrf: String::new(),
        };
        assert_eq!(browser.is_signed_in(&served).await, lasts, "{lifetime:?} {idle:?}");
    }
}

#[tokio::test]
async fn a_session_outlives_the_process() {
    let served = Served::new().await;
    account(&served, "grace@example.com").await;
    let browser = sign_in(&served, "grace@example.com").await;
    let Served { world, .. } = served;
    let plane = ControlPlane::new(Arc::clone(&world.store) as _, Arc::clone(&world.drivers));
    let again = Served::serving(world, plane).await;
    assert!(browser.is_signed_in(&again).await);
    let out = ask(browser.request(&again, Method::POST, "/api/auth/sign-out")).await;
    assert_eq!(out.status.as_u16(), 204, "its CSRF token is the same");
}

#[tokio::test]
async fn a_session_has_the_grants_of_its_person_and_no_others() {
    let served = Served::new().await;
    let person = account(&served, "grace@example.com").await;
    let browser = sign_in(&served, "grace@example.com").await;
    let denied = browser.get(&served, "/installation").await;
    assert_eq!(
        (denied.status.as_u16(), denied.message()),
        (403, "You are not authorized to do this.")
    );
    let listed = browser.get(&served, "/namespaces").await;
    assert_eq!(listed.data(), &json!([]));
    // A key of the same person fares the same.
    let input = CreateServiceKey {
        principal_id: person.parse().expect("an id"),
        name: "laptop".parse().expect("a name"),
        namespace_id: None,
        expires_in: None,
    };
    let key = served
        .world
        .plane
        .create_service_key(&served.world.admin, input)
        .await
        .expect("a key");
    let url = format!("http://{}/installation", served.address);
    let request = served
        .http
        .get(url)
        .header("x-api-key", key.value.expose_str().expect("text"));
    assert_eq!(ask(request).await.status.as_u16(), 403);
}

//! Signing in: what proves who somebody is, and what a failure tells.

use futures_util::future::join_all;
use occ_core::{audit::AuditOutcome, id::SessionId};
use reqwest::Method;
use serde_json::{Value, json};

use super::browser::{Browser, PASSWORD, account, administrator, ask, set_cookie, sign_in, try_password};
use crate::served::{Seen, Served};

#[tokio::test]
async fn a_person_signs_in_and_acts_as_the_principal() {
    let served = Served::new().await;
    administrator(&served).await;
    served.world.store.take_audit();
    // One spelling of the address is as good as another.
    let seen = try_password(&served, "ADA@example.com", PASSWORD).await;
    let cookie = set_cookie(&seen).expect("a cookie");
    let (value, attributes) = cookie.split_once("; ").expect("attributes");
    assert!(value.starts_with("occ_session=occ_session_"), "{value}");
    assert_eq!(attributes, "Path=/; Max-Age=86400; HttpOnly; SameSite=Lax");
    let session = &seen.data()["session"];
    assert_eq!(session["principalId"], served.world.admin.principal.as_str());
    assert_eq!(
        (&session["name"], &session["email"]),
        (&json!("Ada"), &json!("ada@example.com"))
    );

    let browser = Browser::of(&seen);
    assert_eq!(browser.get(&served, "/installation").await.status.as_u16(), 200);
    let own = browser.get(&served, "/api/auth/session").await;
    assert_eq!(own.data(), seen.data());
    assert!(set_cookie(&own).is_none(), "a read changes nothing");
    let created = browser
        .post(&served, "/namespaces", &json!({ "name": "another" }))
        .await;
    assert_eq!(created.status.as_u16(), 201, "{}", created.body);

    let audit = served.world.store.take_audit();
    assert_eq!(audit.len(), 2);
    assert_eq!(
        (audit[0].action.as_str(), audit[0].outcome),
        ("openclaw.sessions.create", AuditOutcome::Success)
    );
    assert_eq!(audit[0].details["clientAddress"], "127.0.0.1");
    for event in &audit {
        assert_eq!(event.actor, served.world.admin.principal);
        assert_eq!(event.details["sessionId"], session["id"]);
    }
}

#[tokio::test]
async fn signing_in_begins_a_session_of_its_own_whatever_the_browser_brings() {
    let served = Served::new().await;
    account(&served, "grace@example.com").await;
    let strangers = {
        account(&served, "eve@example.com").await;
        sign_in(&served, "eve@example.com").await
    };
    let planted = format!(
        "occ_session=occ_session_{}_{}",
        SessionId::random().uuid(),
        "0".repeat(64)
    );
    let url = format!("http://{}/api/auth/sign-in/email", served.address);
    let body = json!({ "email": "grace@example.com", "password": PASSWORD });
    for brought in [&planted, &strangers.cookie] {
        let seen = ask(served.http.post(&url).header("cookie", brought).json(&body)).await;
        let browser = Browser::of(&seen);
        assert_ne!(browser.cookie, *brought);
        let own = browser.get(&served, "/api/auth/session").await;
        assert_eq!(own.data()["session"]["email"], "grace@example.com");
    }
    let planted = Browser {
        cookie: planted,
        csrf: String::new(),
    };
    assert!(!planted.is_signed_in(&served).await);
    let still = strangers.get(&served, "/api/auth/session").await;
    assert_eq!(still.data()["session"]["email"], "eve@example.com");
}

#[tokio::test]
async fn what_is_wrong_is_not_to_be_seen_from_the_answer() {
    let served = Served::new().await;
    account(&served, "grace@example.com").await;
    let body = json!({ "email": "code@example.com", "name": "Code" });
    let made = served.json(Method::POST, "/accounts", &body).await;
    let code = made.data()["code"]["value"].as_str().expect("a code").to_owned();
    served.world.store.take_audit();
    let mut answers = Vec::new();
    for (email, password) in [
        ("grace@example.com", "wrong"),
        ("nobody@example.com", PASSWORD),
        // No password yet; its code is none.
        ("code@example.com", code.as_str()),
        ("grace@example.com", ""),
    ] {
        let seen = try_password(&served, email, password).await;
        assert!(set_cookie(&seen).is_none());
        answers.push((seen.status.as_u16(), seen.body["error"].clone()));
    }
    assert_eq!(answers[0].0, 401);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");

    // The audit knows whose account it was, and never what was typed.
    let audit = served.world.store.take_audit();
    let known: Vec<_> = audit
        .iter()
        .map(|event| event.details.contains_key("accountId"))
        .collect();
    assert_eq!(known, [true, false, true, true]);
    for event in &audit {
        assert_eq!(
            (event.actor.as_str(), event.outcome),
            ("anonymous", AuditOutcome::Denied)
        );
        assert_eq!(event.reason_code.as_deref(), Some("WRONG_PASSWORD"));
        let text = serde_json::to_string(event).expect("JSON");
        assert!(!text.contains("example.com") && !text.contains("wrong\""), "{text}");
    }
    // What cannot be recorded is not answered.
    served.world.store.fail(occ_core::store::CommitError::Unavailable);
    assert_eq!(
        try_password(&served, "grace@example.com", "wrong")
            .await
            .status
            .as_u16(),
        503
    );
}

async fn with_code(served: &Served, email: &str, code: &str, password: &str) -> Seen {
    let url = format!("http://{}/api/auth/sign-in/code", served.address);
    let body = json!({ "email": email, "code": code, "newPassword": password });
    ask(served.http.post(url).json(&body)).await
}

#[tokio::test]
async fn a_one_time_code_works_once_and_sets_the_password() {
    let served = Served::new().await;
    let body = json!({ "email": "grace@example.com", "name": "Grace" });
    let made = served.json(Method::POST, "/accounts", &body).await;
    let person = made.data()["account"]["principalId"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(made.data()["account"]["hasPassword"], false);
    let code = made.data()["code"]["value"].as_str().expect("a code").to_owned();
    assert_eq!(
        made.data()["code"]["expiresAt"],
        made.data()["account"]["codeExpiresAt"]
    );

    let weak = with_code(&served, "grace@example.com", &code, "short").await;
    assert_eq!(
        (weak.status.as_u16(), weak.detail()),
        (400, ("/newPassword", "INVALID_VALUE"))
    );
    let other = format!("occ_code_{}", "0".repeat(64));
    for (email, wrong) in [
        ("grace@example.com", other.as_str()),
        ("eve@example.com", &code),
        ("grace@example.com", ""),
    ] {
        assert_eq!(
            with_code(&served, email, wrong, PASSWORD).await.status.as_u16(),
            401,
            "{email}"
        );
    }
    let browser = Browser::of(&with_code(&served, "grace@example.com", &code, PASSWORD).await);
    assert!(browser.is_signed_in(&served).await);
    assert_eq!(
        with_code(&served, "grace@example.com", &code, PASSWORD)
            .await
            .status
            .as_u16(),
        401,
        "it is used up"
    );
    sign_in(&served, "grace@example.com").await;

    // A new one replaces the one before, and the password stays until it is used.
    let path = format!("/accounts/{person}/code");
    let first = served.send(Method::POST, &path).await.data()["value"]
        .as_str()
        .expect("a code")
        .to_owned();
    let second = served.send(Method::POST, &path).await.data()["value"]
        .as_str()
        .expect("a code")
        .to_owned();
    sign_in(&served, "grace@example.com").await;
    let again = "another long password";
    assert_eq!(
        with_code(&served, "grace@example.com", &first, again)
            .await
            .status
            .as_u16(),
        401
    );
    Browser::of(&with_code(&served, "grace@example.com", &second, again).await);
    assert!(!browser.is_signed_in(&served).await, "earlier sessions end");
    assert_eq!(
        try_password(&served, "grace@example.com", PASSWORD)
            .await
            .status
            .as_u16(),
        401
    );
}

#[tokio::test]
async fn a_disabled_account_is_told_so_only_when_the_password_is_right() {
    let served = Served::new().await;
    let person = account(&served, "grace@example.com").await;
    let browser = sign_in(&served, "grace@example.com").await;
    let key = crate::served::key_of(&served.world, &person.parse().expect("an id")).await;
    let path = format!("/accounts/{person}");
    let disabled = served.json(Method::PATCH, &path, &json!({ "disabled": true })).await;
    assert_eq!(disabled.data()["disabled"], true);
    assert!(!browser.is_signed_in(&served).await);
    assert_eq!(
        try_password(&served, "grace@example.com", "wrong")
            .await
            .status
            .as_u16(),
        401
    );
    let right = try_password(&served, "grace@example.com", PASSWORD).await;
    assert_eq!(
        (right.status.as_u16(), right.code(), right.message()),
        (403, "FORBIDDEN", "The account is disabled.")
    );
    // Nor does a key of the same person open anything.
    let url = format!("http://{}/namespaces", served.address);
    let with_key = ask(served.http.get(url).header("x-api-key", &key)).await;
    assert_eq!(
        (with_key.status.as_u16(), with_key.message()),
        (403, "The account is disabled.")
    );
    served.json(Method::PATCH, &path, &json!({ "disabled": false })).await;
    sign_in(&served, "grace@example.com").await;
}

#[tokio::test]
async fn guessing_is_slowed_down_and_says_how_long() {
    let served = Served::new().await;
    account(&served, "grace@example.com").await;
    account(&served, "ada@example.com").await;
    // At once, so that a slow machine does not give them back in between.
    let tries = (0..12).map(|_| try_password(&served, "grace@example.com", "wrong"));
    let statuses: Vec<_> = join_all(tries).await.iter().map(|seen| seen.status.as_u16()).collect();
    assert!(
        statuses.iter().all(|status| matches!(status, 401 | 429)),
        "{statuses:?}"
    );
    let tries = (0..4).map(|_| try_password(&served, "grace@example.com", PASSWORD));
    let answers = join_all(tries).await;
    let limited = answers
        .iter()
        .find(|seen| seen.status.as_u16() == 429)
        .expect("a limit");
    assert_eq!(limited.code(), "SIGN_IN_RATE_LIMITED");
    let wait: u64 = limited.headers["retry-after"]
        .to_str()
        .expect("text")
        .parse()
        .expect("a number");
    assert!((1..=30).contains(&wait), "{wait}");
    sign_in(&served, "ada@example.com").await;
    for _ in 0..12 {
        let seen = try_password(&served, "ada@example.com", PASSWORD).await;
        assert_ne!(seen.status.as_u16(), 429, "who is right is not limited: {}", seen.body);
    }
}

#[tokio::test]
async fn another_site_signs_nobody_in() {
    let served = Served::new().await;
    account(&served, "grace@example.com").await;
    let own = format!("http://{}", served.address);
    let url = format!("{own}/api/auth/sign-in/email");
    let body = json!({ "email": "grace@example.com", "password": PASSWORD });
    for (headers, status) in [
        (vec![("origin", own.as_str())], 200),
        (vec![("origin", own.as_str()), ("sec-fetch-site", "cross-site")], 403),
        (vec![("origin", "https://evil.example")], 403),
        (vec![("origin", "null")], 403),
        (vec![("sec-fetch-site", "cross-site")], 403),
    ] {
        let request = headers.iter().fold(served.http.post(&url), |request, (name, value)| {
            request.header(*name, *value)
        });
        let seen = ask(request.json(&body)).await;
        assert_eq!(seen.status.as_u16(), status, "{headers:?}: {}", seen.body);
    }
    for body in [
        json!({}),
        json!({ "email": "no", "password": "x" }),
        json!({ "email": "a@b", "password": "x", "remember": true }),
    ] {
        let seen = ask(served.http.post(&url).json::<Value>(&body)).await;
        assert_eq!(seen.status.as_u16(), 400, "{body}");
    }
}

//! What an installation says about its provider, and what is said of it.

use occ_api::{Access, Oidc, OidcSettings};
use occ_core::control::FirstSignIn;
use occ_test_support::oidc_provider::{CLIENT_SECRET, Lie, OidcProvider};
use reqwest::{StatusCode, header};

use super::{super::browser::ask, begin, come_back, grace, location, scene, settings, sign_in};
use crate::{log, served::Served};

#[tokio::test]
async fn without_a_provider_there_is_no_such_sign_in() {
    let served = Served::new().await;
    for path in ["/api/auth/oidc/sign-in", "/api/auth/oidc/callback?code=x&state=y"] {
        let seen = ask(served.http.get(format!("http://{}{path}", served.address))).await;
        assert_eq!((seen.status.as_u16(), seen.code()), (501, "NOT_IMPLEMENTED"), "{path}");
    }
}

#[tokio::test]
async fn settings_that_no_provider_can_have_are_refused_and_no_secret_is_printed() {
    let provider = OidcProvider::start(grace()).await.expect("a provider");
    for (issuer, good) in [
        ("https://accounts.example.com", true),
        ("http://127.0.0.1:1", true),
        ("http://localhost:1", true),
        ("http://accounts.example.com", false),
        ("http://127.0.0.1.example.com", false),
        ("accounts.example.com", false),
        ("", false),
    ] {
        let settings = OidcSettings {
            issuer: issuer.to_owned(),
            ..settings(&provider, FirstSignIn::Refuse)
        };
        assert_eq!(Oidc::new(settings).is_ok(), good, "{issuer}");
    }
    for (landing, place) in [
        ("/", Some("/")),
        ("/console?welcome#top", Some("/console?welcome#top")),
        ("/a/../b", Some("/b")),
        ("", None),
        ("console", None),
        ("//evil.example", None),
        ("/\\evil.example", None),
        ("/\t/evil.example", None),
        ("/.//evil.example", None),
        ("https://evil.example/", None),
        ("javascript:alert(1)", None),
    ] {
        let settings = OidcSettings {
            landing: landing.to_owned(),
            ..settings(&provider, FirstSignIn::Create)
        };
        let oidc = Oidc::new(settings);
        assert_eq!(oidc.is_ok(), place.is_some(), "{landing:?}");
        let (Ok(oidc), Some(place)) = (oidc, place) else {
            continue;
        };
        let access = Access {
            oidc: Some(oidc.into()),
            ..Access::default()
        };
        let served = Served::with(access).await;
        let (cookie, back) = begin(&served).await;
        // Nothing that comes with the browser says where it goes.
        let back = format!("{back}&redirect_uri=https://evil.example&next=//evil.example");
        assert_eq!(location(&come_back(&served, &cookie, &back).await), place);
    }
    let settings = settings(&provider, FirstSignIn::Refuse);
    let printed = format!("{settings:?} {:?}", Oidc::new(settings.clone()).expect("settings"));
    assert!(!printed.contains(CLIENT_SECRET), "{printed}");
}

/// The session that an answer gives, without what every cookie says.
fn session_of(answer: &reqwest::Response) -> String {
    let cookies = answer.headers().get_all(header::SET_COOKIE).iter();
    let mut cookies = cookies.filter_map(|cookie| cookie.to_str().ok()?.strip_prefix("occ_session=occ_session_"));
    let session = cookies.next().expect("a session");
    session.split(';').next().expect("a cookie").to_owned()
}

#[tokio::test]
async fn nothing_secret_of_a_sign_in_is_logged() {
    let (log, first) = log::captured();
    let (served, provider) = scene(FirstSignIn::Create).await;
    let (attempt, place) = begin(&served).await;
    let answer = come_back(&served, &attempt, &place).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    for lie in [
        Lie::Tampered,
        Lie::NoToken,
        Lie::TokenPage,
        Lie::TokenFlood,
        Lie::Failing,
    ] {
        provider.lie(Some(lie));
        sign_in(&served).await.expect_err("a refusal");
    }
    let text = String::from_utf8_lossy(&log.bytes()).into_owned();
    assert!(!first || text.contains("http.request"), "the log is looked at");
    let attempt = attempt.strip_prefix("occ_oidc=").expect("its name");
    let session = session_of(&answer);
    let audit = format!("{:?}", served.world.store.take_audit());
    for secret in [
        CLIENT_SECRET,
        attempt,
        &session,
        "access-1",
        "code%201",
        "code 1",
        "code_verifier",
        // How every JWT begins.
        "eyJ",
        "canary",
    ] {
        assert!(!text.contains(secret), "{secret}");
        assert!(!audit.contains(secret), "{secret}");
    }
}

//! Signing in through an identity provider: a double on loopback that speaks the real protocol.

mod attempts;
mod identities;
mod providers;
mod settings;

use std::time::Duration;

use occ_api::{Access, Oidc, OidcSettings};
use occ_core::{control::FirstSignIn, secret_value::SecretValue};
use occ_test_support::oidc_provider::{CLIENT_ID, CLIENT_SECRET, OidcProvider, Person};
use reqwest::{Method, StatusCode, header};
use serde_json::json;

use super::browser::Browser;
use crate::served::{Seen, Served};

pub fn grace() -> Person {
    Person {
        subject: "grace|1".to_owned(),
        email: "grace@example.com".to_owned(),
        email_verified: true,
    }
}

pub fn settings(provider: &OidcProvider, first_sign_in: FirstSignIn) -> OidcSettings {
    OidcSettings {
        issuer: provider.issuer(),
        client_id: CLIENT_ID.to_owned(),
        client_secret: Some(SecretValue::from(CLIENT_SECRET.to_owned())),
        public_url: "http://occ.example.com".parse().expect("an origin"),
        landing: OidcSettings::LANDING.to_owned(),
        first_sign_in,
        timeout: OidcSettings::TIMEOUT,
    }
}

async fn scene(first: FirstSignIn) -> (Served, OidcProvider) {
    let provider = OidcProvider::start(grace()).await.expect("a provider");
    let served = serving(settings(&provider, first)).await;
    (served, provider)
}

/// With a provider that is waited for no longer than this.
async fn impatient(timeout: Duration) -> (Served, OidcProvider) {
    let provider = OidcProvider::start(grace()).await.expect("a provider");
    let served = serving(OidcSettings {
        timeout,
        ..settings(&provider, FirstSignIn::Create)
    })
    .await;
    (served, provider)
}

async fn serving(settings: OidcSettings) -> Served {
    let oidc = Oidc::new(settings).expect("settings");
    Served::with(Access {
        oidc: Some(oidc.into()),
        ..Access::default()
    })
    .await
}

/// A client that goes nowhere by itself.
fn client() -> reqwest::Client {
    let policy = reqwest::redirect::Policy::none();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(policy)
        .build()
        .expect("a client")
}

fn location(response: &reqwest::Response) -> String {
    let place = response.headers().get(header::LOCATION).expect("a place");
    place.to_str().expect("text").to_owned()
}

fn begin_url(served: &Served) -> String {
    format!("http://{}/api/auth/oidc/sign-in", served.address)
}

/// Begins a sign-in: the cookie of the attempt, and where the provider sends the browser back to.
async fn begin(served: &Served) -> (String, String) {
    let begun = client().get(begin_url(served)).send().await.expect("an answer");
    assert_eq!(begun.status(), StatusCode::SEE_OTHER);
    let cookie = begun.headers()[header::SET_COOKIE].to_str().expect("text").to_owned();
    assert!(
        cookie.ends_with("; Path=/api/auth/oidc; Max-Age=600; HttpOnly; SameSite=Lax"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().expect("a cookie").to_owned();
    let agreed = client().get(location(&begun)).send().await.expect("an answer");
    let back = location(&agreed);
    let query = back
        .strip_prefix("http://occ.example.com")
        .expect("the API's own address");
    (cookie, query.to_owned())
}

async fn come_back(served: &Served, cookie: &str, place: &str) -> reqwest::Response {
    let url = format!("http://{}{place}", served.address);
    // As browsers say of a navigation that another site began.
    let request = client()
        .get(url)
        .header("cookie", cookie)
        .header("sec-fetch-site", "cross-site");
    request.send().await.expect("an answer")
}

/// A whole sign-in: the session's cookie, or how it was refused.
async fn sign_in(served: &Served) -> Result<String, (u16, String)> {
    let (cookie, place) = begin(served).await;
    let answer = come_back(served, &cookie, &place).await;
    if answer.status() != StatusCode::SEE_OTHER {
        let seen = Seen::of(answer).await;
        return Err((seen.status.as_u16(), seen.message().to_owned()));
    }
    assert_eq!(location(&answer), OidcSettings::LANDING);
    let cookies: Vec<_> = answer.headers().get_all(header::SET_COOKIE).iter().collect();
    let texts: Vec<_> = cookies.iter().map(|cookie| cookie.to_str().expect("text")).collect();
    assert!(
        texts.iter().any(|cookie| cookie.starts_with("occ_oidc=; ")),
        "{texts:?}"
    );
    let session = texts
        .iter()
        .find(|cookie| cookie.starts_with("occ_session=occ_session_"));
    let session = session.expect("a session").split(';').next().expect("a cookie");
    Ok(session.to_owned())
}

async fn whose(served: &Served, cookie: String) -> String {
    let browser = Browser {
        cookie,
        csrf: String::new(),
    };
    let seen = browser.get(served, "/api/auth/session").await;
    seen.data()["session"]["principalId"]
        .as_str()
        .expect("an id")
        .to_owned()
}

async fn link(served: &Served, person: &str, issuer: &str, subject: &str) -> Seen {
    let path = format!("/accounts/{person}/identities");
    served
        .json(Method::POST, &path, &json!({ "issuer": issuer, "subject": subject }))
        .await
}

const NOT_LINKED: &str = "No account is linked to this identity. Ask an administrator.";

/// How many accounts there are.
async fn accounts(served: &Served) -> usize {
    let listed = served.send(Method::GET, "/accounts").await;
    listed.data().as_array().expect("a list").len()
}

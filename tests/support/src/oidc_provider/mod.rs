//! A test double of an identity provider on loopback. It speaks the real protocol (discovery, authorization code with PKCE, token endpoint, keys
//! with real signatures) for one person who always agrees, and lies in one way when it is told to.
//!
//! It is a double because a vendor's provider cannot run here. It keeps what it issues in memory, knows one client, and is no identity
//! provider for anything but tests.

mod signing;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Form, Json, Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use signing::Algorithm;
use signing::{Key, encoded, keyed_hash};

/// The one client that it knows.
pub const CLIENT_ID: &str = "occ-test";
/// By what it recognises the client.
pub const CLIENT_SECRET: &str = "canary-client-secret";

/// Who signs in.
#[derive(Debug, Clone)]
pub struct Person {
    /// What the provider calls the person.
    pub subject: String,
    /// The person's address.
    pub email: String,
    /// Whether the provider has verified it.
    pub email_verified: bool,
}

/// In which way it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// The identity token names another issuer.
    Issuer,
    /// It is for another client.
    Audience,
    /// It is for this client and another one.
    TwoAudiences,
    /// It is of another attempt.
    Nonce,
    /// It is of no attempt.
    NoNonce,
    /// It has ended.
    Expired,
    /// It is signed by a key that is not published.
    Key,
    /// It is not signed, and says so.
    Unsigned,
    /// It is signed with the client's secret.
    SharedSecret,
    /// Its claims were changed after it was signed.
    Tampered,
    /// It goes with another access token.
    AccessToken,
    /// Its subject is a text that no database keeps.
    Subject,
    /// Its subject is longer than the protocol allows.
    LongSubject,
    /// There is none.
    NoToken,
    /// The token endpoint answers with a page for people.
    TokenPage,
    /// The token endpoint sends the request elsewhere.
    TokenMoved,
    /// The token endpoint fails.
    Failing,
    /// The token endpoint has no time.
    Busy,
    /// The token endpoint's answer does not end within reason.
    TokenFlood,
    /// The token endpoint does not answer.
    TokenSilent,
    /// The metadata name another issuer.
    Metadata,
    /// They are a page for people.
    MetadataPage,
    /// They are not found.
    MetadataMissing,
    /// They do not end within reason.
    MetadataFlood,
    /// They do not come.
    MetadataSilent,
    /// They send people to a place without TLS.
    MetadataElsewhere,
    /// They name a token endpoint without TLS that is not on this machine.
    MetadataTokenElsewhere,
    /// The keys are no keys.
    KeysPage,
}

struct Grant {
    challenge: String,
    nonce: Option<String>,
    redirect: String,
}

struct Inner {
    issuer: String,
    person: Person,
    lie: Option<Lie>,
    key: Key,
    grants: HashMap<String, Grant>,
    issued: usize,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Inner>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running provider; it ends when it is dropped.
pub struct OidcProvider {
    shared: Shared,
    address: SocketAddr,
    _stop: DropGuard,
}

impl OidcProvider {
    /// Starts one for this person, which signs with Ed25519.
    ///
    /// # Errors
    /// When it cannot listen on loopback.
    pub async fn start(person: Person) -> std::io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let address = listener.local_addr()?;
        let shared = Shared(Arc::new(Mutex::new(Inner {
            issuer: format!("http://{address}"),
            person,
            lie: None,
            key: Key {
                algorithm: Algorithm::EdDsa,
                generation: 0,
            },
            grants: HashMap::new(),
            issued: 0,
        })));
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/keys", get(keys))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(shared.clone());
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(async move {
            let _ = axum::serve(listener, router).with_graceful_shutdown(stopped).await;
        });
        Ok(Self {
            shared,
            address,
            _stop: stop.drop_guard(),
        })
    }

    /// What it calls itself.
    pub fn issuer(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on somebody else signs in.
    pub fn set_person(&self, person: Person) {
        self.shared.lock().person = person;
    }

    /// From now on it lies so, or not.
    pub fn lie(&self, lie: Option<Lie>) {
        self.shared.lock().lie = lie;
    }

    /// Signs with another key from now on, and publishes that one alone.
    pub fn rotate(&self) {
        self.shared.lock().key.generation += 1;
    }

    /// Signs so from now on.
    pub fn sign_with(&self, algorithm: Algorithm) {
        self.shared.lock().key.algorithm = algorithm;
    }
}

fn page() -> Response {
    ([(header::CONTENT_TYPE, "text/html")], "<html>canary-page</html>").into_response()
}

/// Two megabytes of what begins like an answer.
fn flood() -> Response {
    let text = format!("{{\"issuer\": \"{}", "canary".repeat(350_000));
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

async fn metadata(State(shared): State<Shared>) -> Response {
    let (issuer, lie, key) = {
        let inner = shared.lock();
        (inner.issuer.clone(), inner.lie, inner.key)
    };
    match lie {
        Some(Lie::MetadataPage) => return page(),
        Some(Lie::MetadataMissing) => return StatusCode::NOT_FOUND.into_response(),
        Some(Lie::MetadataFlood) => return flood(),
        Some(Lie::MetadataSilent) => return std::future::pending().await,
        _ => {}
    }
    let truth = |lies, lied: &str, truth: String| if lie == Some(lies) { lied.to_owned() } else { truth };
    Json(json!({
        "issuer": truth(Lie::Metadata, "http://127.0.0.1:1", issuer.clone()),
        "authorization_endpoint":
            truth(Lie::MetadataElsewhere, "http://evil.example/authorize", format!("{issuer}/authorize")),
        "token_endpoint":
            truth(Lie::MetadataTokenElsewhere, "http://192.0.2.1/token", format!("{issuer}/token")),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [key.name()],
        "code_challenge_methods_supported": ["S256"],
    }))
    .into_response()
}

async fn keys(State(shared): State<Shared>) -> Response {
    let inner = shared.lock();
    if inner.lie == Some(Lie::KeysPage) {
        return page();
    }
    Json(json!({ "keys": [inner.key.public()] })).into_response()
}

fn refused(error: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response()
}

/// The person agrees at once.
async fn authorize(State(shared): State<Shared>, Query(query): Query<HashMap<String, String>>) -> Response {
    let given = |name: &str| query.get(name).cloned();
    let code_flow = given("response_type").as_deref() == Some("code");
    let pkce = given("code_challenge_method").as_deref() == Some("S256");
    let known = given("client_id").as_deref() == Some(CLIENT_ID);
    let openid = given("scope").is_some_and(|scope| scope.split(' ').any(|scope| scope == "openid"));
    let (Some(challenge), Some(redirect), true) = (
        given("code_challenge"),
        given("redirect_uri"),
        code_flow && pkce && known && openid,
    ) else {
        return refused("invalid_request");
    };
    let mut inner = shared.lock();
    inner.issued += 1;
    let code = format!("code {}/+&=", inner.issued);
    let encoded = format!("code%20{}%2F%2B%26%3D", inner.issued);
    let state = given("state").unwrap_or_default();
    let place = format!(
        "{redirect}?state={state}&code={encoded}&iss={}&session_state=x",
        inner.issuer
    );
    let nonce = given("nonce");
    let grant = Grant {
        challenge,
        nonce,
        redirect,
    };
    inner.grants.insert(code, grant);
    Redirect::to(&place).into_response()
}

async fn token(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Form(form): Form<HashMap<String, String>>,
) -> Response {
    let lie = shared.lock().lie;
    match lie {
        Some(Lie::Failing) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Some(Lie::Busy) => return StatusCode::TOO_MANY_REQUESTS.into_response(),
        Some(Lie::TokenPage) => return page(),
        Some(Lie::TokenMoved) => return Redirect::temporary("/elsewhere").into_response(),
        Some(Lie::TokenFlood) => return flood(),
        Some(Lie::TokenSilent) => return std::future::pending().await,
        _ => {}
    }
    let mut inner = shared.lock();
    let basic = format!("Basic {}", STANDARD.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}")));
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if authorization != Some(basic.as_str()) {
        return refused("invalid_client");
    }
    let given = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    // A code is good once.
    let Some(grant) = inner.grants.remove(given("code")) else {
        return refused("invalid_grant");
    };
    let proved = encoded(Sha256::digest(given("code_verifier"))) == grant.challenge;
    if given("grant_type") != "authorization_code" || given("redirect_uri") != grant.redirect || !proved {
        return refused("invalid_grant");
    }
    let access_token = format!("access-{}", inner.issued);
    let mut answer = json!({ "access_token": access_token, "token_type": "Bearer", "expires_in": 300 });
    if inner.lie != Some(Lie::NoToken) {
        answer["id_token"] = id_token(&inner, grant.nonce.as_deref(), &access_token).into();
    }
    Json(answer).into_response()
}

fn id_token(inner: &Inner, nonce: Option<&str>, access_token: &str) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_secs());
    let half = |token: &str| encoded(&Sha256::digest(token)[..16]);
    let mut claims = json!({
        "iss": inner.issuer,
        "aud": CLIENT_ID,
        "nonce": nonce,
        "sub": inner.person.subject,
        "email": inner.person.email,
        "email_verified": inner.person.email_verified,
        "name": "Grace",
        "iat": now,
        "exp": now + 300,
    });
    // Of Ed25519 the protocol does not say which hash.
    if inner.key.algorithm != Algorithm::EdDsa {
        claims["at_hash"] = half(access_token).into();
    }
    let (claim, lied): (&str, Value) = match inner.lie {
        Some(Lie::Issuer) => ("iss", "https://evil.example".into()),
        Some(Lie::Audience) => ("aud", "another-client".into()),
        Some(Lie::TwoAudiences) => ("aud", json!([CLIENT_ID, "another-client"])),
        Some(Lie::Nonce) => ("nonce", "another-nonce".into()),
        Some(Lie::NoNonce) => ("nonce", Value::Null),
        Some(Lie::Expired) => ("exp", now.saturating_sub(60).into()),
        Some(Lie::AccessToken) => ("at_hash", half("another-token").into()),
        Some(Lie::Subject) => ("sub", "nul \u{0}".into()),
        Some(Lie::LongSubject) => ("sub", "s".repeat(256).into()),
        _ => ("iat", now.into()),
    };
    claims[claim] = lied;
    let header = match inner.lie {
        Some(Lie::Unsigned) => json!({ "alg": "none" }),
        Some(Lie::SharedSecret) => json!({ "alg": "HS256" }),
        _ => json!({ "alg": inner.key.name(), "kid": inner.key.id() }),
    };
    let of = |value: &Value| encoded(value.to_string());
    let signed = format!("{}.{}", of(&header), of(&claims));
    let signature = match inner.lie {
        Some(Lie::Unsigned) => Vec::new(),
        Some(Lie::SharedSecret) => keyed_hash(CLIENT_SECRET.as_bytes(), signed.as_bytes()),
        Some(Lie::Key) => Key {
            generation: 200,
            ..inner.key
        }
        .sign(signed.as_bytes()),
        _ => inner.key.sign(signed.as_bytes()),
    };
    if inner.lie == Some(Lie::Tampered) {
        claims["sub"] = "somebody-else".into();
    }
    format!("{}.{}.{}", of(&header), of(&claims), encoded(signature))
}

//! `occ up` with an identity provider in its Installation file: a person signs in, as a browser does it.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
};

use occ_e2e::{Home, Up, find};
use occ_test_support::oidc_provider::{CLIENT_ID, CLIENT_SECRET, OidcProvider, Person};
use serde_json::Value;
use tokio::runtime::Runtime;

/// An answer to a browser.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let named = lines.filter(|(called, _)| called.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value).collect()
    }

    fn place(&self) -> String {
        assert_eq!(self.status, 303, "{}{}", self.head, self.body);
        self.header("location")[0].to_owned()
    }

    /// The cookie that begins so, without what is said about it.
    fn cookie(&self, beginning: &str) -> Option<String> {
        let set = self.header("set-cookie").into_iter();
        let mut cookies = set.filter_map(|cookie| cookie.split(';').next());
        cookies.find(|cookie| cookie.starts_with(beginning)).map(str::to_owned)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Goes to a place, and nowhere from there.
fn go(url: &str, cookie: &str) -> Answer {
    let rest = url.strip_prefix("http://").expect("a place on loopback");
    let (address, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// What becomes of a browser whose person agrees with the provider.
fn signs_in(api: &str) -> Answer {
    let begun = go(&format!("{api}/api/auth/oidc/sign-in"), "");
    let attempt = begun.cookie("occ_oidc=").expect("a cookie of the attempt");
    let back = go(&begun.place(), "").header("location")[0].to_owned();
    assert!(back.starts_with(&format!("{api}/api/auth/oidc/callback?")), "{back}");
    go(&back, &attempt)
}

fn grace() -> Person {
    Person {
        subject: "grace|1".to_owned(),
        email: "grace@example.com".to_owned(),
        email_verified: true,
    }
}

/// A free address, which stays the same: the provider is told where the API is.
fn address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn a_person_signs_in_through_the_provider_that_the_installation_file_names() {
    let runtime = Runtime::new().unwrap();
    let provider = runtime.block_on(OidcProvider::start(grace())).unwrap();
    let mut home = Home::new();
    Up::whole(&mut home).stop();
    let listen = address();
    let api = format!("http://{listen}");
    let secret = home.write("client-secret", CLIENT_SECRET);
    let file = home.data().join("installation.yaml");
    let installation = fs::read_to_string(&file).unwrap();
    let changed = format!(
        "{installation}\nauthentication:\n  oidc:\n    issuer: {}\n    clientId: {CLIENT_ID}\n    clientSecretFile: {}\n    publicUrl: {api}\n    afterSignIn: /console\n",
        provider.issuer(),
        secret.display(),
    );
    fs::write(&file, changed).unwrap();
    home.set("OCC_LISTEN", &listen);
    home.set("OCC_API", &api);
    let up = Up::start(&home, [""; 0]);

    // Nobody is let in whom no administrator named.
    let unknown = signs_in(&api);
    assert_eq!(
        (unknown.status, unknown.json()["error"]["code"].clone()),
        (403, "FORBIDDEN".into())
    );
    assert_eq!(unknown.cookie("occ_session=occ_session_"), None);

    let made = home.json(["account", "create", "grace@example.com", "--name", "Grace"]);
    let issuer = provider.issuer();
    let link = [
        "account",
        "link",
        "grace@example.com",
        "--issuer",
        &issuer,
        "--subject",
        "grace|1",
    ];
    assert_eq!(home.occ(link).code, Some(0));
    let welcome = signs_in(&api);
    assert_eq!(welcome.place(), "/console");
    let session = welcome.cookie("occ_session=occ_session_").expect("a session");
    let seen = go(&format!("{api}/api/auth/session"), &session);
    assert_eq!(seen.status, 200, "{}", seen.body);
    let principal = &seen.json()["data"]["session"]["principalId"];
    assert!(
        principal.is_string() && principal == &made["account"]["principalId"],
        "{principal} {made}"
    );
    // Nothing is granted to a person who merely signs in.
    let denied = go(&format!("{api}/accounts"), &session);
    assert_eq!(denied.status, 403, "{}", denied.body);

    // Who signed in stays signed in across a restart; the secret stays where it was.
    up.stop();
    let up = Up::start(&home, [""; 0]);
    assert_eq!(go(&format!("{api}/api/auth/session"), &session).status, 200);
    drop(provider);
    drop(runtime);
    let away = go(&format!("{api}/api/auth/oidc/sign-in"), "");
    assert_eq!(
        (away.status, away.json()["error"]["code"].clone()),
        (503, "DEPENDENCY_UNAVAILABLE".into())
    );
    up.stop();
    let canaries = [CLIENT_SECRET.to_owned(), session["occ_session=".len()..].to_owned()];
    assert_eq!(
        find(&home.data(), &canaries),
        [],
        "no file of the control plane holds them"
    );
    for canary in &canaries {
        assert!(
            !home.transcript().contains(canary),
            "neither the log nor an output does"
        );
    }
}

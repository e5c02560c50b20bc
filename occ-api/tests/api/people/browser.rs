//! A browser, as far as the API can tell: it keeps the cookie, and says where a write comes from.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::served::{Seen, Served};

pub const PASSWORD: &str = "correct horse battery staple";

/// A signed-in browser, or one that is not yet.
#[derive(Clone, Default)]
pub struct Browser {
    pub cookie: String,
    pub csrf: String,
}

impl Browser {
    /// What a sign-in gave.
    pub fn of(seen: &Seen) -> Self {
        assert_eq!(seen.status.as_u16(), 200, "{}", seen.body);
        let set = set_cookie(seen).expect("a cookie");
        let cookie = set.split(';').next().expect("a cookie").to_owned();
        let csrf = seen.data()["csrfToken"].as_str().expect("a token").to_owned();
        Self { cookie, csrf }
    }

    #[allow(clippy::needless_pass_by_value, reason = "as the client's own methods take it")]
    pub fn request(&self, served: &Served, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://{}{path}", served.address);
        let mut request = served.http.request(method.clone(), url).header("cookie", &self.cookie);
        if method != Method::GET {
            request = request
                .header("origin", format!("http://{}", served.address))
                .header("sec-fetch-site", "same-origin")
                .header("x-csrf-token", &self.csrf);
        }
        request
    }

    pub async fn get(&self, served: &Served, path: &str) -> Seen {
        ask(self.request(served, Method::GET, path)).await
    }

    pub async fn post(&self, served: &Served, path: &str, body: &Value) -> Seen {
        ask(self.request(served, Method::POST, path).json(body)).await
    }

    /// Whether the session is still one.
    pub async fn is_signed_in(&self, served: &Served) -> bool {
        let seen = self.get(served, "/api/auth/session").await;
        match seen.status.as_u16() {
            200 => true,
            401 => false,
            status => panic!("{status}: {}", seen.body),
        }
    }
}

pub async fn ask(request: RequestBuilder) -> Seen {
    Seen::of(request.send().await.expect("an answer")).await
}

pub fn set_cookie(seen: &Seen) -> Option<String> {
    let value = seen.headers.get("set-cookie")?;
    Some(value.to_str().expect("text").to_owned())
}

/// An account with a password for a new person; the principal's id.
pub async fn account(served: &Served, email: &str) -> String {
    let body = json!({ "email": email, "name": "Grace", "password": PASSWORD });
    let seen = served.json(Method::POST, "/accounts", &body).await;
    assert_eq!(seen.status.as_u16(), 201, "{}", seen.body);
    assert_eq!(seen.data()["code"], Value::Null);
    seen.data()["account"]["principalId"]
        .as_str()
        .expect("an id")
        .to_owned()
}

/// An account with a password for the administrator.
pub async fn administrator(served: &Served) {
    let principal = &served.world.admin.principal;
    let body = json!({ "email": "ada@example.com", "name": "Ada", "principalId": principal, "password": PASSWORD });
    let seen = served.json(Method::POST, "/accounts", &body).await;
    assert_eq!(seen.status.as_u16(), 201, "{}", seen.body);
}

pub async fn try_password(served: &Served, email: &str, password: &str) -> Seen {
    let url = format!("http://{}/api/auth/sign-in/email", served.address);
    let body = json!({ "email": email, "password": password });
    ask(served.http.post(url).json(&body)).await
}

pub async fn sign_in(served: &Served, email: &str) -> Browser {
    Browser::of(&try_password(served, email, PASSWORD).await)
}

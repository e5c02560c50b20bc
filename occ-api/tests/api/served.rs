//! A served control plane, and what its answers look like.

use std::{
    net::SocketAddr,
    sync::{Arc, LazyLock},
};

use occ_core::{
    control::{ControlPlane, CreateServiceKey},
    id::RequestId,
    resource::{Name, PrincipalId},
    store::{Store, sqlite::SqliteStore},
};
use occ_test_support::drivers::World;
use reqwest::{Method, Response, StatusCode, header::HeaderMap};
use serde_json::Value;
use tokio::sync::oneshot;

/// An empty store. The one place to plug another one in.
pub async fn store() -> Arc<dyn Store> {
    Arc::new(SqliteStore::open_in_memory().await.expect("a database in memory"))
}

/// A served control plane with a key of its administrator.
pub struct Served {
    pub world: World,
    pub address: SocketAddr,
    pub key: String,
    pub http: reqwest::Client,
    _stop: oneshot::Sender<()>,
}

impl Served {
    pub async fn new() -> Self {
        Self::over(World::builder().store(store().await).build().await).await
    }

    /// Serves this world.
    pub async fn over(world: World) -> Self {
        let plane = world.plane.clone();
        Self::serving(world, plane).await
    }

    /// Trusting this around it.
    pub async fn with(access: occ_api::Access) -> Self {
        Self::trusting(World::builder().store(store().await).build().await, access).await
    }

    /// Serves this world, trusting this around it.
    pub async fn trusting(world: World, access: occ_api::Access) -> Self {
        let router = occ_api::router_with(world.plane.clone(), access);
        Self::routing(world, router).await
    }

    /// Serves this control plane over the world's store.
    pub async fn serving(world: World, plane: ControlPlane) -> Self {
        Self::routing(world, occ_api::router(plane)).await
    }

    async fn routing(world: World, router: axum::Router) -> Self {
        let key = key_of(&world, &world.admin.principal).await;
        let listener = occ_api::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(occ_api::serve(listener, router, async {
            let _ = stopped.await;
        }));
        // Whatever else is built beside this, its client wants a TLS provider even for plain HTTP.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self {
            world,
            address,
            key,
            http,
            _stop: stop,
        }
    }

    /// Below the Namespace `default`.
    pub fn path(&self, below: &str) -> String {
        format!("/namespaces/{}{below}", self.world.namespace)
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http
            .request(method, format!("http://{}{path}", self.address))
            .header("x-api-key", &self.key)
    }

    pub async fn send(&self, method: Method, path: &str) -> Seen {
        let request = self.request(method.clone(), path);
        Self::documented(method, path, request).await
    }

    pub async fn json(&self, method: Method, path: &str, body: &Value) -> Seen {
        let request = self.request(method.clone(), path).json(body);
        Self::documented(method, path, request).await
    }

    pub async fn text(&self, method: Method, path: &str, body: impl Into<reqwest::Body>) -> Seen {
        let request = self.request(method.clone(), path);
        let request = request.header("content-type", "application/json").body(body);
        Self::documented(method, path, request).await
    }

    /// The answer, whose status the OpenAPI document gives for this operation.
    async fn documented(method: Method, path: &str, request: reqwest::RequestBuilder) -> Seen {
        let seen = Seen::of(request.send().await.expect("an answer")).await;
        if let Some(statuses) = statuses_of(&method, path) {
            let status = seen.status.as_u16();
            assert!(
                statuses.contains(&status),
                "{method} {path}: {status} is not documented"
            );
        }
        seen
    }

    pub fn agents(&self) -> String {
        format!("/namespaces/{}/agents", self.world.namespace)
    }
}

/// An answer whose envelope and headers were checked.
pub struct Seen {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Seen {
    pub async fn of(response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let header = |name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        assert_eq!(header("cache-control"), "no-store");
        assert_eq!(header("x-content-type-options"), "nosniff");
        let id = header("x-request-id");
        assert!(id.parse::<RequestId>().is_ok(), "{id}");
        let bytes = response.bytes().await.expect("a body");
        if status == StatusCode::NO_CONTENT {
            assert!(bytes.is_empty());
            return Self {
                status,
                headers,
                body: Value::Null,
            };
        }
        assert_eq!(header("content-type"), "application/json; charset=utf-8");
        let body: Value = serde_json::from_slice(&bytes).expect("JSON");
        assert_eq!(body["meta"]["requestId"], id);
        assert_eq!(body.get("data").is_some(), status.is_success(), "{body}");
        assert_eq!(body.get("error").is_some(), !status.is_success(), "{body}");
        Self { status, headers, body }
    }

    /// What was returned.
    pub fn data(&self) -> &Value {
        &self.body["data"]
    }

    pub fn message(&self) -> &str {
        self.body["error"]["message"].as_str().unwrap_or_default()
    }

    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    pub fn detail(&self) -> (&str, &str) {
        let detail = &self.body["error"]["details"][0];
        (
            detail["path"].as_str().unwrap_or_default(),
            detail["code"].as_str().unwrap_or_default(),
        )
    }
}

/// The statuses that the OpenAPI document gives for an operation; nothing when it knows none.
fn statuses_of(method: &Method, path: &str) -> Option<Vec<u16>> {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(occ_api::openapi);
    let path: Vec<_> = path.split('?').next()?.split('/').collect();
    let fits = |template: &str| {
        let template: Vec<_> = template.split('/').collect();
        let same = |(part, given): (&&str, &&str)| part.starts_with('{') || part == given;
        template.len() == path.len() && template.iter().zip(&path).all(same)
    };
    let paths = DOCUMENT["paths"].as_object()?;
    let (_, methods) = paths.iter().find(|(template, _)| fits(template))?;
    let responses = methods.get(method.as_str().to_ascii_lowercase())?["responses"].as_object()?;
    responses.keys().map(|status| status.parse().ok()).collect()
}

/// A service key of this principal.
pub async fn key_of(world: &World, principal: &PrincipalId) -> String {
    let input = CreateServiceKey {
        principal_id: principal.clone(),
        name: "test".parse::<Name>().expect("a name"),
        namespace_id: None,
        expires_in: None,
    };
    let issued = world
        .plane
        .create_service_key(&world.admin, input)
        .await
        .expect("a key");
    issued.value.expose_str().expect("a key is text").to_owned()
}

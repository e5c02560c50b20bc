//! The connection to the database is cut at the commit of a deployment.

use occ_core::store::{
    Store,
    postgres::{PostgresSettings, PostgresStore},
};
use occ_test_support::{
    drivers::World,
    postgres::Database,
    proxy::{Proxy, Trap},
};
use reqwest::Method;
use std::sync::Arc;

use crate::served::{Seen, Served};

/// What only the request of a commit holds: its audit.
const COMMIT: &[u8] = b"openclaw.agents.deploy";

struct Scene {
    /// Gone with it.
    _database: Database,
    proxy: Proxy,
    served: Served,
    agent: String,
}

impl Scene {
    async fn new() -> Self {
        let database = Database::fresh().await;
        let mut url = url::Url::parse(&database.url()).expect("a URL");
        let host = (url.host_str().expect("a host"), url.port().unwrap_or(5432));
        let address = tokio::net::lookup_host(host).await.expect("an address").next();
        let proxy = Proxy::start(address.expect("an address")).await.expect("a proxy");
        url.set_host(Some("127.0.0.1")).expect("a host");
        url.set_port(Some(proxy.address().port())).expect("a port");
        let settings = PostgresSettings::from_url(url.as_str()).expect("a URL");
        let store = PostgresStore::open(&settings).await.expect("the store opens");
        let store: Arc<dyn Store> = Arc::new(store);
        let served = Served::over(World::builder().store(store).build().await).await;
        let agent = served.world.deployable("triage").await;
        let agent = served.path(&format!("/agents/{}", agent.id));
        let scene = Self {
            _database: database,
            proxy,
            served,
            agent,
        };
        // The first one makes the Agent's credentials, in a commit of its own.
        assert_eq!(scene.deploy(None).await.status.as_u16(), 202);
        scene
    }

    async fn deploy(&self, key: Option<&str>) -> Seen {
        let request = self.served.request(Method::POST, &format!("{}/deploy", self.agent));
        let request = match key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        };
        Seen::of(request.send().await.expect("an answer")).await
    }

    /// The numbers of the versions.
    async fn versions(&self) -> Vec<u64> {
        let listed = self
            .served
            .send(Method::GET, &format!("{}/revisions", self.agent))
            .await;
        let versions = listed.data().as_array().expect("a list").iter();
        versions.map(|v| v["revision"].as_u64().expect("a number")).collect()
    }

    async fn cut(&self, trap: Trap, key: Option<&str>) {
        let before = self.proxy.sprung();
        self.proxy.trap(trap, COMMIT);
        let seen = self.deploy(key).await;
        assert_eq!(self.proxy.sprung(), before + 1, "it was cut once, and not tried again");
        assert_eq!((seen.status.as_u16(), seen.code()), (503, "DEPENDENCY_UNAVAILABLE"));
        assert!(seen.message().starts_with("The outcome is not known"), "{}", seen.body);
    }
}

/// The database did it: it is there once, and the key gives the first result.
pub async fn a_deployment_whose_commit_is_not_answered_is_done_once_and_its_key_says_so() {
    let scene = Scene::new().await;
    scene.cut(Trap::Answer, None).await;
    assert_eq!(scene.versions().await, [1, 2], "done, and not repeated");
    scene.cut(Trap::Answer, Some("once")).await;
    assert_eq!(scene.versions().await, [1, 2, 3], "done, and not repeated");
    let again = scene.deploy(Some("once")).await;
    assert_eq!(
        (again.status.as_u16(), &again.data()["revision"]),
        (202, &3.into()),
        "{}",
        again.body
    );
    assert_eq!(scene.versions().await, [1, 2, 3]);
    let path = format!(
        "{}/revisions/{}",
        scene.agent,
        again.data()["id"].as_str().expect("an id")
    );
    assert_eq!(
        scene.served.send(Method::GET, &path).await.data()["digest"],
        again.data()["digest"]
    );
}

/// The database never saw it: nothing is there, and the key makes the retry the first one.
pub async fn a_deployment_whose_commit_never_arrives_is_not_done_and_its_key_does_it() {
    let scene = Scene::new().await;
    scene.cut(Trap::Request, None).await;
    scene.cut(Trap::Request, Some("once")).await;
    assert_eq!(scene.versions().await, [1], "nothing is sent again by itself");
    let first = scene.deploy(Some("once")).await;
    assert_eq!(
        (first.status.as_u16(), &first.data()["revision"]),
        (202, &2.into()),
        "{}",
        first.body
    );
    let again = scene.deploy(Some("once")).await;
    assert_eq!(again.data(), first.data());
    assert_eq!(scene.versions().await, [1, 2]);
}

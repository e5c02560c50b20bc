//! What a request costs in round trips to the database, which do not depend on the machine.

use std::{process::ExitCode, sync::Arc};

use occ_bench::{Calls, Observer};
use occ_conformance::{Case, run};
use occ_core::{
    control::{Caller, CreateServiceKey},
    id::RequestId,
    store::{
        Store,
        postgres::{PostgresSettings, PostgresStore},
        sqlite::SqliteStore,
    },
};
use occ_test_support::{
    drivers::World,
    postgres::{Database, absent},
    proxy::Proxy,
};

/// At most so many calls of the store for one deployment, from the key to the 202.
const DEPLOY_CALLS: u64 = 3;
/// At most so many calls for a read of an Agent.
const READ_CALLS: u64 = 3;

fn main() -> ExitCode {
    let embedded = Case::new("a_deployment_asks_the_store_a_handful_of_times", || async {
        let store = SqliteStore::open_in_memory().await.expect("a database in memory");
        handful_of_calls(Arc::new(store)).await;
    });
    let on_a_server = [
        Case::new("a_deployment_asks_the_store_a_handful_of_times_on_a_server", || async {
            let database = Database::fresh().await;
            let store = PostgresStore::open(&database.settings())
                .await
                .expect("the store opens");
            handful_of_calls(Arc::new(store)).await;
        }),
        Case::new("each_call_of_the_store_is_one_round_trip", one_round_trip_a_call),
    ];
    let on_a_server = on_a_server.map(|case| match absent() {
        None => case,
        Some(reason) => Case::skipped(case.name().to_owned(), reason),
    });
    run([embedded].into_iter().chain(on_a_server))
}

/// A control plane with an Agent that has been deployed before, and its administrator's key.
struct Scene {
    world: World,
    observer: Arc<Observer>,
    key: String,
    agent: occ_core::id::AgentId,
}

impl Scene {
    async fn over(store: Arc<dyn Store>) -> Self {
        let world = World::builder().store(store).build().await;
        let agent = world.deployable("support").await.id;
        let input = CreateServiceKey {
            principal_id: world.admin.principal.clone(),
            name: "counted".parse().expect("a name"),
            namespace_id: None,
            expires_in: None,
        };
        let issued = world
            .plane
            .create_service_key(&world.admin, input)
            .await
            .expect("a key");
        let observer = Arc::new(Observer::default());
        world.store.watch(Arc::clone(&observer) as _);
        let scene = Self {
            key: issued.value.expose_str().expect("text").to_owned(),
            world,
            observer,
            agent,
        };
        // The first deployment of an Agent makes its credentials as well, and fills what is kept.
        scene.deploy().await;
        scene
    }

    /// As each request does.
    async fn caller(&self) -> Caller {
        let caller = self.world.plane.authenticate(&self.key, RequestId::random()).await;
        caller.expect("a valid key")
    }

    async fn deploy(&self) -> Calls {
        self.observer.take_calls();
        let caller = self.caller().await;
        let admitted = self.world.plane.deploy_agent(&caller, self.world.namespace, self.agent);
        admitted.await.expect("it is admitted");
        self.observer.take_calls()
    }

    async fn read(&self) -> Calls {
        self.observer.take_calls();
        let caller = self.caller().await;
        let read = self.world.plane.saved_agent(&caller, self.world.namespace, self.agent);
        read.await.expect("it is read");
        self.observer.take_calls()
    }
}

async fn handful_of_calls(store: Arc<dyn Store>) {
    let scene = Scene::over(store).await;
    let mut before = Calls::new();
    for _ in 0..20 {
        let calls = scene.deploy().await;
        let all: u64 = calls.values().sum();
        assert!(all <= DEPLOY_CALLS, "{calls:?}");
        assert_eq!(calls.get("commit"), Some(&1), "one transaction: {calls:?}");
        assert!(before.is_empty() || calls == before, "they grow: {before:?}, {calls:?}");
        before = calls;
    }
    let calls = scene.read().await;
    assert!(calls.values().sum::<u64>() <= READ_CALLS, "{calls:?}");
}

/// Seen on the wire. What tells other processes of the new work comes after the answer, and is one more.
async fn one_round_trip_a_call() {
    let database = Database::fresh().await;
    let mut url = url::Url::parse(&database.url()).expect("a URL");
    let host = (url.host_str().expect("a host"), url.port().unwrap_or(5432));
    let server = tokio::net::lookup_host(host).await.expect("an address").next();
    let proxy = Proxy::start(server.expect("an address")).await.expect("a proxy");
    url.set_host(Some("127.0.0.1")).expect("a host");
    url.set_port(Some(proxy.address().port())).expect("a port");
    let settings = PostgresSettings::from_url(url.as_str()).expect("a URL");
    // One connection, so that none is opened meanwhile.
    let store = PostgresStore::open(&settings.with_connections(1)).await;
    let scene = Scene::over(Arc::new(store.expect("the store opens"))).await;
    for _ in 0..3 {
        scene.deploy().await;
        scene.read().await;
    }
    for _ in 0..20 {
        // The notification of the deployment before may still be under way, and the one of this one may come in time.
        proxy.take_round_trips();
        let calls: u64 = scene.deploy().await.values().sum();
        let trips = proxy.take_round_trips();
        assert!(trips <= calls + 2, "{trips} round trips for {calls} calls");
        assert!(trips >= calls, "{trips} round trips for {calls} calls");
    }
}

//! What readers that wait cost, in virtual time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, BodyDataStream},
    http::{Request, StatusCode},
    response::Response,
};
use futures_util::StreamExt as _;
use occ_core::{store::Store as _, work::Lease};
use occ_simulation::memory::MemoryStore;
use occ_test_support::drivers::{Watch, World};
use tower::ServiceExt as _;

use crate::served::key_of;

/// Looks at deployments.
#[derive(Default)]
struct Looks(AtomicUsize);

impl Watch for Looks {
    fn called(&self, method: &'static str) {
        if method == "deployment" {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Looks {
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

struct Scene {
    world: World,
    router: Router,
    key: String,
    deployment: String,
    looks: Arc<Looks>,
}

impl Scene {
    async fn new(places: usize) -> Self {
        let world = World::builder().store(Arc::new(MemoryStore::default())).build().await;
        let agent = world.deployable("a").await.id;
        let admitted = world.plane.deploy_agent(&world.admin, world.namespace, agent).await;
        let id = admitted.expect("it is admitted").id;
        let looks = Arc::new(Looks::default());
        world.store.watch(Arc::clone(&looks) as _);
        let access = occ_api::Access {
            listeners: places,
            ..occ_api::Access::default()
        };
        Self {
            router: occ_api::router_with(world.plane.clone(), access),
            key: key_of(&world, &world.admin.principal).await,
            deployment: format!("/namespaces/{}/agents/{agent}/deployments/{id}", world.namespace),
            world,
            looks,
        }
    }

    async fn get(&self, below: &str) -> Response {
        let request = Request::get(format!("{}{below}", self.deployment)).header("x-api-key", &self.key);
        let request = request.body(Body::empty()).expect("a request");
        self.router.clone().oneshot(request).await.expect("an answer")
    }

    /// A stream whose first event was taken.
    async fn watching(&self) -> BodyDataStream {
        let response = self.get("/events").await;
        assert_eq!(response.status(), StatusCode::OK);
        let mut events = response.into_body().into_data_stream();
        assert!(text(&mut events).await.contains("queued"));
        events
    }

    /// The deployment begins to run.
    async fn claim(&self) {
        let lease = Lease {
            duration: Duration::from_hours(1),
            max_attempts: 5,
        };
        let claims = self.world.store.claim(10, lease).await.expect("a claim");
        assert!(!claims.is_empty());
    }
}

async fn text(events: &mut BodyDataStream) -> String {
    let next = events.next().await.expect("not over").expect("it goes on");
    String::from_utf8(next.to_vec()).expect("text")
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_a_quiet_deployment_hardly_looks_and_hears_of_a_change_at_once() {
    let scene = Scene::new(8).await;
    let mut events = scene.watching().await;
    scene.looks.take();
    let quiet = async {
        loop {
            assert!(text(&mut events).await.starts_with(':'), "only signs of life");
        }
    };
    let _ = tokio::time::timeout(Duration::from_mins(9), quiet).await;
    let looks = scene.looks.take();
    assert!(looks <= 37, "{looks} looks in nine quiet minutes");
    scene.claim().await;
    let heard = tokio::time::timeout(Duration::from_millis(300), text(&mut events)).await;
    assert!(heard.expect("at once").contains("running"));

    drop(events);
    tokio::time::sleep(Duration::from_secs(1)).await;
    scene.looks.take();
    let waited = scene.get("?wait=60s").await;
    assert_eq!(waited.status(), StatusCode::OK);
    let looks = scene.looks.take();
    assert!(looks <= 6, "{looks} looks in a quiet minute");
}

#[tokio::test(start_paused = true)]
async fn a_reader_whose_store_hears_nothing_looks_by_itself() {
    let scene = Scene::new(8).await;
    scene.world.store.deafen();
    let mut events = scene.watching().await;
    scene.claim().await;
    let seen = tokio::time::timeout(Duration::from_millis(2500), text(&mut events)).await;
    assert!(seen.expect("soon").contains("running"));
}

#[tokio::test(start_paused = true)]
async fn however_much_moves_a_reader_looks_four_times_a_second() {
    let scene = Scene::new(8).await;
    let mut events = scene.watching().await;
    scene.looks.take();
    let busy = async {
        loop {
            scene
                .world
                .deployable(&format!("b{}", occ_core::id::AgentId::random()))
                .await;
            let agents = scene.world.store.agents(scene.world.namespace).await.expect("a read");
            let agent = agents.last().expect("an Agent").agent.id;
            let deployed = scene
                .world
                .plane
                .deploy_agent(&scene.world.admin, scene.world.namespace, agent);
            deployed.await.expect("it is admitted");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(5), busy).await;
    let looks = scene.looks.take();
    assert!((15..=21).contains(&looks), "{looks} looks in five busy seconds");
    drop(events.next());
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_loses_its_place() {
    let scene = Scene::new(1).await;
    let stalled = scene.get("/events").await;
    assert_eq!(stalled.status(), StatusCode::OK);
    scene.claim().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(scene.get("/events").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(scene.get("/events").await.status(), StatusCode::OK);
    drop(stalled);
}

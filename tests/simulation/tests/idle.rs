//! What an idle worker costs its database, counted in virtual time (issue 4).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use occ_core::{
    store::Store,
    work::{Claim, Policy},
    worker::{Worker, WorkerHandle},
};
use occ_simulation::memory::MemoryStore;
use occ_test_support::drivers::{RecordingStore, Watch, World};

/// Every call of the store's is one transaction of a database's.
#[derive(Default)]
struct Counted {
    calls: AtomicUsize,
    claims: AtomicUsize,
}

impl Watch for Counted {
    fn called(&self, _: &'static str) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn claimed(&self, claims: &[Claim]) {
        self.claims.fetch_add(claims.len(), Ordering::Relaxed);
    }
}

struct Scene {
    world: World,
    store: Arc<RecordingStore>,
    counted: Arc<Counted>,
}

impl Scene {
    async fn new() -> Self {
        let world = World::builder().store(Arc::new(MemoryStore::default())).build().await;
        let store = Arc::new(RecordingStore::around(world.store.clone()));
        let counted = Arc::new(Counted::default());
        store.watch(Arc::clone(&counted) as _);
        Self { world, store, counted }
    }

    fn work(&self) -> WorkerHandle {
        let store = Arc::clone(&self.store) as Arc<dyn Store>;
        Worker::new(store, Arc::clone(&self.world.drivers), Policy::default()).start()
    }

    /// Calls in ten quiet minutes, after one in which the worker came to rest.
    async fn idle(&self) -> usize {
        tokio::time::sleep(Duration::from_mins(1)).await;
        self.counted.calls.store(0, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_mins(10)).await;
        self.counted.calls.load(Ordering::Relaxed)
    }

    async fn deploy(&self, name: &str) {
        let agent = self.world.deployable(name).await.id;
        let (admin, namespace) = (&self.world.admin, self.world.namespace);
        let admitted = self.world.plane.deploy_agent(admin, namespace, agent).await;
        admitted.expect("a deployable Agent");
    }

    fn claims(&self) -> usize {
        self.counted.claims.load(Ordering::Relaxed)
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_that_is_woken_for_work_hardly_asks_and_claims_at_once() {
    let scene = Scene::new().await;
    let worker = scene.work();
    let calls = scene.idle().await;
    // The aim is 0.2 transactions a second; the database's own checks of idle connections come on top of these.
    assert!(calls <= 31, "{calls} calls in ten quiet minutes");
    let before = scene.claims();
    scene.deploy("one").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(scene.claims(), before + 1);
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_hears_nothing_looks_again_after_every_interval() {
    let scene = Scene::new().await;
    scene.store.deafen();
    let worker = scene.work();
    let calls = scene.idle().await;
    assert!((230..=250).contains(&calls), "{calls} calls in ten quiet minutes");
    let before = scene.claims();
    scene.deploy("one").await;
    tokio::time::sleep(Policy::default().poll_interval + Duration::from_millis(10)).await;
    assert_eq!(scene.claims(), before + 1, "nobody announced it");
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_claims_come_too_late_looks_again_soon_and_ever_more_seldom() {
    let scene = Scene::new().await;
    let worker = scene.work();
    scene.idle().await;
    let before = scene.claims();
    scene.store.lose_claims(3);
    scene.deploy("one").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(scene.claims(), before + 1, "nobody announced that it is still there");
    scene.store.lose_claims(usize::MAX);
    scene.deploy("two").await;
    let calls = scene.idle().await;
    assert!(
        calls <= 120,
        "{calls} calls in ten minutes in which nothing could be claimed"
    );
    worker.shutdown().await;
}

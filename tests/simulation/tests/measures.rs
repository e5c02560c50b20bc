//! What a worker counts of its passes, in virtual time.

use std::{sync::Arc, time::Duration};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use occ_core::{
    driver::RevisionObservation,
    store::{CommitError, Store},
    work::Policy,
    worker::{Worker, WorkerHandle},
};
use occ_simulation::memory::MemoryStore;
use occ_test_support::drivers::{NullCompute, World};

/// What this thread measured, as long as it lives: every task of the test runs on it.
struct Measured {
    handle: PrometheusHandle,
    world: World,
    worker: WorkerHandle,
}

impl Measured {
    async fn new() -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        // For the rest of the test, whose thread is its own.
        std::mem::forget(metrics::set_default_local_recorder(&*Box::leak(Box::new(recorder))));
        let store = Arc::new(MemoryStore::default());
        let world = World::builder()
            .compute(NullCompute::default())
            .store(store)
            .build()
            .await;
        let store = Arc::clone(&world.store) as Arc<dyn Store>;
        let worker = Worker::new(store, Arc::clone(&world.drivers), Policy::default()).start();
        Self { handle, world, worker }
    }

    async fn deploy(&self) {
        let (admin, namespace) = (&self.world.admin, self.world.namespace);
        let agent = self.world.deployable("a").await.id;
        let admitted = self.world.plane.deploy_agent(admin, namespace, agent).await;
        admitted.expect("a deployable Agent");
    }

    /// The sum of the samples whose series has all of these.
    fn count(&self, name: &str, labels: &[&str]) -> u64 {
        let text = self.handle.render();
        let samples = text.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let of_it = series.starts_with(name) && labels.iter().all(|label| series.contains(label));
            of_it.then(|| value.parse::<u64>().expect("a count"))
        });
        samples.sum()
    }

    async fn until_counted(&self, name: &str, labels: &[&str]) {
        for _ in 0..36_000 {
            if self.count(name, labels) > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{name} {labels:?} in\n{}", self.handle.render())
    }
}

const LOST: &str = "occ_leases_lost_total";
const RECOVERED: &str = "occ_work_recovered_total";
const UNPUBLISHED: &str = "occ_results_unpublished_total";
const SETTLED: &str = "occ_work_settled_total";

#[tokio::test(start_paused = true)]
async fn a_lease_that_lapsed_is_counted_and_so_is_its_recovery() {
    let measured = Measured::new().await;
    measured.world.compute.prepare.during(|_| std::future::pending());
    measured.world.store.silence_renewals();
    measured.deploy().await;
    measured.until_counted(LOST, &["kind=\"revision\""]).await;
    measured.until_counted(RECOVERED, &[]).await;
    assert_eq!(measured.count(UNPUBLISHED, &[]), 0);
    measured.worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_result_that_the_store_refuses_is_no_lost_lease() {
    let measured = Measured::new().await;
    let store = Arc::clone(&measured.world.store);
    measured.world.compute.activate.with(move |target| {
        store.fail(CommitError::Refused);
        Ok(RevisionObservation::ready(&target))
    });
    measured.deploy().await;
    measured.until_counted(UNPUBLISHED, &["kind=\"revision\""]).await;
    assert_eq!(measured.count(LOST, &[]), 0);
    measured.worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_could_not_read_is_among_the_outcomes() {
    let measured = Measured::new().await;
    measured.world.store.spoil_pass_reads(1);
    measured.deploy().await;
    let retried = ["outcome=\"retried\"", "code=\"DEPENDENCY_UNAVAILABLE\""];
    measured.until_counted(SETTLED, &retried).await;
    measured.worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_shutdown_gives_back_is_among_the_outcomes() {
    let mut measured = Measured::new().await;
    measured.world.compute.prepare.during(|_| std::future::pending());
    measured.deploy().await;
    while measured.world.compute.prepare.waiting() > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let store = Arc::clone(&measured.world.store) as Arc<dyn Store>;
    let drivers = Arc::clone(&measured.world.drivers);
    let idle = Worker::new(store, drivers, Policy::default()).start();
    std::mem::replace(&mut measured.worker, idle).shutdown().await;
    let deferred = [
        "kind=\"revision\"",
        "outcome=\"deferred\"",
        "code=\"CONTROLLER_SHUTDOWN\"",
    ];
    assert_eq!(measured.count(SETTLED, &deferred), 1);
    assert_eq!(measured.count(LOST, &[]), 0);
    measured.worker.shutdown().await;
}

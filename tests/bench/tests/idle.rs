//! What a worker without work costs.

use std::sync::Arc;

use occ_bench::Observer;
use occ_core::{work::Policy, worker::Worker};
use occ_test_support::drivers::World;
use tokio::time::Instant;

/// Queries that are watched: hours of an idle worker, which pass at once.
const QUERIES: u64 = 2_000;

/// The clock stands still and jumps to the worker's next look as soon as nothing else is left to do. The worker's are the only
/// timers, so nothing depends on how fast the machine is. A database in memory has no timer of its own.
#[tokio::test]
async fn the_idle_worker_asks_at_most_once_a_second() {
    let world = World::new().await;
    let agent = world.deployable("ticket-triage").await;
    let observer = Arc::new(Observer::default());
    world.store.watch(Arc::clone(&observer) as _);
    let mut ended = observer.ended();
    let mut queries = observer.queries();
    let worker = Worker::new(
        Arc::clone(&world.store) as _,
        Arc::clone(&world.drivers),
        Policy::default(),
    )
    .start();
    let deployed = world.plane.deploy_agent(&world.admin, world.namespace, agent.id).await;
    deployed.expect("it is admitted");
    ended
        .wait_for(|ended| ended.succeeded == 1)
        .await
        .expect("it is watched");

    tokio::time::pause();
    let begun = Instant::now();
    let before = *queries.borrow_and_update();
    queries
        .wait_for(|queries| *queries >= before + QUERIES)
        .await
        .expect("it is watched");
    let passed = begun.elapsed().as_secs();
    let calls = observer.take_calls();
    worker.shutdown().await;
    // What was left of the deployment is a handful of queries more.
    assert!(passed + 10 >= QUERIES, "{QUERIES} queries in {passed} s: {calls:?}");
}

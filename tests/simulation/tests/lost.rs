//! How soon the work of a worker that was killed is taken up again, in virtual time (issue 4).

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use occ_core::{driver::RevisionObservation, store::Store, work::Policy, worker::Worker};
use occ_simulation::memory::{MemoryStore, State, Work};
use occ_test_support::drivers::{NullCompute, Watch, World};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

/// Of a real thousand on PostgreSQL: `tests/conformance/tests/postgres/faults.rs`.
const AGENTS: usize = 200;

/// A worker that dies when its task is aborted, and with it its passes: nothing gives anything back.
fn worker(world: &World, policy: Policy) -> JoinHandle<()> {
    let store = Arc::clone(&world.store) as Arc<dyn Store>;
    let worker = Worker::new(store, Arc::clone(&world.drivers), policy);
    tokio::spawn(worker.run(CancellationToken::new()))
}

/// Waits until every deployment is claimed, for this time.
async fn claimed(memory: &MemoryStore, attempt: u32, count: usize) {
    let all = || {
        let data = memory.data();
        let of_agents = data.work.values().filter(|work| work.target.revision().is_some());
        let claimed = of_agents.filter(|work| work.attempts == attempt && matches!(work.state, State::Claimed { .. }));
        claimed.count() == count
    };
    while !all() {
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn all_claims_of_a_killed_worker_are_claimed_again_within_a_lease_and_a_second() {
    let (memory, compute) = (MemoryStore::default(), NullCompute::default());
    for _ in 0..2 * AGENTS {
        compute.prepare.during(|_| pending());
    }
    let world = World::builder()
        .compute(compute)
        .store(Arc::new(memory.clone()))
        .build()
        .await;
    for number in 0..AGENTS {
        let agent = world.deployable(&format!("agent {number}")).await.id;
        let admitted = world.plane.deploy_agent(&world.admin, world.namespace, agent).await;
        admitted.expect("a deployable Agent");
    }
    let policy = Policy {
        concurrency: AGENTS,
        ..Policy::default()
    };
    let first = worker(&world, policy);
    claimed(&memory, 1, AGENTS).await;
    first.abort();
    let _ = first.await;
    let (killed, second) = (Instant::now(), worker(&world, policy));
    claimed(&memory, 2, AGENTS).await;
    let took = killed.elapsed();
    assert!(took <= policy.lease + Duration::from_secs(1), "{took:?}");
    second.abort();
}

/// When renewals were asked for.
#[derive(Default)]
struct Asked(Mutex<Vec<Instant>>);

impl Watch for Asked {
    fn called(&self, method: &'static str) {
        if method == "renew" {
            self.0.lock().unwrap().push(Instant::now());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_is_asked_again_and_costs_no_attempt() {
    let (memory, compute) = (MemoryStore::default(), NullCompute::default());
    let policy = Policy::default();
    compute.prepare.during(move |target| async move {
        tokio::time::sleep(2 * policy.lease).await;
        Ok(RevisionObservation::ready(&target))
    });
    let world = World::builder()
        .compute(compute)
        .store(Arc::new(memory.clone()))
        .build()
        .await;
    let agent = world.deployable("agent").await.id;
    let admitted = world.plane.deploy_agent(&world.admin, world.namespace, agent).await;
    let revision = admitted.expect("a deployable Agent").id;
    let asked = Arc::new(Asked::default());
    world.store.watch(Arc::clone(&asked) as _);
    // For a second, with a pause after each.
    world.store.fail_renewals(50);
    let worker = worker(&world, policy);
    let ended = || {
        let data = memory.data();
        let work = data.work.values().find(|work| work.target.revision() == Some(revision));
        work.filter(|work| work.is_over()).cloned()
    };
    let work = loop {
        match ended() {
            Some(work) => break work,
            None => tokio::time::sleep(Duration::from_millis(25)).await,
        }
    };
    assert!(matches!(work.state, State::Succeeded(..)), "{:?}", work.state);
    assert_eq!(work.attempts, 1);
    let renewals = asked.0.lock().unwrap().clone();
    assert!(
        renewals.len() <= 50 + 6,
        "it asks three times a lease: {}",
        renewals.len()
    );
    let failed = renewals[49].duration_since(renewals[0]);
    assert!(failed >= Duration::from_millis(900), "without a pause: {failed:?}");
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_worker_held_is_taken_back_while_there_is_always_something_to_claim() {
    const LOST: usize = 2;
    let (memory, compute) = (MemoryStore::default(), NullCompute::default());
    for _ in 0..LOST {
        compute.prepare.during(|_| pending());
    }
    for _ in 0..AGENTS {
        compute.prepare.during(|target| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(RevisionObservation::ready(&target))
        });
    }
    let world = World::builder()
        .compute(compute)
        .store(Arc::new(memory.clone()))
        .build()
        .await;
    let deploy = async |number: usize| {
        let agent = world.deployable(&format!("agent {number}")).await.id;
        let admitted = world.plane.deploy_agent(&world.admin, world.namespace, agent).await;
        admitted.expect("a deployable Agent").id
    };
    let policy = Policy {
        concurrency: LOST,
        ..Policy::default()
    };
    let mut lost = Vec::new();
    for number in 0..LOST {
        lost.push(deploy(number).await);
    }
    let first = worker(&world, policy);
    claimed(&memory, 1, LOST).await;
    first.abort();
    let _ = first.await;
    for number in LOST..AGENTS {
        deploy(number).await;
    }
    let (killed, second) = (Instant::now(), worker(&world, policy));
    let held = || {
        let data = memory.data();
        let of_lost = data.work.values();
        let of_lost = of_lost.filter(|work| work.target.revision().is_some_and(|id| lost.contains(&id)));
        let held = |work: &&Work| work.attempts == 1 && matches!(work.state, State::Claimed { .. });
        of_lost.filter(held).count()
    };
    while held() > 0 {
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let took = killed.elapsed();
    assert!(took <= policy.lease + Duration::from_secs(2), "{took:?}");
    let waiting = memory
        .data()
        .work
        .values()
        .filter(|work| matches!(work.state, State::Queued))
        .count();
    assert!(waiting > LOST, "there was something to claim all the time");
    second.abort();
}

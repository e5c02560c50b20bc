//! Calls of drivers that never end, and waits that outlast a deadline, in virtual time.

use std::{future::pending, sync::Arc, time::Duration};

use occ_core::{
    driver::Stop,
    id::{AgentId, RevisionId},
    reason::{Failure, Pending, Success},
    store::Store,
    work::{Policy, Target},
    worker::{Worker, WorkerHandle},
};
use occ_simulation::memory::{MemoryStore, State, Work};
use occ_test_support::drivers::{Call, NullCompute, World};
use tokio::time::Instant;

struct Scene {
    world: World,
    memory: MemoryStore,
    agent: AgentId,
}

impl Scene {
    async fn new(compute: NullCompute) -> Self {
        let memory = MemoryStore::default();
        let store = Arc::new(memory.clone());
        let world = World::builder().compute(compute).store(store).build().await;
        let agent = world.deployable("a").await.id;
        Self { world, memory, agent }
    }

    fn work(&self) -> WorkerHandle {
        let store = Arc::clone(&self.world.store) as Arc<dyn Store>;
        Worker::new(store, Arc::clone(&self.world.drivers), Policy::default()).start()
    }

    async fn deploy(&self) -> RevisionId {
        let (admin, namespace) = (&self.world.admin, self.world.namespace);
        let admitted = self.world.plane.deploy_agent(admin, namespace, self.agent).await;
        admitted.expect("a deployable Agent").id
    }

    fn work_of(&self, revision: RevisionId) -> Work {
        let target = Target::Revision {
            namespace: self.world.namespace,
            agent: self.agent,
            revision,
        };
        self.memory.data().work[&target.key()].clone()
    }

    async fn ended(&self, revision: RevisionId) -> State {
        until(|| self.work_of(revision).is_over()).await;
        self.work_of(revision).state
    }

    async fn called(&self, call: Call) {
        until(|| self.world.compute.calls().contains(&call)).await;
    }

    fn active(&self) -> Option<RevisionId> {
        self.memory.data().agents[&self.agent].agent.active_revision_id
    }
}

/// An hour is more than any deadline.
async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..36_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it does not happen within an hour")
}

/// Between two looks of this test.
const LOOK: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn a_call_that_never_ends_is_cut_off_and_its_deployment_ends_at_the_deadline() {
    let scene = Scene::new(NullCompute::default()).await;
    scene.world.compute.prepare.every(|_| pending());
    let revision = scene.deploy().await;
    let (began, worker) = (Instant::now(), scene.work());
    let state = scene.ended(revision).await;
    let Policy {
        convergence_timeout,
        effect_timeout,
        ..
    } = Policy::default();
    assert!(
        matches!(state, State::Failed(Failure::ConvergenceDeadlineExceeded, ..)),
        "{state:?}"
    );
    let took = began.elapsed();
    assert!(took >= convergence_timeout, "{took:?}");
    assert!(took <= convergence_timeout + effect_timeout, "{took:?}");
    assert_eq!(scene.active(), None);
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn each_call_that_never_ends_spends_an_attempt() {
    let scene = Scene::new(NullCompute::default()).await;
    scene.world.compute.prepare.during(|_| pending());
    let revision = scene.deploy().await;
    let worker = scene.work();
    let state = scene.ended(revision).await;
    assert!(matches!(state, State::Succeeded(..)), "{state:?}");
    let work = scene.work_of(revision);
    assert_eq!(work.attempts, 2);
    assert_eq!(
        work.last_attempt.map(|last| last.code),
        Some(Pending::DependencyUnavailable)
    );
    worker.shutdown().await;
}

/// The same lane: what hangs must not keep an Agent from being stopped, nor from being deleted.
#[tokio::test(start_paused = true)]
async fn a_stop_and_a_deletion_come_after_a_call_that_never_ends() {
    let scene = Scene::new(NullCompute::default()).await;
    let (world, agent) = (&scene.world, scene.agent);
    let limit = Policy::default().effect_timeout + LOOK;
    world.compute.prepare.during(|_| pending());
    let worker = scene.work();
    let revision = scene.deploy().await;
    scene.called(Call::Prepare(revision)).await;
    let (admin, namespace) = (&world.admin, world.namespace);
    world
        .plane
        .stop_agent(admin, namespace, agent)
        .await
        .expect("the Agent");
    let began = Instant::now();
    scene.called(Call::Stop(revision)).await;
    assert!(began.elapsed() <= limit, "{:?}", began.elapsed());

    world.compute.prepare.during(|_| pending());
    let revision = scene.deploy().await;
    scene.called(Call::Prepare(revision)).await;
    world
        .plane
        .delete_agent(admin, namespace, agent)
        .await
        .expect("the Agent");
    let began = Instant::now();
    until(|| !scene.memory.data().agents.contains_key(&agent)).await;
    assert!(began.elapsed() <= limit, "{:?}", began.elapsed());
    worker.shutdown().await;
}

/// Not the Compute alone: the worker waits for no driver for ever.
#[tokio::test(start_paused = true)]
async fn a_policy_that_never_answers_holds_no_lane() {
    let scene = Scene::new(NullCompute::default()).await;
    let revision = scene.deploy().await;
    scene.world.iam.set_hanging(true);
    let worker = scene.work();
    until(|| scene.work_of(revision).last_attempt.is_some()).await;
    scene.world.iam.set_hanging(false);
    let state = scene.ended(revision).await;
    assert!(matches!(state, State::Succeeded(..)), "{state:?}");
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_knows_until_when_its_call_may_take() {
    let scene = Scene::new(NullCompute::default()).await;
    let worker = scene.work();
    let revision = scene.deploy().await;
    scene.ended(revision).await;
    worker.shutdown().await;
    let left = scene.world.compute.activate.remaining().expect("a deadline");
    let limit = Policy::default().effect_timeout;
    assert!(left <= limit && left + Duration::from_mins(1) > limit, "{left:?}");
}

/// The version serves: what is left of the one before is no part of its getting ready.
#[tokio::test(start_paused = true)]
async fn a_predecessor_that_drains_past_the_deadline_fails_no_version_that_serves() {
    let scene = Scene::new(NullCompute::default().maintained(Duration::from_mins(1))).await;
    let worker = scene.work();
    let first = scene.deploy().await;
    scene.ended(first).await;
    scene.world.compute.retire.every(|_| async { Ok(Stop::Draining) });
    let second = scene.deploy().await;
    let grace = 2 * Policy::default().convergence_timeout;
    tokio::time::sleep(grace).await;
    let work = scene.work_of(second);
    assert!(!work.is_over(), "{:?}", work.state);
    assert_eq!(
        work.last_attempt.map(|last| last.code),
        Some(Pending::RevisionFinalizationIncomplete)
    );
    scene.world.compute.retire.every(|_| async { Ok(Stop::Stopped) });
    let state = scene.ended(second).await;
    let State::Succeeded(Success::RevisionAlreadyActive, ..) = state else {
        panic!("{state:?}")
    };
    let looks = || {
        let data = scene.memory.data();
        let of = |work: &&Work| {
            matches!(work.target, Target::Maintenance { revision, .. } if revision == second) && !work.is_over()
        };
        data.work.values().filter(of).count()
    };
    assert_eq!(looks(), 1, "it is looked after");
    worker.shutdown().await;
}

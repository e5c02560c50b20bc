//! Faults that the reference's engine had (docs/engine-bugs.md), made to happen again in virtual time.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use occ_core::{
    driver::{Action, EffectError, Fault, FaultKind, IamDriver as _, ResourceKind, RevisionObservation, Stop},
    id::{AgentId, RevisionId},
    reason::{Failure, Pending},
    store::{CommitError, Expect, Store},
    work::{Policy, Target},
    worker::{Worker, WorkerHandle},
};
use occ_simulation::memory::{MemoryStore, State, Work};
use occ_test_support::drivers::{Call, NullCompute, RecordingStore, World};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

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

    fn work(&self, max_attempts: u32) -> WorkerHandle {
        let policy = Policy {
            max_attempts,
            ..Policy::default()
        };
        let store = Arc::clone(&self.world.store) as Arc<dyn Store>;
        Worker::new(store, Arc::clone(&self.world.drivers), policy).start()
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

fn fault() -> EffectError {
    Fault::new("do something", FaultKind::Unavailable).into()
}

/// Findings 1010 and 1021: each restart during the stop of a refused candidate spent an attempt.
#[tokio::test(start_paused = true)]
async fn a_shutdown_during_a_refused_stop_spends_no_attempt_and_keeps_the_refusal() {
    let scene = Scene::new(NullCompute::default()).await;
    let revision = scene.deploy().await;
    let (iam, principal) = (&scene.world.iam, &scene.world.admin.principal);
    iam.deny(principal, Action::Deploy, ResourceKind::Agent);
    // The first stop of all, and one after a stop that failed.
    for fails_before in [false, true] {
        if fails_before {
            scene.world.compute.stop.next(Err(fault()));
        }
        scene.world.compute.stop.during(|_| pending());
        let worker = scene.work(2);
        until(|| scene.world.compute.stop.waiting() == 0).await;
        worker.shutdown().await;
        let work = scene.work_of(revision);
        assert_eq!((&work.state, work.attempts), (&State::Queued, 0));
        let refusal = work.last_attempt.and_then(|last| last.refusal);
        assert_eq!(refusal, fails_before.then_some(Failure::AuthorizationDenied));
    }
    assert_eq!(
        scene.work_of(revision).last_attempt.map(|last| last.failed_stops),
        Some(1)
    );
    let worker = scene.work(1);
    assert!(matches!(
        scene.ended(revision).await,
        State::Failed(Failure::AuthorizationDenied, ..)
    ));
    worker.shutdown().await;
}

/// The same, of workers that are killed: the refusal was not yet stored when its first stop began.
#[tokio::test(start_paused = true)]
async fn workers_that_die_during_the_first_refused_stop_neither_end_the_work_nor_forget_the_refusal() {
    let scene = Scene::new(NullCompute::default()).await;
    let compute = &scene.world.compute;
    compute
        .prepare
        .with(|target| Ok(RevisionObservation::pending(&target, Pending::RevisionIncomplete)));
    let revision = scene.deploy().await;
    let worker = scene.work(2);
    until(|| scene.work_of(revision).last_attempt.is_some()).await;
    worker.shutdown().await;
    let (iam, principal) = (&scene.world.iam, &scene.world.admin.principal);
    iam.deny(principal, Action::Deploy, ResourceKind::Agent);
    for _ in 0..5 {
        compute.stop.during(|_| pending());
        let policy = Policy {
            max_attempts: 2,
            ..Policy::default()
        };
        let store = Arc::clone(&scene.world.store) as Arc<dyn Store>;
        let worker = Worker::new(store, Arc::clone(&scene.world.drivers), policy);
        let worker = tokio::spawn(worker.run(CancellationToken::new()));
        until(|| compute.stop.waiting() == 0 || scene.work_of(revision).is_over()).await;
        worker.abort();
        let _ = worker.await;
    }
    let work = scene.work_of(revision);
    assert!(!work.is_over(), "its candidate runs: {:?}", work.state);
    let refusal = work.last_attempt.and_then(|last| last.refusal);
    assert_eq!(refusal, Some(Failure::AuthorizationDenied));
    let worker = scene.work(2);
    assert!(matches!(
        scene.ended(revision).await,
        State::Failed(Failure::AuthorizationDenied, ..)
    ));
    worker.shutdown().await;
}

/// A Compute that activates before the pointer moves had routed to a candidate that was then refused, and left there.
#[tokio::test(start_paused = true)]
async fn a_refused_candidate_that_was_activated_before_the_commit_is_stopped_first() {
    let scene = Scene::new(NullCompute::default().before_commit()).await;
    let worker = scene.work(5);
    let first = scene.deploy().await;
    scene.ended(first).await;
    let (store, iam, admin) = (
        Arc::clone(&scene.world.store),
        Arc::clone(&scene.world.iam),
        scene.world.admin.principal.clone(),
    );
    scene.world.compute.activate.with(move |target| {
        store.fail(CommitError::Conflict(Expect::Agent(target.agent.id, 1)));
        iam.deny(&admin, Action::Deploy, ResourceKind::Agent);
        Ok(RevisionObservation::ready(&target))
    });
    scene.world.compute.stop.next(Err(fault()));
    let second = scene.deploy().await;
    until(|| scene.world.compute.stop.waiting() == 0 || scene.work_of(second).is_over()).await;
    assert!(!scene.work_of(second).is_over(), "it serves");
    let state = scene.ended(second).await;
    assert!(
        matches!(state, State::Failed(Failure::AuthorizationDenied, ..)),
        "{state:?}"
    );
    let calls = scene.world.compute.calls();
    assert_eq!(calls.iter().filter(|call| **call == Call::Stop(second)).count(), 2);
    assert!(!calls.contains(&Call::Stop(first)), "the selected one is left alone");
    worker.shutdown().await;
}

struct Ended(Arc<Mutex<Option<Instant>>>);

impl Drop for Ended {
    fn drop(&mut self) {
        *self.0.lock().unwrap() = Some(Instant::now());
    }
}

/// `claimloss`: renewals that were never answered let two workers act for one Agent.
#[tokio::test(start_paused = true)]
async fn an_effect_ends_with_the_lease_when_no_renewal_is_answered() {
    an_effect_ends_with_the_lease(RecordingStore::silence_renewals).await;
}

#[tokio::test(start_paused = true)]
async fn an_effect_ends_with_the_lease_when_every_renewal_fails() {
    an_effect_ends_with_the_lease(|store| store.fail_renewals(usize::MAX)).await;
}

async fn an_effect_ends_with_the_lease(cut: impl Fn(&RecordingStore)) {
    let scene = Scene::new(NullCompute::default()).await;
    let (ended, again) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
    let (end, start) = (Ended(Arc::clone(&ended)), Arc::clone(&again));
    scene.world.compute.prepare.during(move |_| async move {
        let _end = end;
        pending().await
    });
    scene.world.compute.prepare.with(move |target| {
        *start.lock().unwrap() = Some(Instant::now());
        Ok(RevisionObservation::ready(&target))
    });
    let cut_off = Arc::new(RecordingStore::around(scene.world.store.clone()));
    cut(&cut_off);
    let policy = Policy::default();
    let first = Worker::new(cut_off, Arc::clone(&scene.world.drivers), policy).start();
    let revision = scene.deploy().await;
    until(|| scene.world.compute.calls().contains(&Call::Prepare(revision))).await;
    let claimed = Instant::now();
    let second = scene.work(5);
    let state = scene.ended(revision).await;
    assert!(matches!(state, State::Succeeded(..)), "{state:?}");
    let ended = ended.lock().unwrap().expect("the effect ended");
    let again = again.lock().unwrap().expect("another attempt");
    assert!(ended <= again, "two workers acted at once");
    let lasted = ended.duration_since(claimed);
    assert!(lasted <= policy.lease, "it outlived its lease");
    assert!(lasted > policy.lease * 3 / 4, "it has its lease: {lasted:?}");
    assert_eq!(scene.work_of(revision).attempts, 2, "what was lost is spent");
    for worker in [first, second] {
        worker.shutdown().await;
    }
}

/// Many short effects left no time for the renewal, and health was as late as the renewal.
#[tokio::test(start_paused = true)]
async fn many_short_effects_starve_neither_the_renewal_nor_the_health() {
    const VERSIONS: usize = 60;
    let scene = Scene::new(NullCompute::default().exclusive()).await;
    let mut newest = scene.deploy().await;
    for _ in 1..VERSIONS {
        newest = scene.deploy().await;
        scene.world.compute.stop.during(|_| async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Ok(Stop::Stopped)
        });
    }
    let began = Instant::now();
    let worker = scene.work(5);
    until(|| {
        assert!(worker.health().live(), "the loop goes on beside the pass");
        scene.work_of(newest).is_over()
    })
    .await;
    assert!(
        began.elapsed() > 2 * Policy::default().lease,
        "the pass outlived its first lease"
    );
    let work = scene.work_of(newest);
    assert!(matches!(work.state, State::Succeeded(..)), "{:?}", work.state);
    assert_eq!((work.attempts, work.last_attempt), (1, None), "in one attempt");
    worker.shutdown().await;
}

/// The audit of a deployment was written again, with the decision of the IAM Driver that was selected later.
#[tokio::test(start_paused = true)]
async fn the_audit_of_a_deployment_keeps_the_decision_that_admitted_it() {
    let scene = Scene::new(NullCompute::default()).await;
    let (world, deploys) = (&scene.world, |request: &occ_core::driver::AccessRequest| {
        request.action == Action::Deploy
    });
    world.iam.take_asked();
    let revision = scene.deploy().await;
    assert_eq!(
        world.iam.take_asked().into_iter().filter(deploys).count(),
        1,
        "asked once"
    );
    world.iam.set_impostor(true);
    let worker = scene.work(5);
    let state = scene.ended(revision).await;
    assert!(
        matches!(state, State::Failed(Failure::DependencyUnavailable, ..)),
        "{state:?}"
    );
    worker.shutdown().await;
    let data = scene.memory.data();
    let admitted = data.audit.iter().find(|event| event.action == "openclaw.agents.deploy");
    let decision = &admitted
        .and_then(|event| event.authorization.as_ref())
        .expect("its decision")
        .decision;
    assert!(decision.allowed);
    assert_eq!(decision.driver_id, world.iam.identity().id);
}

/// Identical waits of a Namespace that is going were recorded each time.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_takes_long_is_recorded_once() {
    let scene = Scene::new(NullCompute::default()).await;
    let input = occ_core::control::CreateNamespace {
        name: "second".parse().expect("a name"),
        existing_namespace: None,
    };
    let waits = Err(EffectError::Pending(Pending::NamespaceIncomplete));
    scene.world.compute.ensure_namespace.times(20, &waits);
    let created = scene.world.plane.create_namespace(&scene.world.admin, input).await;
    let namespace = created.expect("a new Namespace").id;
    let worker = scene.work(5);
    let key = Target::NamespaceReady { namespace }.key();
    until(|| scene.memory.data().work[&key].is_over()).await;
    worker.shutdown().await;
    let data = scene.memory.data();
    let evidence = data
        .audit
        .iter()
        .filter(|event| event.details.get("workId").is_some_and(|id| id == key.as_str()));
    let codes: Vec<_> = evidence.filter_map(|event| event.reason_code.clone()).collect();
    assert_eq!(codes, ["NAMESPACE_INCOMPLETE", "NAMESPACE_RECONCILED"]);
}

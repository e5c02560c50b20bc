//! What becomes of a pass whose result meets something else, or a store that is away, in virtual time (spec/engine 4 and 5.3).

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::FutureExt as _;
use occ_core::{
    audit::{AuditKind, AuditOutcome},
    driver::{Action, EffectResult, NamespaceState, ResourceKind, RevisionObservation},
    id::{AgentId, NamespaceId, RevisionId},
    reason::{Failure, Success},
    resource::NamespaceStatus,
    store::{Change, CommitError, Expect, Store, Write},
    work::{Claim, Policy, Target},
    worker::{Worker, WorkerHandle},
};
use occ_simulation::memory::{MemoryStore, State, Work};
use occ_test_support::drivers::{Call, NullCompute, RecordingStore, Watch, World};
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

    const fn deployment(&self, revision: RevisionId) -> Target {
        Target::Revision {
            namespace: self.world.namespace,
            agent: self.agent,
            revision,
        }
    }

    /// The work once it is over; an hour is more than any deadline.
    async fn ended(&self, target: Target) -> Work {
        for _ in 0..36_000 {
            let work = self.memory.data().work[&target.key()].clone();
            if work.is_over() {
                return work;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it does not end within an hour")
    }

    /// What was recorded of the work.
    fn evidence(&self, target: Target) -> Vec<String> {
        let data = self.memory.data();
        let key = target.key();
        let of_work = data
            .audit
            .iter()
            .filter(|event| event.details.get("workId").is_some_and(|id| id == key.as_str()));
        of_work.filter_map(|event| event.reason_code.clone()).collect()
    }

    /// A Namespace that is still to be provided, to a Compute that then does this; what was to be done before is done.
    async fn provided<F>(
        &self,
        max_attempts: u32,
        during: impl FnOnce(NamespaceId) -> F + Send + 'static,
    ) -> NamespaceId
    where
        F: Future<Output = EffectResult<NamespaceState>> + Send + 'static,
    {
        let first = self.work(max_attempts);
        let target = Target::NamespaceReady {
            namespace: self.world.namespace,
        };
        self.ended(target).await;
        first.shutdown().await;
        self.world.compute.ensure_namespace.during(during);
        let input = occ_core::control::CreateNamespace {
            name: "second".parse().expect("a name"),
            existing_namespace: None,
        };
        let created = self.world.plane.create_namespace(&self.world.admin, input).await;
        created.expect("a new Namespace").id
    }

    fn status(&self, namespace: NamespaceId) -> NamespaceStatus {
        self.memory.data().namespaces[&namespace].row.namespace.status
    }
}

const fn there(namespace_id: NamespaceId) -> NamespaceState {
    NamespaceState {
        namespace_id,
        done: true,
    }
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_recorded_with_the_end_of_its_deployment() {
    let scene = Scene::new(NullCompute::default()).await;
    let revision = scene.deploy().await;
    let (iam, principal) = (&scene.world.iam, &scene.world.admin.principal);
    iam.deny(principal, Action::Deploy, ResourceKind::Agent);
    let worker = scene.work(5);
    let work = scene.ended(scene.deployment(revision)).await;
    worker.shutdown().await;
    assert!(matches!(work.state, State::Failed(Failure::AuthorizationDenied, ..)));
    let data = scene.memory.data();
    let denials: Vec<_> = data
        .audit
        .iter()
        .filter(|event| event.kind == AuditKind::AuthorizationDenial)
        .collect();
    let [denial] = &denials[..] else {
        panic!("one denial: {denials:?}")
    };
    assert_eq!(denial.action, "openclaw.agents.deploy");
    assert_eq!(denial.outcome, AuditOutcome::Denied);
    assert_eq!(denial.resource, work.target.resource());
}

/// Whatever moved since the last read, the result is not lost with it: the work is looked at again at once, not when its lease ends.
#[tokio::test(start_paused = true)]
async fn what_moved_before_the_publication_is_looked_at_again() {
    let elsewhere = CommitError::Conflict(Expect::Agent(AgentId::random(), 1));
    for moved in [elsewhere, CommitError::StateConflict] {
        let scene = Scene::new(NullCompute::default()).await;
        let store = Arc::clone(&scene.world.store);
        scene.world.compute.activate.with(move |target| {
            store.fail(moved);
            Ok(RevisionObservation::ready(&target))
        });
        let target = scene.deployment(scene.deploy().await);
        let worker = scene.work(5);
        let work = scene.ended(target).await;
        worker.shutdown().await;
        let State::Succeeded(Success::RevisionAlreadyActive, ..) = work.state else {
            panic!("{:?}", work.state)
        };
        assert_eq!(work.attempts, 2);
        assert_eq!(
            scene.evidence(target),
            ["ACTIVE_REVISION_CHANGED", "REVISION_ALREADY_ACTIVE"]
        );
    }
}

/// Nothing is tried again after the last attempt. What belongs to the end is read first, from a store that may be away for a moment.
#[tokio::test(start_paused = true)]
async fn the_last_attempt_that_something_moved_under_ends_with_what_belongs_to_it() {
    for unreadable in [0, 1] {
        let scene = Scene::new(NullCompute::default()).await;
        let store = Arc::clone(&scene.world.store);
        let namespace = scene
            .provided(1, move |namespace| async move {
                store.fail(CommitError::StateConflict);
                store.fail_pass_reads(unreadable);
                Ok(there(namespace))
            })
            .await;
        let worker = scene.work(1);
        let work = scene.ended(Target::NamespaceReady { namespace }).await;
        worker.shutdown().await;
        let State::Failed(Failure::ActiveRevisionChanged, ..) = work.state else {
            panic!("{:?}", work.state)
        };
        assert_eq!(scene.status(namespace), NamespaceStatus::Failed);
    }
}

/// Nothing was committed: what was prepared waits for the store, as a result does.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_when_the_pointer_moves_costs_no_attempt() {
    for away in [CommitError::Unavailable, CommitError::NoSpace] {
        let scene = Scene::new(NullCompute::default()).await;
        let store = Arc::clone(&scene.world.store);
        scene.world.compute.prepare.with(move |target| {
            (0..20).for_each(|_| store.fail(away.clone()));
            Ok(RevisionObservation::ready(&target))
        });
        let revision = scene.deploy().await;
        let worker = scene.work(1);
        let work = scene.ended(scene.deployment(revision)).await;
        worker.shutdown().await;
        let State::Succeeded(Success::RevisionActivated, ..) = work.state else {
            panic!("{:?}", work.state)
        };
        assert_eq!(work.attempts, 1);
        let prepared = scene.world.compute.calls();
        let prepared = prepared.iter().filter(|call| **call == Call::Prepare(revision));
        assert_eq!(prepared.count(), 1, "nor its preparation");
    }
}

/// The pointer names it, so it goes on: nobody else would activate it.
#[tokio::test(start_paused = true)]
async fn a_pointer_whose_move_was_not_answered_is_read_again_before_anything_ends() {
    let scene = Scene::new(NullCompute::default()).await;
    let store = Arc::clone(&scene.world.store);
    scene.world.compute.prepare.with(move |target| {
        store.lose_answer();
        Ok(RevisionObservation::ready(&target))
    });
    let revision = scene.deploy().await;
    let worker = scene.work(1);
    let work = scene.ended(scene.deployment(revision)).await;
    worker.shutdown().await;
    let State::Succeeded(Success::RevisionActivated, ..) = work.state else {
        panic!("{:?}", work.state)
    };
    assert!(scene.world.compute.calls().contains(&Call::Activate(revision)));
}

/// A move that was sent and not answered may still arrive after it was looked for: then the end is not what was decided.
#[tokio::test(start_paused = true)]
async fn a_pointer_that_moves_late_is_noticed_by_the_end_and_its_version_comes_to_run() {
    let scene = Scene::new(NullCompute::default()).await;
    let (store, memory, agent) = (Arc::clone(&scene.world.store), scene.memory.clone(), scene.agent);
    scene.world.compute.prepare.with(move |target| {
        store.fail(CommitError::UnknownOutcome);
        let late = Change::new().write(Write::ActiveRevision(agent, Some(target.id)));
        store.race(async move { memory.commit(late).await.expect("nothing stands against it") });
        Ok(RevisionObservation::ready(&target))
    });
    let revision = scene.deploy().await;
    let worker = scene.work(1);
    let work = scene.ended(scene.deployment(revision)).await;
    let State::Failed(Failure::ActiveRevisionChanged, ..) = work.state else {
        panic!("{:?}", work.state)
    };
    let activated = || scene.world.compute.calls().contains(&Call::Activate(revision));
    for _ in 0..3600 {
        if activated() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(activated(), "it is selected, and nobody brings it up");
    worker.shutdown().await;
}

/// Between two questions to a store that is away a lease may end; what is asked then is refused by the fence.
const ONE_PAUSE: Duration = Duration::from_secs(1);

/// When the last claim was made, and when it was read or written for since.
#[derive(Default)]
struct Asked(Mutex<(Option<Instant>, Vec<Instant>)>);

impl Watch for Asked {
    fn called(&self, method: &'static str) {
        if matches!(method, "pass_read" | "commit") {
            self.0.lock().unwrap().1.push(Instant::now());
        }
    }

    fn claimed(&self, claims: &[Claim]) {
        if !claims.is_empty() {
            *self.0.lock().unwrap() = (Some(Instant::now()), Vec::new());
        }
    }
}

/// The Compute does this to the store, which is then away for longer than the lease. Of the pass the store hears no more once the lease
/// ended, or `late` after.
async fn a_pass_is_given_up_with_its_lease<F>(
    late: Duration,
    during: impl FnOnce(Arc<RecordingStore>, NamespaceId) -> F + Send + 'static,
) where
    F: Future<Output = EffectResult<NamespaceState>> + Send + 'static,
{
    let scene = Scene::new(NullCompute::default()).await;
    let store = Arc::clone(&scene.world.store);
    let namespace = scene.provided(1, move |namespace| during(store, namespace)).await;
    let asked = Arc::new(Asked::default());
    scene.world.store.watch(Arc::clone(&asked) as _);
    scene.world.store.fail_renewals(usize::MAX);
    let worker = scene.work(1);
    let work = scene.ended(Target::NamespaceReady { namespace }).await;
    assert!(
        matches!(work.state, State::Failed(Failure::LeaseExpired, ..)),
        "{:?}",
        work.state
    );
    assert_eq!(scene.status(namespace), NamespaceStatus::Failed);
    tokio::time::sleep(Duration::from_mins(1)).await;
    let (claimed, asked) = std::mem::take(&mut *asked.0.lock().unwrap());
    let end = claimed.expect("a claim") + Policy::default().lease + late;
    assert!(asked.iter().all(|at| *at < end), "somebody else may have it by then");
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_not_taken_is_given_up_with_the_lease() {
    a_pass_is_given_up_with_its_lease(ONE_PAUSE, |store, namespace| async move {
        (0..10_000).for_each(|_| store.fail(CommitError::Unavailable));
        Ok(there(namespace))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_end_that_cannot_be_read_for_is_given_up_with_the_lease() {
    a_pass_is_given_up_with_its_lease(ONE_PAUSE, |store, namespace| async move {
        store.fail(CommitError::StateConflict);
        store.fail_pass_reads(usize::MAX);
        Ok(there(namespace))
    })
    .await;
}

/// A shutdown gives its claims back; the end of a lease has none to give.
#[tokio::test(start_paused = true)]
async fn an_effect_that_the_lease_cut_off_settles_nothing() {
    a_pass_is_given_up_with_its_lease(Duration::ZERO, |_, _| pending()).await;
}

/// A process that was suspended, or a machine that slept, goes on in the middle of a pass, and its timers come later.
#[tokio::test(start_paused = true)]
async fn no_effect_begins_after_a_suspension_past_the_lease() {
    let scene = Scene::new(NullCompute::default().before_commit()).await;
    let lease = Policy::default().lease;
    scene.world.compute.prepare.with(move |target| {
        // Time passes, and nobody gets to do anything meanwhile.
        assert_eq!(tokio::time::advance(lease).now_or_never(), None);
        Ok(RevisionObservation::ready(&target))
    });
    let revision = scene.deploy().await;
    let worker = scene.work(5);
    let work = scene.ended(scene.deployment(revision)).await;
    worker.shutdown().await;
    assert!(matches!(work.state, State::Succeeded(..)), "{:?}", work.state);
    assert_eq!(work.attempts, 2);
    let effects: Vec<_> = scene
        .world
        .compute
        .calls()
        .into_iter()
        .filter(|call| matches!(call, Call::Prepare(_) | Call::Activate(_)))
        .collect();
    assert_eq!(
        effects[..3],
        [
            Call::Prepare(revision),
            Call::Prepare(revision),
            Call::Activate(revision)
        ]
    );
}

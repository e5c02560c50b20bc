//! Rows that do not decode, and answers in another's name: what goes on all the same, and what ends with everything that belongs to
//! its end. In virtual time.

use std::{sync::Arc, time::Duration};

use occ_core::{
    audit::AuditKind,
    control::CreateNamespace,
    driver::{EffectError, Terminal},
    id::{AgentId, RevisionId},
    reason::{Failure, Success},
    resource::NamespaceStatus,
    store::{SavedField, Store},
    work::{Policy, Target},
    worker::{Worker, WorkerHandle},
};
use occ_simulation::memory::{MemoryStore, State, Work};
use occ_test_support::drivers::{Call, NullCompute, World};

struct Scene {
    world: World,
    memory: MemoryStore,
    agent: AgentId,
    worker: WorkerHandle,
}

impl Scene {
    async fn new(compute: NullCompute) -> Self {
        let memory = MemoryStore::default();
        let world = World::builder()
            .compute(compute)
            .store(Arc::new(memory.clone()))
            .build()
            .await;
        let agent = world.deployable("a").await.id;
        let store = Arc::clone(&world.store) as Arc<dyn Store>;
        let worker = Worker::new(store, Arc::clone(&world.drivers), Policy::default()).start();
        let scene = Self {
            world,
            memory,
            agent,
            worker,
        };
        let namespace = scene.world.namespace;
        scene.ended(Target::NamespaceReady { namespace }).await;
        scene
    }

    /// Admits a version, and does not wait for what becomes of it.
    async fn admit(&self) -> RevisionId {
        let (admin, namespace) = (&self.world.admin, self.world.namespace);
        let admitted = self.world.plane.deploy_agent(admin, namespace, self.agent).await;
        admitted.expect("a deployable Agent").id
    }

    async fn deploy(&self) -> (RevisionId, State) {
        let revision = self.admit().await;
        let target = Target::Revision {
            namespace: self.world.namespace,
            agent: self.agent,
            revision,
        };
        (revision, self.ended(target).await.state)
    }

    /// Stops the Agent.
    async fn stop(&self) -> State {
        let (admin, namespace) = (&self.world.admin, self.world.namespace);
        let asked = self.world.plane.request_stop(admin, namespace, self.agent).await;
        asked.expect("the Agent");
        let data = self.memory.data();
        let stops = data.work.values().filter(|work| work.target.kind() == "agent_stopped");
        let last = stops.max_by_key(|work| work.created_at).expect("a stop").target;
        self.ended(last).await.state
    }

    async fn delete(&self) -> State {
        let (admin, namespace) = (&self.world.admin, self.world.namespace);
        let asked = self.world.plane.delete_agent(admin, namespace, self.agent).await;
        asked.expect("the Agent");
        let agent = self.agent;
        self.ended(Target::AgentDeleted { namespace, agent }).await.state
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

    fn active(&self) -> Option<RevisionId> {
        self.memory.data().agents[&self.agent].agent.active_revision_id
    }

    fn called(&self, call: Call) -> bool {
        self.world.compute.calls().contains(&call)
    }

    fn is_live(&self, revision: RevisionId) -> bool {
        self.memory.data().revisions[&revision].live
    }
}

/// A version that serves, and one that failed and is kept for its logs.
async fn serving_beside_a_failed_one(compute: NullCompute) -> (Scene, RevisionId, RevisionId) {
    let scene = Scene::new(compute).await;
    let (served, state) = scene.deploy().await;
    assert!(matches!(state, State::Succeeded(Success::RevisionActivated, ..)));
    let terminal = EffectError::Terminal(Terminal::GatewayUnauthorized);
    scene.world.compute.prepare.next(Err(terminal));
    let (failed, state) = scene.deploy().await;
    assert!(matches!(state, State::Failed(Failure::AgentGatewayUnauthorized, ..)));
    (scene, served, failed)
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_a_version_that_does_not_decode_is_stopped_and_deleted() {
    let (scene, served, failed) = serving_beside_a_failed_one(NullCompute::default()).await;
    for spoilt in [served, failed] {
        scene.memory.spoil(spoilt, SavedField::HarnessAuth);
    }
    let state = scene.stop().await;
    assert!(
        matches!(state, State::Succeeded(Success::AgentStopped, ..)),
        "{state:?}"
    );
    assert!(scene.called(Call::Stop(served)) && scene.called(Call::Stop(failed)));
    assert_eq!(scene.active(), None);

    let state = scene.delete().await;
    assert!(
        matches!(state, State::Succeeded(Success::AgentDeleted, ..)),
        "{state:?}"
    );
    assert!(scene.called(Call::Retire(served)) && scene.called(Call::Retire(failed)));
    assert!(!scene.memory.data().agents.contains_key(&scene.agent));
    scene.worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn another_version_is_deployed_over_one_that_does_not_decode() {
    for compute in [NullCompute::default(), NullCompute::default().exclusive()] {
        let (scene, served, failed) = serving_beside_a_failed_one(compute).await;
        for spoilt in [served, failed] {
            scene.memory.spoil(spoilt, SavedField::HarnessAuth);
        }
        let (third, state) = scene.deploy().await;
        assert!(
            matches!(state, State::Succeeded(Success::RevisionActivated, ..)),
            "{state:?}"
        );
        assert_eq!(scene.active(), Some(third));
        assert!(!scene.is_live(served) && !scene.is_live(failed));
        scene.worker.shutdown().await;
    }
}

/// Nobody knows what runs a version whose Compute cannot be read. It is stopped here, as far as it can be; that it is stopped everywhere
/// is not said, and nothing of it is forgotten.
#[tokio::test(start_paused = true)]
async fn a_version_of_which_the_compute_cannot_be_read_is_never_said_to_be_gone() {
    let (scene, served, failed) = serving_beside_a_failed_one(NullCompute::default()).await;
    scene.memory.spoil(failed, SavedField::Configuration);
    let (third, state) = scene.deploy().await;
    assert!(
        matches!(state, State::Succeeded(Success::RevisionActivated, ..)),
        "{state:?}"
    );
    assert!(scene.called(Call::Retire(failed)) && scene.is_live(failed) && !scene.is_live(served));

    let state = scene.stop().await;
    assert!(
        matches!(state, State::Failed(Failure::InvalidAdmittedRevision, ..)),
        "{state:?}"
    );
    assert!(scene.called(Call::Stop(third)) && scene.called(Call::Stop(failed)));
    assert_eq!(scene.active(), Some(third));

    let state = scene.delete().await;
    assert!(
        matches!(state, State::Failed(Failure::InvalidAdmittedRevision, ..)),
        "{state:?}"
    );
    assert!(!scene.called(Call::Retire(third)) && !scene.called(Call::DeleteAgent(scene.agent)));
    scene.worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_does_not_decode_is_refused_once_its_candidate_is_stopped() {
    let scene = Scene::new(NullCompute::default()).await;
    scene.world.compute.prepare.during(|_| std::future::pending());
    let revision = scene.admit().await;
    while scene.world.compute.prepare.waiting() > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    scene.memory.spoil(revision, SavedField::Configuration);
    // The pass is given up with its lease, and the next one reads anew.
    scene.world.store.silence_renewals();
    let namespace = scene.world.namespace;
    let agent = scene.agent;
    let work = scene.ended(Target::Revision {
        namespace,
        agent,
        revision,
    });
    let work = work.await;
    assert!(matches!(
        work.state,
        State::Failed(Failure::InvalidAdmittedRevision, ..)
    ));
    assert_eq!(work.attempts, 2);
    assert!(scene.called(Call::Stop(revision)));
    scene.worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_cannot_be_read_fails_with_the_work_that_provides_it() {
    let scene = Scene::new(NullCompute::default()).await;
    scene.world.store.spoil_pass_reads(5);
    let input = CreateNamespace {
        name: "second".parse().expect("a name"),
        existing_namespace: None,
    };
    let created = scene.world.plane.create_namespace(&scene.world.admin, input).await;
    let namespace = created.expect("a new Namespace").id;
    let work = scene.ended(Target::NamespaceReady { namespace }).await;
    assert!(matches!(
        work.state,
        State::Failed(Failure::InvalidAdmittedRevision, ..)
    ));
    let status = scene.memory.data().namespaces[&namespace].row.namespace.status;
    assert_eq!(status, NamespaceStatus::Failed);
    scene.worker.shutdown().await;
}

/// A selected version is looked after as long as it is selected, also after a series of passes that could not be read.
#[tokio::test(start_paused = true)]
async fn a_version_that_could_not_be_read_for_a_while_is_looked_after_again() {
    let compute = NullCompute::default().maintained(Duration::from_mins(10));
    let scene = Scene::new(compute).await;
    let (revision, _) = scene.deploy().await;
    scene.world.store.spoil_pass_reads(5);
    let looks = || {
        let calls = scene.world.compute.calls();
        calls.iter().filter(|call| **call == Call::Activate(revision)).count()
    };
    let before = looks();
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert!(looks() > before);
    scene.worker.shutdown().await;
}

/// Neither a grant nor a denial: the policy was not asked, as far as anybody knows.
#[tokio::test(start_paused = true)]
async fn a_decision_in_another_drivers_name_is_no_denial() {
    let scene = Scene::new(NullCompute::default()).await;
    scene.world.compute.prepare.during(|_| std::future::pending());
    let revision = scene.admit().await;
    while scene.world.compute.prepare.waiting() > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    scene.world.iam.set_impostor(true);
    scene.world.store.silence_renewals();
    let (namespace, agent) = (scene.world.namespace, scene.agent);
    let work = scene.ended(Target::Revision {
        namespace,
        agent,
        revision,
    });
    let work = work.await;
    assert!(
        matches!(work.state, State::Failed(Failure::DependencyUnavailable, ..)),
        "{:?}",
        work.state
    );
    let data = scene.memory.data();
    let denials = data
        .audit
        .iter()
        .filter(|event| event.kind == AuditKind::AuthorizationDenial);
    assert_eq!(denials.count(), 0);
    scene.worker.shutdown().await;
}

//! Versions that wait for a Compute that hears of changes by itself, in virtual time (issue 4).

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use occ_core::{
    driver::{Action, AttachmentCondition, EffectError, ResourceKind, RevisionObservation},
    id::{AgentId, RevisionId},
    reason::{Failure, Pending},
    resource::ExecutionMode,
    store::{Change, Store, WorkState, Write},
    time::Clock,
    work::Policy,
    worker::Worker,
};
use occ_simulation::memory::MemoryStore;
use occ_test_support::drivers::{Call, MediatingGateway, NullCompute, PlainHarness, World};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const AGENTS: usize = 40;

struct Scene {
    memory: MemoryStore,
    world: World,
    deployed: Vec<(AgentId, RevisionId)>,
    ready: Arc<Mutex<BTreeSet<RevisionId>>>,
}

impl Scene {
    /// So many deployments that are admitted, to a Compute on which nothing is ready yet.
    async fn new(compute: NullCompute) -> Self {
        let memory = MemoryStore::default();
        let ready: Arc<Mutex<BTreeSet<RevisionId>>> = Arc::default();
        let known = Arc::clone(&ready);
        compute.prepare.every(move |target| {
            let is_ready = known.lock().expect("no panic").contains(&target.id);
            async move {
                if is_ready {
                    Ok(RevisionObservation::ready(&target))
                } else {
                    Err(EffectError::Pending(Pending::RevisionIncomplete))
                }
            }
        });
        let world = World::builder()
            .compute(compute)
            .store(Arc::new(memory.clone()))
            .build()
            .await;
        let mut deployed = Vec::new();
        for number in 0..AGENTS {
            let agent = world.deployable(&format!("agent {number}")).await.id;
            let admitted = world.plane.deploy_agent(&world.admin, world.namespace, agent).await;
            deployed.push((agent, admitted.expect("a deployable Agent").id));
        }
        Self {
            memory,
            world,
            deployed,
            ready,
        }
    }

    /// A worker that dies when its task is aborted.
    fn work(&self) -> JoinHandle<()> {
        let store = Arc::clone(&self.world.store) as Arc<dyn Store>;
        let worker = Worker::new(store, Arc::clone(&self.world.drivers), Policy::default());
        tokio::spawn(worker.run(CancellationToken::new()))
    }

    /// How often versions were looked at since the last time.
    fn looks(&self) -> usize {
        let calls = self.world.compute.take_calls();
        calls.iter().filter(|call| matches!(call, Call::Prepare(_))).count()
    }

    async fn state(&self, (agent, revision): (AgentId, RevisionId)) -> WorkState {
        let row = self.memory.deployment(self.world.namespace, agent, revision).await;
        row.expect("a read").expect("a deployment").work.expect("its work")
    }

    /// Whether each deployment still waits, and not for long if nobody holds it off any more.
    async fn assert_all_wait(&self) {
        for deployed in &self.deployed {
            let state = self.state(*deployed).await;
            let WorkState::Queued {
                available_at,
                last_attempt: Some(last),
            } = state
            else {
                panic!("{state:?}");
            };
            assert_eq!(last.code, Pending::RevisionIncomplete);
            assert!(
                available_at.since(Clock::now(&self.memory)) <= Duration::from_secs(31),
                "{available_at:?}"
            );
        }
    }
}

/// A deployment with a mediated model credential.
async fn mediated(world: &World) -> (AgentId, RevisionId) {
    let (plane, admin, namespace) = (&world.plane, &world.admin, world.namespace);
    let secret = world.secret("key", "sk-test-0123456789").await;
    let from = json!({ "kind": "secret", "namespaceId": namespace, "id": secret });
    let input = json!({ "name": "model", "type": "openai", "secrets": { "api_key": from } });
    let input = serde_json::from_value(input).expect("a source's form");
    let source = plane.register_credential_source(admin, namespace, input).await;
    let source = source.expect("a source").id;
    let input = json!({
        "name": "a",
        "configurationId": world.configuration(json!({})).await,
        "executionMode": "dedicated",
        "harnessAuth": { "method": "credential_source", "sourceId": source },
        "credentialSources": [{ "sourceId": source }],
    });
    let input = serde_json::from_value(input).expect("an Agent's form");
    let agent = plane.create_agent(admin, namespace, input).await.expect("an Agent");
    let role = world.role(&[(Action::Operate, ResourceKind::CredentialSource)]).await;
    let input = json!({ "principalId": agent.service_principal_id, "roleId": role.id });
    let input = serde_json::from_value(input).expect("a binding's form");
    let bound = plane.create_access_binding(admin, namespace, input).await;
    bound.expect("an access binding");
    let admitted = plane.deploy_agent(admin, namespace, agent.id).await;
    (agent.id, admitted.expect("a deployable Agent").id)
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_looked_at_once_while_nothing_changes() {
    let scene = Scene::new(NullCompute::default().hearing()).await;
    let worker = scene.work();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(scene.looks(), AGENTS);
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(57)).await;
        assert_eq!(scene.looks(), 0, "nothing changed");
        scene.assert_all_wait().await;
    }
    // The actor's authority is asked for again, however little happens.
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(scene.looks(), AGENTS);
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn a_compute_that_hears_nothing_is_asked_again_and_again() {
    let scene = Scene::new(NullCompute::default()).await;
    let worker = scene.work();
    tokio::time::sleep(Duration::from_mins(4)).await;
    assert!(scene.looks() > 40 * AGENTS);
    scene.assert_all_wait().await;
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn what_changes_is_looked_at_when_it_would_have_been() {
    let scene = Scene::new(NullCompute::default().hearing()).await;
    let worker = scene.work();
    tokio::time::sleep(Duration::from_mins(4)).await;
    scene.looks();
    let changed = &scene.deployed[..AGENTS / 2];
    for deployed in changed {
        scene.ready.lock().expect("no panic").insert(deployed.1);
        scene.world.compute.change(deployed.1);
    }
    // At that age the Compute is asked every five seconds; the work is held off for longer.
    tokio::time::sleep(Duration::from_secs(6)).await;
    for deployed in changed {
        let state = scene.state(*deployed).await;
        assert!(matches!(state, WorkState::Succeeded { .. }), "{state:?}");
    }
    // Once to see it ready, and once more when it is selected.
    let looks = scene.looks();
    assert!(
        (AGENTS / 2..=AGENTS).contains(&looks),
        "the others are left alone: {looks}"
    );
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_held_off_is_tried_again_and_is_looked_at_when_it_comes_due() {
    let scene = Scene::new(NullCompute::default().hearing()).await;
    let worker = scene.work();
    tokio::time::sleep(Duration::from_mins(1)).await;
    scene.looks();
    scene.world.store.fail_waits(5);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(scene.looks(), 0, "it was held for longer than the store was away");
    scene.world.store.fail_waits(usize::MAX);
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert!(scene.looks() >= AGENTS, "all of them came due");
    scene.world.store.fail_waits(0);
    tokio::time::sleep(Duration::from_secs(10)).await;
    scene.looks();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(scene.looks(), 0);
    scene.assert_all_wait().await;
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn what_a_gateway_holds_back_is_looked_at_although_the_compute_heard_nothing() {
    let memory = MemoryStore::default();
    let gateway = Arc::new(MediatingGateway::named("broker"));
    let usable: Arc<Mutex<bool>> = Arc::default();
    let known = Arc::clone(&usable);
    gateway.attachment.every(move |_| {
        let usable = *known.lock().expect("no panic");
        async move {
            Ok(if usable {
                AttachmentCondition::Ready
            } else {
                AttachmentCondition::Withheld
            })
        }
    });
    let world = World::builder()
        .compute(NullCompute::default().hearing())
        .harness(PlainHarness::named("plain", &[ExecutionMode::Dedicated]))
        .credential_gateway(Arc::clone(&gateway) as _)
        .store(Arc::new(memory.clone()))
        .build()
        .await;
    let deployed = mediated(&world).await;
    let scene = Scene {
        memory,
        world,
        deployed: vec![deployed],
        ready: Arc::default(),
    };
    let worker = scene.work();
    tokio::time::sleep(Duration::from_mins(2)).await;
    scene.assert_all_wait().await;
    *usable.lock().expect("no panic") = true;
    tokio::time::sleep(Duration::from_secs(11)).await;
    let state = scene.state(deployed).await;
    assert!(matches!(state, WorkState::Succeeded { .. }), "{state:?}");
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_of_the_agent_is_done_at_once() {
    let scene = Scene::new(NullCompute::default().hearing()).await;
    let worker = scene.work();
    tokio::time::sleep(Duration::from_mins(4)).await;
    let (stopped, replaced) = (scene.deployed[3], scene.deployed[4]);
    let World {
        plane,
        admin,
        namespace,
        ..
    } = &scene.world;
    plane
        .stop_agent(admin, *namespace, stopped.0)
        .await
        .expect("it is accepted");
    let next = plane
        .deploy_agent(admin, *namespace, replaced.0)
        .await
        .expect("it is admitted");
    scene.ready.lock().expect("no panic").insert(next.id);
    tokio::time::sleep(Duration::from_secs(6)).await;
    let state = scene.state(stopped).await;
    assert!(
        matches!(
            state,
            WorkState::Failed {
                failure: Failure::RevisionStopped,
                ..
            } | WorkState::Succeeded { .. }
        ),
        "{state:?}"
    );
    let state = scene.state((replaced.0, next.id)).await;
    assert!(matches!(state, WorkState::Succeeded { .. }), "{state:?}");
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_what_nobody_looked_at() {
    let scene = Scene::new(NullCompute::default().hearing()).await;
    let worker = scene.work();
    let nearly = Policy::default()
        .convergence_timeout
        .saturating_sub(Duration::from_secs(20));
    tokio::time::sleep(nearly).await;
    scene.assert_all_wait().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    for deployed in &scene.deployed {
        let state = scene.state(*deployed).await;
        assert!(
            matches!(
                state,
                WorkState::Failed {
                    failure: Failure::ConvergenceDeadlineExceeded,
                    ..
                }
            ),
            "{state:?}"
        );
    }
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_worker_put_off_is_looked_at_by_another() {
    let scene = Scene::new(NullCompute::default().hearing()).await;
    let first = scene.work();
    tokio::time::sleep(Duration::from_mins(4)).await;
    first.abort();
    let _ = first.await;
    scene.looks();
    let second = scene.work();
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(scene.looks(), AGENTS, "what the first one knew is gone with it");
    second.abort();
}

/// A worker that looked before the Agent changed must not make due again and again what another one holds off since.
#[tokio::test(start_paused = true)]
async fn what_another_worker_looked_at_last_is_left_to_it() {
    let scene = Scene::new(NullCompute::default().hearing()).await;
    let first = scene.work();
    tokio::time::sleep(Duration::from_mins(1)).await;
    scene.looks();
    // So long that the first worker has not room for all of them.
    scene.world.compute.prepare.every(|_| async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        Err(EffectError::Pending(Pending::RevisionIncomplete))
    });
    let second = scene.work();
    for (agent, _) in &scene.deployed {
        let changed = Change::new().write(Write::ActiveRevision(*agent, None));
        let committed = scene.memory.commit(changed).await;
        committed.expect("the row gets another version");
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(scene.looks(), AGENTS, "each is looked at once, by either worker");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(scene.looks(), 0, "nothing changed since");
    scene.assert_all_wait().await;
    first.abort();
    second.abort();
}

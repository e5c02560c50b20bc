//! The worker over the real store: deployments, stops and deletions through the control plane's own operations, with a Compute that
//! answers from scripts.
#![cfg(feature = "sqlite")]

use std::{sync::Arc, time::Duration};

use occ_core::{
    control::Answer,
    driver::{
        Action, EffectError, EffectResult, Fault, FaultKind, NamespaceState, ResourceKind, RevisionObservation, Stop,
    },
    id::{AgentId, NamespaceId, RevisionId},
    reason::{Dependency, Failure, Pending, RuntimeCode, RuntimeFailure, Token},
    resource::{DesiredRuntimeState, NamespaceStatus},
    status::{Deployment, DeploymentStatus},
    store::{CommitError, Expect, Store},
    time::Timestamp,
    work::Policy,
    worker::{Worker, WorkerHandle},
};
use occ_test_support::drivers::{Call, NullCompute, World};

fn quick() -> Policy {
    Policy {
        poll_interval: Duration::from_millis(50),
        lease: Duration::from_millis(600),
        ..Policy::default()
    }
}

fn work(world: &World) -> WorkerHandle {
    work_with(world, quick())
}

fn work_with(world: &World, policy: Policy) -> WorkerHandle {
    Worker::new(
        Arc::clone(&world.store) as Arc<dyn Store>,
        Arc::clone(&world.drivers),
        policy,
    )
    .start()
}

async fn deploy(world: &World, agent: AgentId) -> RevisionId {
    world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent)
        .await
        .expect("a deployable Agent")
        .id
}

/// Looks again until `found` has something; a minute is far more than anything here needs.
async fn until<T>(mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let look = async {
        loop {
            if let Some(value) = found().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), look)
        .await
        .expect("it happens within a minute")
}

async fn status(world: &World, agent: AgentId, revision: RevisionId) -> Answer<Deployment> {
    world
        .plane
        .deployment(&world.admin, world.namespace, agent, revision)
        .await
}

async fn over(world: &World, agent: AgentId, revision: RevisionId) -> Deployment {
    until(async || {
        status(world, agent, revision)
            .await
            .ok()
            .filter(|deployment| deployment.status.is_terminal())
    })
    .await
}

/// Waits until the deployment waits for this reason.
async fn waits(world: &World, agent: AgentId, revision: RevisionId, code: Pending) {
    until(async || {
        let progress = status(world, agent, revision).await.ok()?.progress?;
        (progress.last_attempt?.code == code).then_some(())
    })
    .await;
}

async fn active(world: &World, agent: AgentId) -> Option<RevisionId> {
    world
        .plane
        .agent(&world.admin, world.namespace, agent)
        .await
        .expect("the Agent")
        .active_revision_id
}

fn error(deployment: &Deployment) -> Option<Failure> {
    deployment.error.as_ref().map(|error| error.code)
}

fn held(code: RuntimeCode) -> EffectError {
    let failure = RuntimeFailure {
        component: Token::known("gateway"),
        check: Token::known("model-probe"),
        checked_at: Timestamp::from_millis(0),
        code,
        cause: None,
    };
    EffectError::Held(Box::new(failure), None)
}

fn fault() -> EffectError {
    Fault::new("do something", FaultKind::Unavailable).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_becomes_active_and_a_second_retires_it() {
    let world = World::new().await;
    let agent = world.deployable("a").await.id;
    let worker = work(&world);
    let first = deploy(&world, agent).await;
    assert_eq!(over(&world, agent, first).await.status, DeploymentStatus::Succeeded);
    let second = deploy(&world, agent).await;
    assert_eq!(over(&world, agent, second).await.status, DeploymentStatus::Succeeded);
    assert_eq!(active(&world, agent).await, Some(second));
    assert!(world.compute.calls().contains(&Call::Retire(first)));
    // The older deployment's result is not rewritten.
    assert_eq!(over(&world, agent, first).await.status, DeploymentStatus::Succeeded);
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unready_version_says_why_and_goes_on() {
    let world = World::new().await;
    let agent = world.deployable("a").await.id;
    world
        .compute
        .prepare
        .with(|target| Ok(RevisionObservation::pending(&target, Pending::RevisionUnschedulable)));
    world
        .compute
        .prepare
        .next(Err(EffectError::Transient(Dependency::AgentGateway)));
    let worker = work(&world);
    let revision = deploy(&world, agent).await;
    waits(&world, agent, revision, Pending::RevisionUnschedulable).await;
    waits(&world, agent, revision, Pending::AgentGatewayUnavailable).await;
    assert_eq!(over(&world, agent, revision).await.status, DeploymentStatus::Succeeded);
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_failure_ends_the_deployment_and_the_next_one_recovers() {
    let world = World::new().await;
    let agent = world.deployable("a").await.id;
    world.compute.prepare.next(Err(held(RuntimeCode::AuthenticationFailed)));
    let worker = work(&world);
    let revision = deploy(&world, agent).await;
    let failed = over(&world, agent, revision).await;
    assert_eq!(error(&failed), Some(Failure::RuntimeAuthenticationFailed));
    assert_eq!(active(&world, agent).await, None);
    assert!(
        !world.compute.calls().contains(&Call::Stop(revision)),
        "its workload is kept for its logs"
    );
    let next = deploy(&world, agent).await;
    assert_eq!(over(&world, agent, next).await.status, DeploymentStatus::Succeeded);
    assert!(
        world.compute.calls().contains(&Call::Retire(revision)),
        "and the next deployment removes it"
    );
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_spend_attempts_and_the_last_one_ends_the_deployment() {
    let world = World::new().await;
    let agent = world.deployable("a").await.id;
    let policy = Policy {
        max_attempts: 2,
        ..quick()
    };
    world.compute.prepare.times(2, &Err(fault()));
    let worker = work_with(&world, policy);
    let revision = deploy(&world, agent).await;
    assert_eq!(
        error(&over(&world, agent, revision).await),
        Some(Failure::DependencyUnavailable)
    );
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_never_gets_ready_ends_at_its_deadline() {
    let world = World::new().await;
    let agent = world.deployable("a").await.id;
    for _ in 0..100 {
        world
            .compute
            .prepare
            .with(|target| Ok(RevisionObservation::pending(&target, Pending::RevisionIncomplete)));
    }
    let policy = Policy {
        convergence_timeout: Duration::from_millis(700),
        ..quick()
    };
    let worker = work_with(&world, policy);
    let revision = deploy(&world, agent).await;
    let failed = over(&world, agent, revision).await;
    assert_eq!(error(&failed), Some(Failure::ConvergenceDeadlineExceeded));
    assert_eq!(
        failed
            .error
            .and_then(|error| error.data)
            .and_then(|data| data.timeout_ms),
        Some(700)
    );
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_drains_clears_the_pointer_and_a_deployment_resumes() {
    let world = World::new().await;
    let agent = world.deployable("a").await.id;
    let worker = work(&world);
    let first = deploy(&world, agent).await;
    over(&world, agent, first).await;
    world.compute.stop.times(2, &Ok(Stop::Draining));
    let stopped = world
        .plane
        .stop_agent(&world.admin, world.namespace, agent)
        .await
        .expect("the Agent");
    assert_eq!(stopped.desired_runtime_state, DesiredRuntimeState::Stopped);
    until(async || active(&world, agent).await.is_none().then_some(())).await;
    assert_eq!(world.compute.stop.waiting(), 0, "it was asked again while it drained");
    let second = deploy(&world, agent).await;
    assert_eq!(over(&world, agent, second).await.status, DeploymentStatus::Succeeded);
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_overlaps_a_preparation_wins() {
    let world = World::new().await;
    let agent = world.deployable("a").await.id;
    let (plane, admin, namespace) = (world.plane.clone(), world.admin.clone(), world.namespace);
    world.compute.prepare.during(move |target| async move {
        plane.stop_agent(&admin, namespace, agent).await.expect("the Agent");
        Ok(RevisionObservation::ready(&target))
    });
    let worker = work(&world);
    let revision = deploy(&world, agent).await;
    assert_eq!(
        error(&over(&world, agent, revision).await),
        Some(Failure::RevisionStopped)
    );
    assert_eq!(active(&world, agent).await, None);
    assert!(world.compute.calls().contains(&Call::Stop(revision)));
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_leaves_nothing_and_releases_the_name() {
    let world = World::new().await;
    let draft = world.deployable("a").await;
    let agent = draft.id;
    let worker = work(&world);
    let revision = deploy(&world, agent).await;
    over(&world, agent, revision).await;
    world
        .plane
        .delete_agent(&world.admin, world.namespace, agent)
        .await
        .expect("the Agent");
    until(async || {
        world
            .plane
            .agent(&world.admin, world.namespace, agent)
            .await
            .is_err()
            .then_some(())
    })
    .await;
    let calls = world.compute.calls();
    for call in [
        Call::Retire(revision),
        Call::DeleteCredentials(agent),
        Call::DeleteAgent(agent),
    ] {
        assert!(calls.contains(&call), "{call:?}");
    }
    assert!(!world.compute.has_credentials(agent));
    // Configuration and Secret survive; the name is free again.
    let (_, secret) = draft.harness_auth.and_then(|auth| auth.secret()).expect("a Secret");
    let again = world.agent("a", draft.configuration_id, secret).await;
    world.let_operate(&again.service_principal_id, secret).await;
    let revision = deploy(&world, again.id).await;
    assert_eq!(
        over(&world, again.id, revision).await.status,
        DeploymentStatus::Succeeded
    );
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_told_to_end_gives_its_attempt_back_and_another_finishes() {
    let world = World::new().await;
    let agent = world.deployable("a").await.id;
    world.compute.prepare.during(|_| std::future::pending());
    let worker = work(&world);
    let revision = deploy(&world, agent).await;
    until(async || world.compute.calls().contains(&Call::Prepare(revision)).then_some(())).await;
    worker.shutdown().await;
    assert_eq!(
        status(&world, agent, revision).await.expect("a deployment").status,
        DeploymentStatus::Queued
    );

    let policy = Policy {
        max_attempts: 1,
        ..quick()
    };
    let worker = work_with(&world, policy);
    assert_eq!(over(&world, agent, revision).await.status, DeploymentStatus::Succeeded);
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_agent_does_not_hold_up_another() {
    let world = World::new().await;
    let slow = world.deployable("slow").await.id;
    let quick_agent = world.deployable("quick").await.id;
    world.compute.prepare.during(|_| std::future::pending());
    let worker = work(&world);
    let held_up = deploy(&world, slow).await;
    until(async || world.compute.calls().contains(&Call::Prepare(held_up)).then_some(())).await;
    let revision = deploy(&world, quick_agent).await;
    assert_eq!(
        over(&world, quick_agent, revision).await.status,
        DeploymentStatus::Succeeded
    );
    assert_eq!(
        status(&world, slow, held_up).await.expect("a deployment").status,
        DeploymentStatus::Running
    );
    worker.shutdown().await;
}

/// A store that is away for a moment costs no finished effect and no attempt.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_published_once_the_store_is_back() {
    let world = World::new().await;
    let agent = world.deployable("a").await.id;
    let store = Arc::clone(&world.store);
    world.compute.activate.with(move |target| {
        store.fail(CommitError::Unavailable);
        Ok(RevisionObservation::ready(&target))
    });
    let policy = Policy {
        max_attempts: 1,
        lease: Duration::from_secs(30),
        ..quick()
    };
    let worker = work_with(&world, policy);
    let revision = deploy(&world, agent).await;
    assert_eq!(over(&world, agent, revision).await.status, DeploymentStatus::Succeeded);
    let activations = world.compute.calls();
    let activations = activations.iter().filter(|call| **call == Call::Activate(revision));
    assert_eq!(activations.count(), 1);
    worker.shutdown().await;
}

/// A Namespace that nobody has provided yet.
async fn second(world: &World) -> NamespaceId {
    let input = occ_core::control::CreateNamespace {
        name: "second".parse().expect("a name"),
        existing_namespace: None,
    };
    let created = world.plane.create_namespace(&world.admin, input).await;
    created.expect("a new Namespace").id
}

async fn fails(world: &World, namespace: NamespaceId) {
    until(async || {
        let read = world.plane.namespace(&world.admin, namespace).await.expect("a read");
        (read.status == NamespaceStatus::Failed).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_whose_creator_may_no_longer_create_it_fails() {
    let world = World::new().await;
    let namespace = second(&world).await;
    world
        .iam
        .deny(&world.admin.principal, Action::Create, ResourceKind::Namespace);
    let worker = work(&world);
    fails(&world, namespace).await;
    assert!(!world.compute.calls().contains(&Call::EnsureNamespace(namespace)));
    worker.shutdown().await;
}

fn once() -> Policy {
    Policy {
        max_attempts: 1,
        // What happens during one pass is not met by another.
        concurrency: 1,
        ..quick()
    }
}

/// What the Compute does and answers when it is asked to provide this Namespace. It provides the other one, `default`.
fn when_provided<F>(world: &World, namespace: NamespaceId, answer: F)
where
    F: Fn() -> EffectResult<()> + Clone + Send + 'static,
{
    for _ in 0..2 {
        let answer = answer.clone();
        world.compute.ensure_namespace.with(move |namespace_id| {
            if namespace_id == namespace {
                answer()?;
            }
            Ok(NamespaceState {
                namespace_id,
                done: true,
            })
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_moved_during_its_last_attempt_fails() {
    let world = World::new().await;
    let namespace = second(&world).await;
    let store = Arc::clone(&world.store);
    when_provided(&world, namespace, move || {
        store.fail(CommitError::Conflict(Expect::Namespace(namespace, 1)));
        Ok(())
    });
    let worker = work_with(&world, once());
    fails(&world, namespace).await;
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_deleted_while_its_provision_fails_is_deleted() {
    let world = World::new().await;
    let namespace = second(&world).await;
    let (store, plane, admin) = (Arc::clone(&world.store), world.plane.clone(), world.admin.clone());
    when_provided(&world, namespace, move || {
        let (plane, admin) = (plane.clone(), admin.clone());
        store.race(async move {
            plane.delete_namespace(&admin, namespace).await.expect("it is empty");
        });
        Err(EffectError::Ownership)
    });
    let worker = work_with(&world, once());
    until(async || {
        let read = world.plane.namespace(&world.admin, namespace).await;
        read.is_err().then_some(())
    })
    .await;
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_are_attached_once_before_any_effect_however_many_workers_start() {
    let world = World::new().await;
    let agent = world.deployable("a").await.id;
    world.compute.take_calls();
    let workers = [work(&world), work(&world)];
    let revision = deploy(&world, agent).await;
    over(&world, agent, revision).await;
    for worker in workers {
        worker.shutdown().await;
    }
    let calls = world.compute.calls();
    let attached: Vec<_> = (0..calls.len()).filter(|at| calls[*at] == Call::AttachHooks).collect();
    let first = calls.iter().position(|call| *call == Call::Prepare(revision));
    // What its admission asked may have come before.
    assert_eq!(attached.len(), 1, "{calls:?}");
    assert!(attached.first() < first.as_ref(), "{calls:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exclusive_compute_never_runs_two_versions() {
    let world = World::builder()
        .compute(NullCompute::default().exclusive())
        .build()
        .await;
    let agent = world.deployable("a").await.id;
    let worker = work(&world);
    let first = deploy(&world, agent).await;
    over(&world, agent, first).await;
    world.compute.take_calls();
    let second = deploy(&world, agent).await;
    over(&world, agent, second).await;
    let calls = world.compute.calls();
    let at = |call| calls.iter().position(|made| *made == call).expect("the call was made");
    assert!(at(Call::Stop(first)) < at(Call::Prepare(second)), "{calls:?}");
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_starts_looks_after_what_should_run_and_changes_no_result() {
    let world = World::new().await;
    let agent = world.deployable("a").await.id;
    let stopped = world.deployable("stopped").await.id;
    let worker = work(&world);
    let revision = deploy(&world, agent).await;
    over(&world, agent, revision).await;
    let other = deploy(&world, stopped).await;
    over(&world, stopped, other).await;
    world
        .plane
        .stop_agent(&world.admin, world.namespace, stopped)
        .await
        .expect("the Agent");
    until(async || active(&world, stopped).await.is_none().then_some(())).await;
    worker.shutdown().await;
    world.compute.take_calls();

    // The machine restarted: the first look finds a runtime that cannot start.
    world.compute.prepare.next(Err(held(RuntimeCode::Unavailable)));
    let worker = work(&world);
    until(async || world.compute.calls().contains(&Call::Prepare(revision)).then_some(())).await;
    worker.shutdown().await;
    let worker = work(&world);
    until(async || world.compute.calls().contains(&Call::Activate(revision)).then_some(())).await;
    worker.shutdown().await;
    assert!(!world.compute.calls().contains(&Call::Prepare(other)));
    assert_eq!(over(&world, agent, revision).await.status, DeploymentStatus::Succeeded);
    assert_eq!(active(&world, agent).await, Some(revision));
}

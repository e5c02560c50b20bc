//! The facts behind a deployment's status, by the database's clock (spec/engine 9).

use std::{sync::Arc, time::Duration};

use occ_core::{
    id::NamespaceId,
    reason::{Failure, Pending, Success},
    resource::AgentRevision,
    store::{DeploymentRow, WorkState, Write},
    work::{FailureData, Target, Transition, Warning},
};

use super::{
    Subject,
    world::{LONG, SHORT, World, complete, until},
};

async fn deployment(world: &World, revision: &AgentRevision) -> DeploymentRow {
    let read = world
        .store
        .deployment(world.namespace, revision.agent_id, revision.id)
        .await;
    read.expect("a read").expect("the version")
}

async fn work(world: &World, revision: &AgentRevision) -> WorkState {
    deployment(world, revision).await.work.expect("the work")
}

pub(super) async fn a_deployment_is_read_only_under_its_own_parents(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let (agent, other) = (world.agent("triage").await, world.agent("other").await);
    let revision = world.deploy(&agent).await;
    let row = deployment(&world, &revision).await;
    assert_eq!(
        (row.revision, row.agent, row.namespace),
        (revision.id, agent.id, world.namespace)
    );
    assert_eq!(
        world.store.deployment(world.namespace, other.id, revision.id).await,
        Ok(None)
    );
    assert_eq!(
        world
            .store
            .deployment(NamespaceId::random(), agent.id, revision.id)
            .await,
        Ok(None)
    );
    // A version without its work is a fault that the reader must see.
    let orphan = world.next_revision(&other, 1, world.now().await);
    world.write(super::world::written(&orphan)).await;
    assert_eq!(deployment(&world, &orphan).await.work, None);
}

pub(super) async fn a_deployment_waits_runs_and_succeeds(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let revision = world.deploy(&agent).await;
    let WorkState::Queued {
        available_at,
        last_attempt: None,
    } = work(&world, &revision).await
    else {
        panic!("it is queued, and nothing was tried")
    };
    assert!(available_at <= world.now().await);

    let claim = world.claim(LONG).await;
    assert_eq!(work(&world, &revision).await, WorkState::Running { last_attempt: None });
    let delay = Duration::from_secs(100);
    let wait = Transition::Defer {
        reason: Pending::RevisionUnschedulable,
        delay,
        refusal: None,
        failed_stops: 0,
        repeat_evidence: false,
    };
    world.settle(&claim, wait).await;
    let WorkState::Queued {
        available_at,
        last_attempt: Some(last),
    } = work(&world, &revision).await
    else {
        panic!("it waits, and says why")
    };
    assert_eq!(last.code, Pending::RevisionUnschedulable);
    assert!(last.at >= claim.claimed_at && last.at.plus(delay) == available_at);

    let second = world.agent("second").await;
    let revision = world.deploy(&second).await;
    let claim = world.claim(LONG).await;
    let warnings = vec![Warning {
        code: "PLUGIN_AUTH_REQUIRED".to_owned(),
        plugin_id: "calendar".to_owned(),
    }];
    world.select(&revision).await;
    world
        .settle(
            &claim,
            Transition::Complete {
                code: Success::RevisionActivated,
                warnings: warnings.clone(),
            },
        )
        .await;
    let WorkState::Succeeded {
        code: Success::RevisionActivated,
        warnings: kept,
        at,
    } = work(&world, &revision).await
    else {
        panic!("it succeeded")
    };
    assert_eq!(kept, warnings);
    assert!(at >= claim.claimed_at && at <= world.now().await);
}

pub(super) async fn a_lapsed_claim_reads_as_queued(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let revision = world.deploy(&agent).await;
    world.claim(SHORT).await;
    // Nobody has taken it back yet; the clock alone decides.
    until("the end of the lease", async || {
        matches!(work(&world, &revision).await, WorkState::Queued { .. }).then_some(())
    })
    .await;
    assert!(matches!(
        world.state(&world.deployment(&revision)).await,
        WorkState::Queued { .. }
    ));
}

pub(super) async fn a_failure_keeps_its_facts(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let revision = world.deploy(&agent).await;
    let claim = world.claim(LONG).await;
    let data = FailureData {
        timeout_ms: Some(900_000),
        runtime_failure: None,
        preparation: None,
    };
    let failure = Failure::ConvergenceDeadlineExceeded;
    world
        .settle(
            &claim,
            Transition::Fail {
                failure,
                data: data.clone(),
            },
        )
        .await;
    let WorkState::Failed {
        failure: kept,
        data: facts,
        actor,
        attempts,
        ..
    } = work(&world, &revision).await
    else {
        panic!("it failed")
    };
    assert_eq!((kept, facts, actor, attempts), (failure, data, world.actor.clone(), 1));
}

pub(super) async fn what_compute_still_holds_is_pending_cleanup(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let first = world.deploy(&agent).await;
    assert_eq!(deployment(&world, &first).await.left_over, None, "it is not over");
    let claim = world.claim(LONG).await;
    world.select(&first).await;
    world.settle(&claim, complete(Success::RevisionActivated)).await;
    assert_eq!(deployment(&world, &first).await.left_over, None, "it is selected");
    let second = world.deploy(&agent).await;
    world.select(&second).await;
    assert!(deployment(&world, &first).await.left_over.is_some());
    world.write(Write::RevisionRetired(first.id)).await;
    assert_eq!(deployment(&world, &first).await.left_over, None);
}

pub(super) async fn queued_work_that_cleans_up_says_when_it_is_due(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let (agent, other) = (world.agent("triage").await, world.agent("other").await);
    let first = world.deploy(&agent).await;
    let next = async || {
        let left_over = deployment(&world, &first).await.left_over;
        left_over.expect("something is left").next_attempt_at
    };
    let claim = world.claim(LONG).await;
    let failure = Failure::RuntimeStartupFailed;
    let data = FailureData::default();
    world.settle(&claim, Transition::Fail { failure, data }).await;
    assert_eq!(next().await, None, "nobody was asked to");
    world.deploy(&other).await;
    assert_eq!(next().await, None, "the work of another Agent");
    world
        .settle(&world.claim(LONG).await, complete(Success::RevisionStopped))
        .await;

    let look = |revision: &AgentRevision| Target::Maintenance {
        namespace: world.namespace,
        agent: agent.id,
        revision: revision.id,
        bucket: 1,
    };
    let later = |work, seconds| Write::EnqueueLater(work, Duration::from_secs(seconds));
    world.write(later(world.work(look(&first)), 100)).await;
    assert_eq!(next().await, None, "a version does not retire itself");
    let second = world.deploy(&agent).await;
    let WorkState::Queued { available_at, .. } = work(&world, &second).await else {
        panic!("it is queued")
    };
    assert_eq!(next().await, Some(available_at), "a newer version retires it");
    world.claim(SHORT).await;
    until("the lapse of the claim", async || next().await.map(drop)).await;
    assert_eq!(next().await, Some(available_at), "as queued as the deployment itself");
    assert!(world.recovered(LONG).await > 0);
    let claim = world.claim(LONG).await;
    assert_eq!(next().await, None, "a worker is at it");
    world.settle(&claim, complete(Success::RevisionActivated)).await;
    assert_eq!(next().await, None);

    world.write(later(world.work(look(&second)), 50)).await;
    let maintained = next().await.expect("a look at the newer version");
    world.write(later(world.work(world.withdrawal(&second)), 10)).await;
    assert_eq!(next().await, Some(maintained), "a withdrawal cleans nothing up");
    let stop = Target::AgentStopped {
        namespace: world.namespace,
        agent: agent.id,
        operation: uuid::Uuid::from_u128(7),
    };
    world.write(later(world.work(stop), 20)).await;
    let stopped = next().await.expect("the stop");
    assert!(stopped < maintained, "the earliest");
}

pub(super) async fn later_deployments_leave_a_result_as_it_was(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let first = world.deploy(&agent).await;
    let claim = world.claim(LONG).await;
    let fail = Transition::Fail {
        failure: Failure::RuntimeLoginFailed,
        data: FailureData::default(),
    };
    world.settle(&claim, fail).await;
    let ended = work(&world, &first).await;
    let second = world.deploy(&agent).await;
    let claim = world.claim(LONG).await;
    world.select(&second).await;
    world.settle(&claim, complete(Success::RevisionActivated)).await;
    let maintenance = Target::Maintenance {
        namespace: world.namespace,
        agent: agent.id,
        revision: first.id,
        bucket: 7,
    };
    world.write(Write::Enqueue(world.work(maintenance))).await;
    assert_eq!(work(&world, &first).await, ended);
}

//! Deployment (seed: Agent identity and deployment; spec/engine 3).

use std::{collections::BTreeSet, time::Duration};

use occ_core::{
    control::{Caller, Patch, UpdateAgent, UpdateConfiguration},
    driver::{Action, ResourceKind},
    id::{AgentId, RevisionId},
    reason::{ApiCode, Success},
    resource::{DesiredRuntimeState, Document, ExecutionMode},
    status::{CleanupStatus, DeploymentStatus},
    store::{CommitError, Store as _, WorkState},
    work::Target,
};
use occ_test_support::drivers::{Call, NullCompute, Optional, PlainHarness, PlainSandbox, World, document};
use serde_json::json;

use crate::{people::person, queue};

fn work(world: &World, agent: AgentId, revision: RevisionId) -> Target {
    Target::Revision {
        namespace: world.namespace,
        agent,
        revision,
    }
}

#[tokio::test]
async fn a_deployment_commits_the_version_its_work_and_its_audit_together() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    world.store.take_audit();
    let revision = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    assert_eq!((revision.revision, revision.configuration_generation), (1, 1));
    let shown = serde_json::to_value(&revision).unwrap();
    for private in ["servicePrincipalId", "sandboxDriverId", "secretDriverId", "backendRef"] {
        assert!(!shown.to_string().contains(private), "{private}");
    }
    let state = queue::state(&world, &work(&world, agent.id, revision.id)).await;
    assert!(matches!(state, Some(WorkState::Queued { .. })));
    let agent = world
        .plane
        .agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    assert_eq!(
        (agent.desired_runtime_state, agent.active_revision_id),
        (DesiredRuntimeState::Running, None)
    );
    let audit = world.store.take_audit();
    let [begun, deployed] = &*audit else {
        panic!("{audit:?}");
    };
    assert_eq!(
        (begun.resource.kind, begun.details["phase"].as_str()),
        (ResourceKind::Agent, Some("begun")),
        "the credentials are told of before they are made"
    );
    assert_eq!(
        (deployed.action.as_str(), deployed.resource.kind),
        ("openclaw.agents.deploy", ResourceKind::AgentRevision)
    );
    let asked = &deployed.authorization.as_ref().unwrap().request;
    assert_eq!(
        (asked.action, asked.resource.id.as_str()),
        (Action::Deploy, agent.id.to_string().as_str())
    );
    assert_eq!(deployed.request_id, Some(world.admin.request));
    assert!(
        world.compute.has_credentials(agent.id),
        "the first deployment makes the transport credentials"
    );
}

#[tokio::test]
async fn each_deployment_is_a_version_of_its_own_and_later_edits_change_none() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let deploy = || world.plane.deploy_agent(&world.admin, world.namespace, agent.id);
    let first = deploy().await.unwrap();
    let input = UpdateConfiguration {
        values: document(json!({ "edited": true })),
        secret_bindings: None,
    };
    world
        .plane
        .update_configuration(&world.admin, world.namespace, agent.configuration_id, input)
        .await
        .unwrap();
    let second = deploy().await.unwrap();
    assert_eq!((first.revision, second.revision), (1, 2));
    assert_eq!(
        (second.configuration_generation, &second.configuration["edited"]),
        (2, &json!(true))
    );
    assert_ne!(first.digest, second.digest);
    let clear = UpdateAgent {
        harness_auth: Patch::Clear,
        ..UpdateAgent::configuration(agent.configuration_id)
    };
    world
        .plane
        .update_agent(&world.admin, world.namespace, agent.id, clear)
        .await
        .unwrap();
    let saved = world
        .plane
        .revisions(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    assert_eq!(saved, [first.clone(), second]);
    let read = world
        .plane
        .revision(&world.admin, world.namespace, agent.id, first.id)
        .await
        .unwrap();
    assert_eq!(read, first);
    let provisions = world
        .compute
        .calls()
        .iter()
        .filter(|call| matches!(call, Call::ProvisionCredentials(_)))
        .count();
    assert_eq!(provisions, 1);
}

#[tokio::test]
async fn parallel_deployments_are_numbered_without_gaps() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let deploys = (0..5).map(|_| {
        let (plane, admin, namespace) = (world.plane.clone(), world.admin.clone(), world.namespace);
        tokio::spawn(async move { plane.deploy_agent(&admin, namespace, agent.id).await })
    });
    let mut numbers = BTreeSet::new();
    for deploy in deploys.collect::<Vec<_>>() {
        match deploy.await.unwrap() {
            Ok(revision) => assert!(numbers.insert(revision.revision)),
            // Under contention an admission may give up; nothing of it stays.
            Err(refusal) => assert_eq!(refusal.code(), ApiCode::ResourceConflict),
        }
    }
    assert_eq!(numbers, (1..=numbers.len() as u64).collect());
    let saved = world
        .plane
        .revisions(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    assert_eq!(saved.len(), numbers.len());
}

#[tokio::test]
async fn an_unknown_outcome_is_reported_and_never_repeated() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    // After the record of the credentials that are being made.
    world.store.race(async {});
    world.store.lose_answer();
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::DependencyUnavailable);
    assert!(refusal.message().contains("do not retry automatically"), "{refusal}");
    let saved = world
        .plane
        .revisions(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    assert_eq!(saved.len(), 1, "it happened, once");
}

#[tokio::test]
async fn a_failed_commit_leaves_neither_version_nor_work_nor_desired_state() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    world.store.race(async {});
    world.store.fail(CommitError::Unavailable);
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::DependencyUnavailable);
    assert!(
        world
            .plane
            .revisions(&world.admin, world.namespace, agent.id)
            .await
            .unwrap()
            .is_empty()
    );
    let agent = world
        .plane
        .agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    assert_eq!(agent.desired_runtime_state, DesiredRuntimeState::Stopped);
}

#[tokio::test]
async fn what_changes_between_looking_and_committing_is_looked_at_again() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let (plane, admin, namespace) = (world.plane.clone(), world.admin.clone(), world.namespace);
    let configuration = agent.configuration_id;
    world.store.race(async move {
        let input = UpdateConfiguration {
            values: document(json!({ "n": 2 })),
            secret_bindings: None,
        };
        plane
            .update_configuration(&admin, namespace, configuration, input)
            .await
            .unwrap();
    });
    let revision = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    assert_eq!(
        (revision.configuration_generation, &revision.configuration["n"]),
        (2, &json!(2))
    );

    let (plane, admin) = (world.plane.clone(), world.admin.clone());
    world.store.race(async move {
        plane.delete_agent(&admin, namespace, agent.id).await.unwrap();
    });
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::AgentDeleting);
    assert_eq!(
        world
            .plane
            .revisions(&world.admin, world.namespace, agent.id)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn an_admission_gives_up_on_a_resource_that_never_holds_still() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    for _ in 0..8 {
        world.store.fail(CommitError::StateConflict);
    }
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::ResourceConflict);
    assert!(refusal.message().contains("kept changing"), "{refusal}");
}

#[tokio::test]
async fn the_status_follows_the_saved_work() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let revision = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap()
        .id;
    let watcher = person(&world, &[(Action::Read, ResourceKind::AgentRevision)]).await;
    let status = |caller: Caller, agent: AgentId| {
        let (plane, namespace) = (world.plane.clone(), world.namespace);
        async move { plane.deployment(&caller, namespace, agent, revision).await }
    };
    let queued = status(watcher.clone(), agent.id).await.unwrap();
    assert_eq!(queued.status, DeploymentStatus::Queued);
    let progress = queued.progress.unwrap();
    assert_eq!(progress.last_attempt, None);
    assert!(progress.next_attempt_at.is_some());

    let target = work(&world, agent.id, revision);
    let claim = queue::claim(&world, &target).await;
    let running = status(watcher.clone(), agent.id).await.unwrap();
    assert_eq!(
        (running.status, running.progress.unwrap().next_attempt_at),
        (DeploymentStatus::Running, None)
    );
    let done = occ_core::work::Transition::Complete {
        code: Success::RevisionSuperseded,
        warnings: Vec::new(),
    };
    let change = occ_core::store::Change::new().write(occ_core::store::Write::Settle(claim.token, done));
    world.store.commit(change).await.unwrap();

    let failed = status(watcher.clone(), agent.id).await.unwrap();
    assert_eq!((failed.status, failed.progress), (DeploymentStatus::Failed, None));
    assert_eq!(failed.error.unwrap().code.code(), "REVISION_SUPERSEDED");
    assert_eq!(
        failed.cleanup.unwrap().status,
        CleanupStatus::Pending,
        "Compute may still hold something of it"
    );
    let later = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    queue::succeed(&world, &work(&world, agent.id, later.id), Success::RevisionActivated).await;
    let still = status(watcher.clone(), agent.id).await.unwrap();
    assert_eq!(
        still.status,
        DeploymentStatus::Failed,
        "a later deployment rewrites nothing"
    );
    assert_eq!(
        status(watcher, AgentId::random()).await.unwrap_err().code(),
        ApiCode::NotFound
    );
    let stranger = person(&world, &[(Action::Operate, ResourceKind::Agent)]).await;
    assert_eq!(status(stranger, agent.id).await.unwrap_err().code(), ApiCode::Forbidden);
}

#[tokio::test]
async fn a_lapsed_lease_reads_as_queued() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let revision = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap()
        .id;
    let lease = occ_core::work::Lease {
        duration: Duration::ZERO,
        max_attempts: 5,
    };
    let claims = world.store.claim(100, lease).await.unwrap();
    assert!(
        claims
            .iter()
            .any(|claim| claim.target == work(&world, agent.id, revision))
    );
    let status = world
        .plane
        .deployment(&world.admin, world.namespace, agent.id, revision)
        .await
        .unwrap();
    assert_eq!(status.status, DeploymentStatus::Queued);
}

/// As a Sandbox may do that wraps what it is given.
fn wrapped(mut document: Document) -> Document {
    let layers = document
        .get("layers")
        .and_then(serde_json::Value::as_u64)
        .unwrap_or_default();
    document.insert("layers".to_owned(), json!(layers + 1));
    document
}

#[tokio::test]
async fn a_repeated_version_saves_the_same_document_whatever_a_sandbox_makes_of_drafts() {
    let world = World::builder()
        .sandbox(PlainSandbox::with(|document| Ok(wrapped(document))))
        .harness(PlainHarness::named("plain", &[ExecutionMode::Dedicated]))
        .build()
        .await;
    let agent = world.deployable("triage").await;
    let (plane, admin, namespace) = (&world.plane, &world.admin, world.namespace);
    let dedicated = UpdateAgent {
        execution_mode: Some(ExecutionMode::Dedicated),
        ..UpdateAgent::configuration(agent.configuration_id)
    };
    plane.update_agent(admin, namespace, agent.id, dedicated).await.unwrap();
    let first = plane.deploy_agent(admin, namespace, agent.id).await.unwrap();
    assert_eq!(first.configuration["layers"], 1);
    let again = plane.redeploy(admin, namespace, agent.id, first.id).await.unwrap();
    assert_eq!(
        (&again.configuration, &again.digest),
        (&first.configuration, &first.digest)
    );

    let unconfined = world.selecting(None, NullCompute::default(), Optional::default());
    let refusal = unconfined
        .redeploy(admin, namespace, agent.id, first.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::ResourceConflict);
    assert!(refusal.message().contains("another Sandbox Driver"), "{refusal}");
}

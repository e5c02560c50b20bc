//! Stop and deletion of Agents (seed: Stop, Deletion; spec/engine 3.2).

use occ_core::{
    audit::AuditOutcome,
    control::{CreateAgent, UpdateAgent},
    driver::{Action, ResourceKind},
    reason::{ApiCode, Failure},
    resource::{Agent, AgentStatus, DesiredRuntimeState, ExecutionMode, WorkspaceFileName, WorkspaceFiles},
    store::{Store as _, WorkState},
    work::Target,
};
use occ_test_support::drivers::World;
use serde_json::json;

use crate::{people::operator, queue};

fn deletion(agent: &Agent) -> Target {
    Target::AgentDeleted {
        namespace: agent.namespace_id,
        agent: agent.id,
    }
}

#[tokio::test]
async fn each_stop_is_work_of_its_own_and_keeps_the_versions() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    world.store.take_work();
    for _ in 0..2 {
        let stopped = world
            .plane
            .stop_agent(&world.admin, world.namespace, agent.id)
            .await
            .unwrap();
        assert_eq!(stopped.desired_runtime_state, DesiredRuntimeState::Stopped);
    }
    let work = world.store.take_work();
    assert_eq!(work.len(), 2);
    assert!(
        work.iter()
            .all(|w| matches!(w.target, Target::AgentStopped { agent: id, .. } if id == agent.id))
    );
    assert_ne!(work[0].target.key(), work[1].target.key());
    let read = world.store.pass_read(&deletion(&agent)).await.unwrap();
    assert_eq!(read.live.len(), 1);
    let resumed = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    assert_eq!(resumed.revision, 2);
}

#[tokio::test]
async fn deletion_stops_the_agent_drops_its_staged_files_and_names_what_goes_with_it() {
    let world = World::new().await;
    let configuration = world.configuration(json!({})).await;
    let secret = world.secret("openai", "sk-test-0123456789").await;
    let input = CreateAgent {
        name: "triage".parse().unwrap(),
        configuration_id: configuration,
        execution_mode: ExecutionMode::Embedded,
        backend_id: None,
        harness_auth: Some(world.api_key(secret)),
        credential_sources: Vec::new(),
        plugins: std::collections::BTreeMap::default(),
        plugin_approvers: None,
        initial_workspace_files: WorkspaceFiles([(WorkspaceFileName::Soul, "kind".to_owned())].into()),
        workspace_defaults_id: None,
    };
    let agent = world
        .plane
        .create_agent(&world.admin, world.namespace, input)
        .await
        .unwrap();
    world.let_operate(&agent.service_principal_id, secret).await;
    world.store.take_audit();
    let deleting = world
        .plane
        .delete_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    assert_eq!(
        (deleting.status, deleting.desired_runtime_state),
        (AgentStatus::Deleting, DesiredRuntimeState::Stopped)
    );
    let read = world.store.pass_read(&deletion(&agent)).await.unwrap();
    assert_eq!(read.setup, None);
    assert!(matches!(
        queue::state(&world, &deletion(&agent)).await,
        Some(WorkState::Queued { .. })
    ));
    let audit = world.store.take_audit().remove(0);
    assert_eq!(audit.action, "openclaw.agents.delete");
    assert_eq!(audit.details["accessBindingIds"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_deleting_agent_can_be_read_and_nothing_else() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let revision = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap()
        .id;
    world
        .plane
        .delete_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    world.store.take_audit();
    let (plane, admin, namespace) = (&world.plane, &world.admin, world.namespace);
    assert!(plane.agent(admin, namespace, agent.id).await.is_ok());
    assert!(plane.deployment(admin, namespace, agent.id, revision).await.is_ok());
    let update = UpdateAgent::configuration(agent.configuration_id);
    for code in [
        plane
            .update_agent(admin, namespace, agent.id, update)
            .await
            .unwrap_err()
            .code(),
        plane.deploy_agent(admin, namespace, agent.id).await.unwrap_err().code(),
        plane
            .provision_runtime_credentials(admin, namespace, agent.id)
            .await
            .unwrap_err()
            .code(),
        plane
            .gateway_endpoint(admin, namespace, agent.id)
            .await
            .unwrap_err()
            .code(),
    ] {
        assert_eq!(code, ApiCode::AgentDeleting);
    }
    let stopped = plane.stop_agent(admin, namespace, agent.id).await.unwrap();
    assert_eq!(stopped.status, AgentStatus::Deleting);
    plane.delete_agent(admin, namespace, agent.id).await.unwrap();
    assert!(
        world.store.take_audit().is_empty(),
        "a repeated deletion changes nothing"
    );
}

#[tokio::test]
async fn a_failed_deletion_is_its_initiators_to_repeat_until_they_may_not() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let (first, second) = (operator(&world).await, operator(&world).await);
    world
        .plane
        .delete_agent(&first, world.namespace, agent.id)
        .await
        .unwrap();
    queue::fail(&world, &deletion(&agent), Failure::ComputeDriverMismatch).await;
    world.store.take_audit();

    let refusal = world
        .plane
        .delete_agent(&second, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::Forbidden);
    let denial = world.store.take_audit().remove(0);
    assert_eq!(
        (denial.outcome, denial.details["initiatingActorId"].as_str()),
        (AuditOutcome::Denied, Some(first.principal.as_str()))
    );

    world
        .plane
        .delete_agent(&first, world.namespace, agent.id)
        .await
        .unwrap();
    let retry = world.store.take_audit().remove(0);
    assert_eq!(retry.action, "openclaw.agents.delete.retry");
    assert_eq!(retry.details["previousReasonCode"], "COMPUTE_DRIVER_MISMATCH");
    queue::fail(&world, &deletion(&agent), Failure::DependencyUnavailable).await;

    world.iam.deny(&first.principal, Action::Delete, ResourceKind::Agent);
    world.store.take_audit();
    world
        .plane
        .delete_agent(&second, world.namespace, agent.id)
        .await
        .unwrap();
    let takeover = world.store.take_audit().remove(0);
    assert_eq!(
        (
            &takeover.details["takeover"],
            takeover.details["previousActorId"].as_str()
        ),
        (&json!(true), Some(first.principal.as_str()))
    );
    assert_eq!(queue::claim(&world, &deletion(&agent)).await.actor, second.principal);
}

#[tokio::test]
async fn two_callers_that_repeat_a_deletion_at_once_queue_it_once() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    world
        .plane
        .delete_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    queue::fail(&world, &deletion(&agent), Failure::DependencyUnavailable).await;
    let (plane, admin, namespace, id) = (world.plane.clone(), world.admin.clone(), world.namespace, agent.id);
    world.store.race(async move {
        plane.delete_agent(&admin, namespace, id).await.unwrap();
    });
    world.store.take_audit();
    world
        .plane
        .delete_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    let retries = world.store.take_audit();
    assert_eq!(
        retries
            .iter()
            .filter(|event| event.action == "openclaw.agents.delete.retry")
            .count(),
        1
    );
}

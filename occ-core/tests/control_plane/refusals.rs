//! Deployments that are refused, and what is recorded of it (seed: Agent identity and deployment; spec/engine 3).

use occ_core::{
    audit::{AuditKind, AuditOutcome},
    driver::{Action, Rejection, ResourceKind, SettingRejection},
    id::{AgentId, NamespaceId},
    reason::ApiCode,
    resource::NamespaceStatus,
    store::CommitError,
};
use occ_test_support::drivers::World;
use serde_json::json;

use crate::people::person;

#[tokio::test]
async fn the_agents_principal_needs_its_own_grant_and_the_refusal_names_what_is_missing() {
    let world = World::new().await;
    let configuration = world.configuration(json!({})).await;
    let secret = world.secret("openai", "sk-test-0123456789").await;
    let agent = world.agent("triage", configuration, secret).await;
    world.store.take_audit();
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    let spn = &agent.service_principal_id;
    let text = format!("The Agent service principal {spn} is not authorized to operate secret {secret}.");
    assert_eq!((refusal.code(), refusal.message()), (ApiCode::Forbidden, text.as_str()));

    let audit = world.store.take_audit().remove(0);
    assert_eq!(
        (audit.kind, audit.outcome),
        (AuditKind::AuthorizationDenial, AuditOutcome::Denied)
    );
    assert_eq!(audit.reason_code.as_deref(), Some("AGENT_PRINCIPAL_NOT_AUTHORIZED"));
    assert_eq!(audit.actor, world.admin.principal);
    let own = audit.authorization.unwrap();
    assert_eq!(
        (own.request.action, own.decision.allowed),
        (Action::Deploy, true),
        "the caller's own request"
    );
    assert_eq!(audit.details["servicePrincipalId"], spn.as_str());
    assert_eq!(audit.details["action"], "operate");
    assert_eq!(audit.details["resource"]["id"], secret.to_string());
    assert_eq!(audit.details["servicePrincipalEvidence"]["identityId"], spn.as_str());
    assert!(
        world
            .plane
            .revisions(&world.admin, world.namespace, agent.id)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        !world.compute.has_credentials(agent.id),
        "nothing is made for a refused deployment"
    );

    world.let_operate(spn, secret).await;
    assert!(
        world
            .plane
            .deploy_agent(&world.admin, world.namespace, agent.id)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn an_unsupported_topology_wins_over_the_agents_missing_grant() {
    let world = World::new().await;
    let configuration = world.configuration(json!({})).await;
    let secret = world.secret("openai", "sk-test-0123456789").await;
    let agent = world.agent("triage", configuration, secret).await;
    world.compute.reject_auth(Some(Rejection::Unsupported(
        "This Compute rejects authentication bindings.",
    )));
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::ResourceConflict);
    assert_eq!(refusal.message(), "This Compute rejects authentication bindings.");
}

#[tokio::test]
async fn a_refused_gateway_setting_is_named_without_its_value_before_a_version_exists() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let rejection = SettingRejection {
        setting: "gateway.bind",
        accepted: "must be omitted or loopback",
    };
    world.compute.reject_settings(Some(rejection));
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(
        (refusal.code(), refusal.message()),
        (ApiCode::ResourceConflict, "gateway.bind must be omitted or loopback.")
    );
    assert!(
        world
            .plane
            .revisions(&world.admin, world.namespace, agent.id)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_namespace_that_is_not_ready_refuses_and_the_refusal_is_recorded() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    world.set_namespace(world.namespace, NamespaceStatus::Failed).await;
    world.store.take_audit();
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::NamespaceNotReady);
    let audit = world.store.take_audit().remove(0);
    assert_eq!(
        (audit.kind, audit.outcome),
        (AuditKind::Mutation, AuditOutcome::Failure)
    );
    assert_eq!(audit.reason_code.as_deref(), Some("NAMESPACE_NOT_READY"));
    world.store.fail(CommitError::Unavailable);
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(
        refusal.code(),
        ApiCode::DependencyUnavailable,
        "a refusal that cannot be recorded is not answered"
    );
}

#[tokio::test]
async fn a_denial_is_recorded_and_does_not_tell_whether_the_agent_exists() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let reader = person(&world, &[(Action::Read, ResourceKind::Agent)]).await;
    world.store.take_audit();
    let there = world
        .plane
        .deploy_agent(&reader, world.namespace, agent.id)
        .await
        .unwrap_err();
    let nowhere = world
        .plane
        .deploy_agent(&reader, world.namespace, AgentId::random())
        .await
        .unwrap_err();
    assert_eq!((there.code(), there.message()), (ApiCode::Forbidden, nowhere.message()));
    let audit = world.store.take_audit();
    assert_eq!(audit.len(), 2);
    assert!(audit.iter().all(|event| event.kind == AuditKind::AuthorizationDenial));
    world.store.fail(CommitError::Unavailable);
    let unrecorded = world
        .plane
        .deploy_agent(&reader, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(unrecorded.code(), ApiCode::DependencyUnavailable);
    let elsewhere = world
        .plane
        .deploy_agent(&world.admin, NamespaceId::random(), agent.id)
        .await
        .unwrap_err();
    assert_eq!(elsewhere.code(), ApiCode::NotFound);
}

#[tokio::test]
async fn an_iam_driver_that_is_away_or_speaks_for_another_one_is_never_an_allow() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    world.store.take_audit();
    world.iam.set_away(true);
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::DependencyUnavailable);
    world.iam.set_away(false);
    world.iam.set_impostor(true);
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::DependencyUnavailable);
    assert!(world.store.take_audit().is_empty(), "an outage is no denial");
}

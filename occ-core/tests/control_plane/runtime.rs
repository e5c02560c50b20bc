//! The Compute's optional abilities (spec/contracts 4.5, 4.8; spec/engine 10).

use std::sync::Arc;

use occ_core::{
    driver::{Action, Check, CheckStatus, EffectError, Fault, FaultKind, LogQuery, ResourceKind},
    id::{AgentId, RevisionId},
    reason::{ApiCode, Token},
    resource::Agent,
    secret_value::SecretValue,
    store::{Change, Store as _, Write},
    time::Timestamp,
};
use occ_test_support::drivers::{NullCompute, OutsideSecrets, World};

use crate::people::person;

const QUERY: LogQuery = LogQuery {
    component: None,
    lines: 10,
};

async fn deployed(world: &World) -> (Agent, RevisionId) {
    let agent = world.deployable("triage").await;
    let revision = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap()
        .id;
    let change = Change::new().write(Write::ActiveRevision(agent.id, Some(revision)));
    world.store.commit(change).await.unwrap();
    (agent, revision)
}

fn check() -> Check {
    Check {
        component: Token::known("gateway"),
        check: Token::known("startup"),
        status: CheckStatus::Unknown,
        code: None,
        checked_at: Timestamp::from_millis(0),
    }
}

#[tokio::test]
async fn log_lines_are_bounded_and_show_no_delivered_secret() {
    let world = World::new().await;
    let (agent, revision) = deployed(&world).await;
    let password = format!("gateway password of {}", agent.id);
    world.compute.log(&[
        "dropped: beyond the wanted lines",
        "key sk-test-0123456789 used",
        &format!("login with {password}!"),
        "Authorization: Bearer abcdef",
        "ready",
    ]);
    let query = LogQuery { lines: 4, ..QUERY };
    let logs = world
        .plane
        .runtime_logs(&world.admin, world.namespace, agent.id, revision, query)
        .await
        .unwrap();
    assert_eq!(
        logs.lines,
        [
            "key [redacted] used",
            "login with [redacted]!",
            "Authorization: Bearer [redacted]",
            "ready"
        ]
    );
    for lines in [0, 1001] {
        let query = LogQuery { lines, ..QUERY };
        let refusal = world
            .plane
            .runtime_logs(&world.admin, world.namespace, agent.id, revision, query)
            .await
            .unwrap_err();
        assert_eq!(refusal.code(), ApiCode::InvalidRequest);
    }
}

#[tokio::test]
async fn logs_need_read_and_one_of_two_more_grants() {
    let world = World::new().await;
    let (agent, revision) = deployed(&world).await;
    for (permissions, allowed) in [
        (vec![(Action::Read, ResourceKind::Agent)], false),
        (vec![(Action::ReadLogs, ResourceKind::Agent)], false),
        (
            vec![
                (Action::Read, ResourceKind::Agent),
                (Action::ReadLogs, ResourceKind::Agent),
            ],
            true,
        ),
        (
            vec![
                (Action::Read, ResourceKind::Agent),
                (Action::Administer, ResourceKind::Agent),
            ],
            true,
        ),
    ] {
        let caller = person(&world, &permissions).await;
        let logs = world
            .plane
            .runtime_logs(&caller, world.namespace, agent.id, revision, QUERY)
            .await;
        assert_eq!(logs.is_ok(), allowed, "{permissions:?}");
    }
}

#[tokio::test]
async fn diagnoses_hold_at_most_32_checks_and_change_nothing() {
    let world = World::new().await;
    let (agent, revision) = deployed(&world).await;
    world.compute.find(vec![check(); 32]);
    world.store.take_audit();
    let found = world
        .plane
        .diagnose(&world.admin, world.namespace, agent.id, revision)
        .await
        .unwrap();
    assert_eq!((found.checks.len(), found.revision_id), (32, revision));
    assert!(world.store.take_audit().is_empty());
    world.compute.find(vec![check(); 33]);
    let refusal = world
        .plane
        .diagnose(&world.admin, world.namespace, agent.id, revision)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::DependencyUnavailable);
    let reader = person(
        &world,
        &[
            (Action::Read, ResourceKind::Agent),
            (Action::Read, ResourceKind::AgentRevision),
        ],
    )
    .await;
    let refusal = world
        .plane
        .diagnose(&reader, world.namespace, agent.id, revision)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::Forbidden);
}

#[tokio::test]
async fn absent_abilities_have_their_documented_answers() {
    let compute = NullCompute::default().without_logs().without_credentials();
    let world = World::builder().compute(compute).build().await;
    let (agent, revision) = deployed(&world).await;
    let (plane, admin, namespace) = (&world.plane, &world.admin, world.namespace);
    let logs = plane
        .runtime_logs(admin, namespace, agent.id, revision, QUERY)
        .await
        .unwrap_err();
    let diagnosis = plane.diagnose(admin, namespace, agent.id, revision).await.unwrap_err();
    let endpoint = plane.gateway_endpoint(admin, namespace, agent.id).await.unwrap_err();
    let credentials = plane.runtime_credentials(admin, namespace, agent.id).await.unwrap_err();
    assert_eq!(logs.code(), ApiCode::NotImplemented);
    assert_eq!(diagnosis.code(), ApiCode::DependencyUnavailable);
    assert_eq!(endpoint.code(), ApiCode::NotImplemented);
    assert_eq!(credentials.code(), ApiCode::NotImplemented);
}

#[tokio::test]
async fn a_version_of_another_compute_is_not_looked_for_here() {
    let world = World::new().await;
    let (agent, revision) = deployed(&world).await;
    let switched = world.with(None, NullCompute::named("compute-other"));
    let refusal = switched
        .runtime_logs(&world.admin, world.namespace, agent.id, revision, QUERY)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::DependencyUnavailable);
    let nowhere = world
        .plane
        .runtime_logs(&world.admin, world.namespace, AgentId::random(), revision, QUERY)
        .await;
    assert_eq!(nowhere.unwrap_err().code(), ApiCode::NotFound);
}

#[tokio::test]
async fn the_gateway_is_shown_to_administrators_of_a_running_agent() {
    let world = World::new().await;
    let agent = world.deployable("waiting").await;
    let endpoint = |id| world.plane.gateway_endpoint(&world.admin, world.namespace, id);
    assert_eq!(
        endpoint(agent.id).await.unwrap_err().code(),
        ApiCode::ResourceConflict,
        "it is stopped"
    );
    world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    assert_eq!(
        endpoint(agent.id).await.unwrap_err().code(),
        ApiCode::DependencyUnavailable,
        "nothing is selected yet"
    );
    let (agent, _) = deployed(&world).await;
    assert_eq!(endpoint(agent.id).await.unwrap().url, "http://127.0.0.1:9");
    let reader = person(
        &world,
        &[
            (Action::Read, ResourceKind::Agent),
            (Action::Operate, ResourceKind::Agent),
        ],
    )
    .await;
    let refusal = world
        .plane
        .gateway_endpoint(&reader, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::Forbidden);
}

#[tokio::test]
async fn credentials_are_made_ahead_of_the_first_version_only() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let (plane, admin, namespace) = (&world.plane, &world.admin, world.namespace);
    assert!(
        !plane
            .runtime_credentials(admin, namespace, agent.id)
            .await
            .unwrap()
            .transport_configured
    );
    world.store.take_audit();
    for _ in 0..2 {
        let made = plane
            .provision_runtime_credentials(admin, namespace, agent.id)
            .await
            .unwrap();
        assert!(made.transport_configured);
    }
    let audit = world.store.take_audit();
    let phases: Vec<_> = audit
        .iter()
        .map(|event| event.details.get("phase").and_then(|phase| phase.as_str()))
        .collect();
    assert_eq!(phases, [Some("begun"), None], "the second time there is nothing to do");
    plane.deploy_agent(admin, namespace, agent.id).await.unwrap();
    world.compute.lose_credentials(agent.id);
    let refusal = plane
        .provision_runtime_credentials(admin, namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::ResourceConflict);
}

#[tokio::test]
async fn a_cluster_that_denies_the_control_plane_has_a_code_of_its_own() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let denied: EffectError = Fault::new("read the credentials", FaultKind::Denied).into();
    world.compute.credentials_exist.next(Err(denied.clone()));
    let refusal = world
        .plane
        .runtime_credentials(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::RuntimeCredentialsClusterRbac);
    world.compute.credentials_exist.next(Err(denied));
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::RuntimeCredentialsClusterRbac);
}

#[tokio::test]
async fn lines_are_not_shown_while_what_they_may_hold_cannot_be_had() {
    let vault = Arc::new(OutsideSecrets::named("vault"));
    let world = World::builder().secret(Arc::clone(&vault) as _).build().await;
    let (agent, revision) = deployed(&world).await;
    world.compute.log(&["key sk-test-0123456789 used"]);
    let read = || {
        world
            .plane
            .runtime_logs(&world.admin, world.namespace, agent.id, revision, QUERY)
    };
    assert_eq!(read().await.unwrap().lines, ["key [redacted] used"]);
    vault.set_away(true);
    assert_eq!(read().await.unwrap_err().code(), ApiCode::RuntimeLogsUnavailable);
    vault.set_away(false);
    assert!(read().await.is_ok());
}

/// Moments are told apart by the millisecond.
async fn later(world: &World) {
    let before = world.store.now().await.unwrap();
    while world.store.now().await.unwrap() <= before {}
}

#[tokio::test]
async fn a_value_that_was_replaced_while_a_version_runs_is_not_shown_in_its_lines() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let (_, secret) = agent.harness_auth.unwrap().secret().unwrap();
    // Something that no pattern knows.
    let say = |text: &str| SecretValue::from_caller(text.as_bytes().to_vec()).unwrap();
    let (plane, admin, namespace) = (&world.plane, &world.admin, world.namespace);
    plane
        .update_secret(admin, namespace, secret, say("battery staple"))
        .await
        .unwrap();
    later(&world).await;
    let first = plane.deploy_agent(admin, namespace, agent.id).await.unwrap().id;
    let select = Change::new().write(Write::ActiveRevision(agent.id, Some(first)));
    world.store.commit(select).await.unwrap();
    world.compute.log(&["using battery staple"]);
    let before = plane
        .runtime_logs(admin, namespace, agent.id, first, QUERY)
        .await
        .unwrap();
    assert_eq!(before.lines, ["using [redacted]"]);

    plane
        .update_secret(admin, namespace, secret, say("correct horse"))
        .await
        .unwrap();
    let refusal = plane
        .runtime_logs(admin, namespace, agent.id, first, QUERY)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::RuntimeLogsUnavailable);
    assert!(refusal.message().contains("Deploy again"), "{refusal}");

    later(&world).await;
    let second = plane.deploy_agent(admin, namespace, agent.id).await.unwrap().id;
    world.compute.log(&["using correct horse"]);
    let after = plane
        .runtime_logs(admin, namespace, agent.id, second, QUERY)
        .await
        .unwrap();
    assert_eq!(after.lines, ["using [redacted]"]);
}

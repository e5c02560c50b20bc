//! What a version is given of its sources.

use std::sync::Arc;

use occ_core::{
    control::UpdateAgent,
    driver::{Action, AttachmentCondition, ResourceKind},
    id::CredentialSourceId,
    plan::{EnvValue, Text},
    reason::{ApiCode, Failure},
    resource::{CredentialSource, SourceState, Withdrawal, WithdrawalState},
    store::{Change, Store as _, Write},
    work::Policy,
    worker::Worker,
};
use occ_test_support::drivers::{MediatingGateway, NullCompute, Optional};
use serde_json::{Value, json};

use super::{by, is, scene};

#[tokio::test]
async fn a_version_is_given_placeholders_and_nothing_else() {
    let scene = scene().await;
    let (model, web) = (scene.model().await, scene.bearer("web", "WEB_TOKEN").await);
    let agent = scene.agent(by(model), &[model, web]).await;
    let revision = scene.deploy(agent).await.unwrap();
    let judged = scene.world.compute.judged_source();
    assert_eq!(judged.as_ref().map(ToString::to_string).as_deref(), Some("openai"));
    assert_eq!(
        json!(revision.credential_sources),
        json!([{ "sourceId": model }, { "sourceId": web }])
    );
    let shown = serde_json::to_string(&revision).unwrap();
    assert!(!shown.contains("broker") && !shown.contains("canary"), "{shown}");
    let world = &scene.world;
    let saved = world
        .store
        .revision(world.namespace, agent, revision.id)
        .await
        .unwrap()
        .unwrap();
    let frozen =
        json!({ "sourceId": model, "credentialGatewayId": "broker", "sourceType": "openai", "loginMode": "api_key" });
    assert_eq!(json!(saved.revision.snapshot.harness_auth.source), frozen);
    let worker = scene.work();
    assert_eq!(scene.ends(agent, revision.id).await, None);
    worker.shutdown().await;
    let plan = world.compute.planned(revision.id).unwrap();
    let environment = &plan.components[0].environment;
    for (name, source) in [("MEDIATED_KEY", model), ("WEB_TOKEN", web)] {
        let placeholder = EnvValue::Text(Text::literal(format!("placeholder-{source}")));
        assert_eq!(environment[name], placeholder);
    }
    assert!(!serde_json::to_string(&plan).unwrap().contains("canary"));
    // It is in use: by the draft, and then by the version that runs.
    is(
        &scene.delete(web).await.unwrap_err(),
        ApiCode::ResourceConflict,
        "The credential source is still",
    );
}

#[tokio::test]
async fn what_admission_wants_of_a_mediated_credential() {
    let scene = scene().await;
    let (model, web) = (scene.model().await, scene.bearer("web", "WEB_TOKEN").await);
    let world = &scene.world;
    let unlisted = scene.agent(by(model), &[web]).await;
    let refused = scene.deploy(unlisted).await.unwrap_err();
    is(
        &refused,
        ApiCode::InvalidRequest,
        "The credential source of harnessAuth must also be listed",
    );
    let change = |auth: Value, listed: &[CredentialSourceId]| {
        let listed: Vec<_> = listed.iter().map(|id| json!({ "sourceId": id })).collect();
        let body = json!({ "harnessAuth": auth, "credentialSources": listed });
        async move {
            let row = world.store.agent(world.namespace, unlisted).await.unwrap().unwrap();
            let mut body = body;
            body["configurationId"] = json!(row.agent.configuration_id);
            let input: UpdateAgent = serde_json::from_value(body).unwrap();
            world
                .plane
                .update_agent(&world.admin, world.namespace, unlisted, input)
                .await
        }
    };
    change(by(web), &[web]).await.unwrap();
    let refused = scene.deploy(unlisted).await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "A credential source of this type is no model credential.",
    );
    let secret = json!({ "kind": "secret", "namespaceId": world.namespace, "id": scene.secret });
    change(json!({ "method": "api_key", "source": secret }), &[])
        .await
        .unwrap();
    let refused = scene.deploy(unlisted).await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "The selected Credential Gateway mediates model credentials",
    );
    let nowhere = change(by(CredentialSourceId::random()), &[]).await.unwrap_err();
    assert_eq!(nowhere.code(), ApiCode::NotFound);

    change(by(model), &[model]).await.unwrap();
    let row = world.store.agent(world.namespace, unlisted).await.unwrap().unwrap();
    let principal = &row.agent.service_principal_id;
    world
        .iam
        .deny(principal, Action::Operate, ResourceKind::CredentialSource);
    let refused = scene.deploy(unlisted).await.unwrap_err();
    let text =
        format!("The Agent service principal {principal} is not authorized to operate credential_source {model}.");
    is(&refused, ApiCode::Forbidden, &text);
    world
        .iam
        .deny(&world.admin.principal, Action::Operate, ResourceKind::CredentialSource);
    let refused = scene.deploy(unlisted).await.unwrap_err();
    is(&refused, ApiCode::Forbidden, "You are not authorized to do this.");
}

#[tokio::test]
async fn two_placeholders_in_one_variable_end_the_deployment() {
    let scene = scene().await;
    let (one, two) = (scene.bearer("one", "SAME").await, scene.bearer("two", "SAME").await);
    let model = scene.model().await;
    let agent = scene.agent(by(model), &[model, one, two]).await;
    let revision = scene.deploy(agent).await.unwrap().id;
    let worker = scene.work();
    let conflict = Failure::CredentialSourceEnvironmentConflict;
    assert_eq!(scene.ends(agent, revision).await, Some(conflict));
    worker.shutdown().await;
}

#[tokio::test]
async fn a_version_waits_for_its_attachments_and_fails_with_them() {
    for (condition, failure) in [
        (AttachmentCondition::Failed, Failure::CredentialSourceUnavailable),
        (AttachmentCondition::Absent, Failure::CredentialSourceUnavailable),
        (AttachmentCondition::Revoked, Failure::CredentialWithdrawn),
    ] {
        let scene = scene().await;
        let model = scene.model().await;
        let agent = scene.agent(by(model), &[model]).await;
        scene.gateway.attachment.next(Ok(AttachmentCondition::Pending));
        scene.gateway.attachment.next(Ok(AttachmentCondition::Withheld));
        scene.gateway.attachment.times(9, &Ok(condition));
        let revision = scene.deploy(agent).await.unwrap().id;
        let worker = scene.work();
        assert_eq!(scene.ends(agent, revision).await, Some(failure), "{condition:?}");
        worker.shutdown().await;
    }
}

#[tokio::test]
async fn another_gateway_never_touches_what_one_has() {
    let scene = scene().await;
    let world = &scene.world;
    let model = scene.model().await;
    let agent = scene.agent(by(model), &[model]).await;
    let revision = scene.deploy(agent).await.unwrap().id;
    let other = Arc::new(MediatingGateway::named("other"));
    let plane = world.selecting(
        None,
        NullCompute::default(),
        Optional {
            credential_gateway: Some(other),
            ..Optional::default()
        },
    );
    let text = "The credential source is another Credential Gateway's";
    let (admin, namespace) = (&world.admin, world.namespace);
    let refused = plane.deploy_agent(admin, namespace, agent).await.unwrap_err();
    is(&refused, ApiCode::DependencyUnavailable, text);
    let refused = plane
        .delete_credential_source(admin, namespace, model)
        .await
        .unwrap_err();
    is(&refused, ApiCode::DependencyUnavailable, text);
    // A draft can still be cleared.
    let row = world.store.agent(namespace, agent).await.unwrap().unwrap();
    let body = json!({ "configurationId": row.agent.configuration_id, "harnessAuth": null, "credentialSources": [] });
    let cleared = plane
        .update_agent(admin, namespace, agent, serde_json::from_value(body).unwrap())
        .await
        .unwrap();
    assert!(cleared.credential_sources.is_empty() && cleared.harness_auth.is_none());
    // What was admitted before ends.
    let store = Arc::clone(&world.store) as _;
    let worker = Worker::new(store, Arc::clone(plane.drivers()), Policy::default()).start();
    assert_eq!(
        scene.ends(agent, revision).await,
        Some(Failure::CredentialGatewayMismatch)
    );
    worker.shutdown().await;
}

#[tokio::test]
async fn a_version_whose_model_credential_was_withdrawn_before_it_ran_never_runs() {
    let scene = scene().await;
    let world = &scene.world;
    let model = scene.model().await;
    let agent = scene.agent(by(model), &[model]).await;
    let revision = scene.deploy(agent).await.unwrap().id;
    let mut row = scene.row(model).await.unwrap();
    row.version += 1;
    row.withdrawals.push(Withdrawal {
        revision_id: revision,
        agent_id: agent,
        state: WithdrawalState::Pending,
        requested_by: world.admin.principal.clone(),
        requested_at: row.created_at,
        operation: uuid::Uuid::new_v4(),
        completed_at: None,
    });
    let change = Change::new().write(Write::UpdateOwned((&row).into()));
    world.store.commit(change).await.unwrap();
    let worker = scene.work();
    assert_eq!(scene.ends(agent, revision).await, Some(Failure::CredentialWithdrawn));
    worker.shutdown().await;
}

#[tokio::test]
async fn a_pending_attachment_is_waited_for() {
    let scene = scene().await;
    let model = scene.model().await;
    let agent = scene.agent(by(model), &[model]).await;
    scene.gateway.attachment.next(Ok(AttachmentCondition::Pending));
    let revision = scene.deploy(agent).await.unwrap().id;
    let worker = scene.work();
    assert_eq!(scene.ends(agent, revision).await, None);
    worker.shutdown().await;
}

/// What the record of a source is like when a version of it is to run.
#[tokio::test]
async fn a_version_runs_only_with_the_sources_that_it_froze() {
    type Spoilt = fn(&mut CredentialSource);
    let changes: [(Spoilt, Option<Failure>); 3] = [
        (|_| {}, None),
        (
            |source| source.state = SourceState::Deleting,
            Some(Failure::CredentialSourceUnavailable),
        ),
        (
            |source| "other".clone_into(&mut source.gateway_id),
            Some(Failure::CredentialSourceUnavailable),
        ),
    ];
    for (change, failure) in changes {
        let scene = scene().await;
        let model = scene.model().await;
        let agent = scene.agent(by(model), &[model]).await;
        is(
            &scene.delete(model).await.unwrap_err(),
            ApiCode::ResourceConflict,
            "The credential source is still referenced by",
        );
        let revision = scene.deploy(agent).await.unwrap().id;
        let mut row = scene.row(model).await.unwrap();
        change(&mut row);
        row.version += 1;
        let change = Change::new().write(Write::UpdateOwned((&row).into()));
        scene.world.store.commit(change).await.unwrap();
        let worker = scene.work();
        assert_eq!(scene.ends(agent, revision).await, failure);
        worker.shutdown().await;
    }
}

#[tokio::test]
async fn what_was_withdrawn_from_a_version_is_not_attached_to_it_again() {
    let scene = scene().await;
    let world = &scene.world;
    let (model, web) = (scene.model().await, scene.bearer("web", "WEB_TOKEN").await);
    let agent = scene.agent(by(model), &[model, web]).await;
    let revision = scene.deploy(agent).await.unwrap().id;
    let row = scene.row(web).await.unwrap();
    let row = row.withdrawn(Withdrawal {
        revision_id: revision,
        agent_id: agent,
        state: WithdrawalState::Revoked,
        requested_by: world.admin.principal.clone(),
        requested_at: row.created_at,
        operation: uuid::Uuid::new_v4(),
        completed_at: None,
    });
    let change = Change::new().write(Write::UpdateOwned((&row).into()));
    world.store.commit(change).await.unwrap();
    let worker = scene.work();
    assert_eq!(scene.ends(agent, revision).await, None);
    worker.shutdown().await;
    let plan = world.compute.planned(revision).unwrap();
    let environment = &plan.components[0].environment;
    assert!(environment.contains_key("MEDIATED_KEY") && !environment.contains_key("WEB_TOKEN"));
}

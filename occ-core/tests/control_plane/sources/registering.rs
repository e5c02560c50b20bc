//! Registration of sources, and their deletion.

use occ_core::{
    control::{UpdateAgent, UpdateCredentialSource},
    driver::{Action, EffectError, ResourceKind, SourceCondition},
    id::{NamespaceId, SecretId},
    reason::ApiCode,
    resource::{CredentialSource, NamespaceStatus, OwnedKind, SourceState},
    secret_value::SecretValue,
    store::{Change, CommitError, Slice, Store as _, Write},
};
use serde_json::json;

use super::{UNDER_WAY, VALUE, away, by, is, scene};

#[tokio::test]
async fn a_source_is_registered_once_and_only_the_gateway_keeps_its_credentials() {
    let scene = scene().await;
    let world = &scene.world;
    world.store.take_audit();
    let made = scene
        .register(scene.body("web", "bearer-token", "token", &json!({ "host": "WEB_TOKEN" })))
        .await
        .unwrap();
    assert_eq!(made.state, SourceState::Ready);
    assert_eq!(scene.gateway.kept(made.id).unwrap(), [VALUE]);
    let read = world
        .plane
        .credential_source(&world.admin, world.namespace, made.id)
        .await
        .unwrap();
    assert_eq!(json!(read.status), json!({ "state": "ready" }));
    let row = occ_core::store::OwnedRow::from(&scene.row(made.id).await.unwrap());
    let audit = serde_json::to_string(&world.store.take_audit()).unwrap();
    assert!(audit.contains("openclaw.credential_sources.create"));
    for text in [format!("{row:?}"), audit, serde_json::to_string(&read).unwrap()] {
        assert!(!text.contains("canary"), "{text}");
    }
    let taken = scene.register(scene.body("web", "openai", "api_key", &json!({}))).await;
    is(&taken.unwrap_err(), ApiCode::ResourceConflict, "The name is taken");

    // Its credentials are read anew when that is asked for.
    let value = SecretValue::from("sk-canary-9876543210".to_owned());
    world
        .plane
        .update_secret(&world.admin, world.namespace, scene.secret, value)
        .await
        .unwrap();
    assert_eq!(scene.gateway.kept(made.id).unwrap(), [VALUE]);
    let again = UpdateCredentialSource::default();
    let updated = world
        .plane
        .update_credential_source(&world.admin, world.namespace, made.id, again)
        .await;
    updated.unwrap();
    assert_eq!(scene.gateway.kept(made.id).unwrap(), ["sk-canary-9876543210"]);
    // The Secret that it was read from says so, and stays while it is named.
    let shown = world.plane.secret(&world.admin, world.namespace, scene.secret).await;
    let consumers = shown.unwrap().consumers.unwrap();
    assert_eq!((consumers.credential_sources, consumers.unreadable), (vec![made.id], 0));
    let kept = world
        .plane
        .delete_secret(&world.admin, world.namespace, scene.secret)
        .await;
    is(
        &kept.unwrap_err(),
        ApiCode::ResourceConflict,
        "The Secret is still referenced by",
    );
}

#[tokio::test]
async fn a_source_has_exactly_the_fields_of_its_type() {
    let scene = scene().await;
    let cases = [
        (scene.body("a", "unknown", "token", &json!({})), "/type"),
        (scene.body("a", "openai", "token", &json!({})), "/secrets/token"),
        (json!({ "name": "a", "type": "openai" }), "/secrets/api_key"),
        (
            scene.body("a", "openai", "api_key", &json!({ "host": "h" })),
            "/config/host",
        ),
        (scene.body("a", "bearer-token", "token", &json!({})), "/config/host"),
        (
            scene.body("a", "bearer-token", "token", &json!({ "host": "" })),
            "/config/host",
        ),
        (
            scene.body("a", "bearer-token", "token", &json!({ "host": "a b" })),
            "/config/host",
        ),
    ];
    for (body, at) in cases {
        let refused = scene.register(body.clone()).await.unwrap_err();
        assert_eq!(refused.code(), ApiCode::InvalidRequest, "{body}");
        assert_eq!(refused.details()[0].path, at, "{body}");
    }
    assert_eq!(scene.rows().await, 0, "nothing is left of what was refused");
}

#[tokio::test]
async fn a_registration_that_fails_leaves_nothing_and_one_that_is_unknown_is_deleted_later() {
    let scene = scene().await;
    let body = || scene.body("model", "openai", "api_key", &json!({}));
    scene.gateway.register.next(Err(away()));
    let refused = scene.register(body()).await.unwrap_err();
    is(
        &refused,
        ApiCode::DependencyUnavailable,
        "The Credential Gateway is unavailable.",
    );
    scene.gateway.register.next(Ok(SourceCondition::Failed));
    let refused = scene.register(body()).await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "The Credential Gateway did not accept",
    );
    assert_eq!(scene.rows().await, 0);

    scene.gateway.register.next(Err(EffectError::UnknownOutcome));
    let unknown = scene.register(body()).await.unwrap_err();
    assert!(unknown.message().contains("do not retry automatically"), "{unknown}");
    let world = &scene.world;
    let rows = world
        .store
        .all_owned(world.namespace, OwnedKind::CredentialSource, &Slice::ALL)
        .await
        .unwrap();
    let left: CredentialSource = rows[0].clone().try_into().unwrap();
    assert_eq!((left.state, left.registered), (SourceState::Deleting, false));
    // It may still arrive at the gateway.
    let early = scene.delete(left.id).await.unwrap_err();
    is(&early, ApiCode::DependencyUnavailable, UNDER_WAY);
    assert!(scene.row(left.id).await.is_some());
}

#[tokio::test]
async fn a_deletion_that_was_cut_off_is_finished_by_a_repetition() {
    let scene = scene().await;
    let id = scene.model().await;
    scene.gateway.remove.next(Err(away()));
    let cut = scene.delete(id).await.unwrap_err();
    assert_eq!(cut.code(), ApiCode::DependencyUnavailable);
    assert_eq!(scene.row(id).await.unwrap().state, SourceState::Deleting);
    scene.world.store.fail(CommitError::Unavailable);
    scene.delete(id).await.unwrap_err();
    assert_eq!(scene.gateway.kept(id), None);
    scene.delete(id).await.unwrap();
    assert_eq!(scene.row(id).await, None);
}

#[tokio::test]
async fn what_a_registration_needs_is_looked_at_before_anything_is_recorded() {
    let scene = scene().await;
    let world = &scene.world;
    let body = || scene.body("model", "openai", "api_key", &json!({}));
    let mut elsewhere = body();
    elsewhere["secrets"]["api_key"]["namespaceId"] = json!(NamespaceId::random());
    let refused = scene.register(elsewhere).await.unwrap_err();
    is(&refused, ApiCode::InvalidRequest, "The Secret must belong to");
    let mut nowhere = body();
    nowhere["secrets"]["api_key"]["id"] = json!(SecretId::random());
    assert_eq!(scene.register(nowhere).await.unwrap_err().code(), ApiCode::NotFound);
    world
        .iam
        .deny(&world.admin.principal, Action::Operate, ResourceKind::Secret);
    let refused = scene.register(body()).await.unwrap_err();
    is(&refused, ApiCode::Forbidden, "You are not authorized to do this.");
    world.iam.relent();
    let mut secret = world
        .store
        .secret(world.namespace, scene.secret)
        .await
        .unwrap()
        .unwrap();
    let own = secret.driver_id.clone();
    for driver in ["secret-of-yesterday", &own] {
        driver.clone_into(&mut secret.driver_id);
        secret.version += 1;
        let change = Change::new().write(Write::UpdateSecret(secret.clone()));
        world.store.commit(change).await.unwrap();
        if driver != own {
            let refused = scene.register(body()).await.unwrap_err();
            is(
                &refused,
                ApiCode::DependencyUnavailable,
                "The Secret is stored through another Secret Driver.",
            );
        }
    }
    world.set_namespace(world.namespace, NamespaceStatus::Failed).await;
    let refused = scene.register(body()).await.unwrap_err();
    is(&refused, ApiCode::ResourceConflict, "The Namespace failed");
    assert_eq!((scene.rows().await, scene.gateway.sources()), (0, 0));
}

#[tokio::test]
async fn what_a_gateway_did_not_accept_is_removed_from_it_or_remembered() {
    let scene = scene().await;
    let body = || scene.body("model", "openai", "api_key", &json!({}));
    // It kept a copy all the same.
    scene.gateway.register.next(Ok(SourceCondition::Failed));
    scene.register(body()).await.unwrap_err();
    assert_eq!((scene.rows().await, scene.gateway.sources()), (0, 0));
    scene.gateway.register.next(Ok(SourceCondition::Failed));
    scene.gateway.remove.next(Err(away()));
    let refused = scene.register(body()).await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "The Credential Gateway did not accept",
    );
    assert_eq!((scene.rows().await, scene.gateway.sources()), (1, 1));
    let world = &scene.world;
    let rows = world
        .store
        .all_owned(world.namespace, OwnedKind::CredentialSource, &Slice::ALL);
    let left: CredentialSource = rows.await.unwrap().remove(0).try_into().unwrap();
    assert_eq!(left.state, SourceState::Deleting);
}

#[tokio::test]
async fn a_secret_that_changes_while_it_is_read_is_read_again() {
    let scene = scene().await;
    let change = |value: &'static str| {
        let (plane, admin) = (scene.world.plane.clone(), scene.world.admin.clone());
        let (namespace, secret) = (scene.world.namespace, scene.secret);
        async move {
            let value = SecretValue::from(value.to_owned());
            plane.update_secret(&admin, namespace, secret, value).await.unwrap();
        }
    };
    // Before the first commit, and before the one that follows when the gateway has it.
    scene.world.store.race(change("sk-canary-1111111111"));
    let id = scene.model().await;
    assert_eq!(scene.gateway.kept(id).unwrap(), ["sk-canary-1111111111"]);
    scene.world.store.race(async {});
    scene.world.store.race(change("sk-canary-2222222222"));
    scene.refresh(id).await.unwrap();
    assert_eq!(scene.gateway.kept(id).unwrap(), ["sk-canary-2222222222"]);
}

#[tokio::test]
async fn a_deletion_takes_its_mark_back_when_a_deployment_came_first() {
    let scene = scene().await;
    let (model, web) = (scene.model().await, scene.bearer("web", "WEB_TOKEN").await);
    let agent = scene.agent(by(model), &[model]).await;
    let (plane, admin, namespace) = (
        scene.world.plane.clone(),
        scene.world.admin.clone(),
        scene.world.namespace,
    );
    let draft = plane.agent(&admin, namespace, agent).await.unwrap();
    // Named, deployed and forgotten between the look and the mark.
    scene.world.store.race(async move {
        for listed in [vec![model, web], vec![model]] {
            let named = listed.len() > 1;
            let listed: Vec<_> = listed.iter().map(|id| json!({ "sourceId": id })).collect();
            let body = json!({ "configurationId": draft.configuration_id, "credentialSources": listed });
            let input: UpdateAgent = serde_json::from_value(body).unwrap();
            plane.update_agent(&admin, namespace, agent, input).await.unwrap();
            if named {
                plane.deploy_agent(&admin, namespace, agent).await.unwrap();
            }
        }
    });
    let refused = scene.delete(web).await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "The credential source is still referenced by",
    );
    assert_eq!(scene.row(web).await.unwrap().state, SourceState::Ready);
    assert!(scene.gateway.kept(web).is_some());
}

#[tokio::test]
async fn a_deletion_takes_the_grants_of_exactly_the_source_with_it() {
    let scene = scene().await;
    let (id, world) = (scene.model().await, &scene.world);
    let (admin, namespace) = (&world.admin, world.namespace);
    let role = world.role(&[(Action::Operate, ResourceKind::CredentialSource)]).await;
    let exact = json!({ "kind": "credential_source", "id": id });
    let binding = json!({ "principalId": admin.principal, "roleId": role.id, "resource": exact });
    let input = serde_json::from_value(binding).unwrap();
    let bound = world
        .plane
        .create_access_binding(admin, namespace, input)
        .await
        .unwrap();
    let bindings = async || {
        let all = world.plane.access_bindings(admin, namespace).await.unwrap();
        all.iter().any(|one| one.id == bound.id)
    };
    assert!(bindings().await);
    world
        .iam
        .deny(&admin.principal, Action::Delete, ResourceKind::CredentialSource);
    assert_eq!(scene.delete(id).await.unwrap_err().code(), ApiCode::Forbidden);
    world.iam.relent();
    scene.delete(id).await.unwrap();
    assert!(!bindings().await);
}

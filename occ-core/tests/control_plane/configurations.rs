//! Configurations (spec/engine 1.5).

use std::collections::BTreeMap;

use occ_core::{
    control::{Caller, ControlPlane, CreateConfiguration, UpdateConfiguration},
    driver::{Action, ResourceKind},
    id::{ConfigurationId, NamespaceId, SecretId},
    reason::ApiCode,
    resource::{
        ConfigurationKind, EnvName, NamespaceStatus, SecretBinding, SecretBindings, SecretDelivery, SecretSource,
        SecretSourceKind,
    },
    store::CommitError,
};
use occ_test_support::drivers::{World, document};
use serde_json::{Value, json};

use crate::people::person;

fn input(values: Value, secret_bindings: SecretBindings) -> CreateConfiguration {
    CreateConfiguration {
        kind: ConfigurationKind::Agent,
        values: document(values),
        secret_bindings,
    }
}

pub fn binding(namespace_id: NamespaceId, id: SecretId) -> SecretBindings {
    let name = EnvName::try_from("SLACK_BOT_TOKEN".to_owned()).unwrap();
    let source = SecretSource {
        kind: SecretSourceKind::Secret,
        namespace_id,
        id,
    };
    [(
        name,
        SecretBinding {
            source,
            delivery: SecretDelivery::Env,
        },
    )]
    .into()
}

fn values(values: Value) -> UpdateConfiguration {
    UpdateConfiguration {
        values: document(values),
        secret_bindings: None,
    }
}

#[tokio::test]
async fn a_configuration_is_read_as_it_was_written() {
    let world = World::new().await;
    let values = json!({ "agents": { "list": [1, 2.5, null, "é\u{1f600}"] }, "": {} });
    let id = world.configuration(values.clone()).await;
    let configuration = world
        .plane
        .configuration(&world.admin, world.namespace, id)
        .await
        .unwrap();
    assert_eq!(configuration.generation, 1);
    assert_eq!(Value::Object(configuration.values), values);
    let listed = world.plane.configurations(&world.admin, world.namespace).await.unwrap();
    assert_eq!(listed.iter().map(|c| c.id).collect::<Vec<_>>(), [id]);
    let other = world
        .plane
        .configuration(&world.admin, NamespaceId::random(), id)
        .await
        .unwrap_err();
    assert_eq!(other.code(), ApiCode::NotFound);
}

#[tokio::test]
async fn each_update_is_one_generation_and_keeps_bindings_that_it_does_not_name() {
    let world = World::new().await;
    let secret = world.secret("slack", "xoxb-0123456789").await;
    let create = input(json!({ "n": 1 }), binding(world.namespace, secret));
    let id = world
        .plane
        .create_configuration(&world.admin, world.namespace, create)
        .await
        .unwrap()
        .id;
    let update = |input| {
        world
            .plane
            .update_configuration(&world.admin, world.namespace, id, input)
    };
    let second = update(values(json!({ "n": 2 }))).await.unwrap();
    assert_eq!((second.generation, second.secret_bindings.len()), (2, 1));
    let cleared = UpdateConfiguration {
        values: document(json!({})),
        secret_bindings: Some(BTreeMap::new()),
    };
    let third = update(cleared).await.unwrap();
    assert_eq!((third.generation, third.secret_bindings.len()), (3, 0));
    assert_eq!(
        world
            .plane
            .configuration(&world.admin, world.namespace, id)
            .await
            .unwrap(),
        third
    );
}

#[tokio::test]
async fn a_literal_credential_is_refused_with_its_place_and_nothing_is_saved() {
    let world = World::new().await;
    let create = input(json!({ "apiKey": "sk-canary-literal" }), BTreeMap::new());
    let refusal = world
        .plane
        .create_configuration(&world.admin, world.namespace, create)
        .await
        .unwrap_err();
    assert_eq!(
        (refusal.code(), refusal.details()[0].path.as_str()),
        (ApiCode::InvalidRequest, "/values/apiKey")
    );
    assert!(!format!("{refusal:?}").contains("canary"));
    assert!(
        world
            .plane
            .configurations(&world.admin, world.namespace)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn bound_secrets_are_of_the_namespace_exist_and_may_be_operated() {
    let world = World::new().await;
    let secret = world.secret("slack", "xoxb-0123456789").await;
    let create = |caller: Caller, bindings| {
        let plane = world.plane.clone();
        let namespace = world.namespace;
        async move {
            plane
                .create_configuration(&caller, namespace, input(json!({}), bindings))
                .await
        }
    };
    let foreign = create(world.admin.clone(), binding(NamespaceId::random(), secret))
        .await
        .unwrap_err();
    assert_eq!(foreign.code(), ApiCode::InvalidRequest);
    assert_eq!(
        foreign.details()[0].path,
        "/secretBindings/SLACK_BOT_TOKEN/source/namespaceId"
    );
    let absent = create(world.admin.clone(), binding(world.namespace, SecretId::random()))
        .await
        .unwrap_err();
    assert_eq!(absent.code(), ApiCode::NotFound);
    let author = person(&world, &[(Action::Create, ResourceKind::Configuration)]).await;
    let denied = create(author.clone(), binding(world.namespace, secret))
        .await
        .unwrap_err();
    let unseen = create(author, binding(world.namespace, SecretId::random()))
        .await
        .unwrap_err();
    assert_eq!(
        (denied.code(), denied.message()),
        (ApiCode::Forbidden, unseen.message())
    );
}

#[tokio::test]
async fn too_many_bindings_are_refused() {
    let world = World::new().await;
    let secret = world.secret("slack", "xoxb-0123456789").await;
    let one = binding(world.namespace, secret).into_values().next().unwrap();
    let many = (0..65)
        .map(|n| (EnvName::try_from(format!("V{n}")).unwrap(), one.clone()))
        .collect();
    let refusal = world
        .plane
        .create_configuration(&world.admin, world.namespace, input(json!({}), many))
        .await
        .unwrap_err();
    assert_eq!(refusal.details()[0].path, "/secretBindings");
}

#[tokio::test]
async fn a_namespace_that_failed_or_is_going_takes_no_configuration() {
    let world = World::new().await;
    for status in [NamespaceStatus::Failed, NamespaceStatus::Deleting] {
        world.set_namespace(world.namespace, status).await;
        let create = input(json!({}), BTreeMap::new());
        let refusal = world
            .plane
            .create_configuration(&world.admin, world.namespace, create)
            .await
            .unwrap_err();
        assert_eq!(refusal.code(), ApiCode::ResourceConflict, "{status:?}");
    }
    world
        .set_namespace(world.namespace, NamespaceStatus::Provisioning)
        .await;
    let create = input(json!({}), BTreeMap::new());
    assert!(
        world
            .plane
            .create_configuration(&world.admin, world.namespace, create)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn two_updates_that_meet_both_count() {
    let world = World::new().await;
    let id = world.configuration(json!({})).await;
    let (plane, admin, namespace) = (world.plane.clone(), world.admin.clone(), world.namespace);
    world.store.race(async move {
        plane
            .update_configuration(&admin, namespace, id, values(json!({ "by": "other" })))
            .await
            .unwrap();
    });
    let mine = world
        .plane
        .update_configuration(&world.admin, world.namespace, id, values(json!({ "by": "me" })));
    assert_eq!(mine.await.unwrap().generation, 3);
    let saved = world
        .plane
        .configuration(&world.admin, world.namespace, id)
        .await
        .unwrap();
    assert_eq!((saved.generation, &saved.values["by"]), (3, &json!("me")));
}

#[tokio::test]
async fn a_change_that_is_not_committed_leaves_nothing_of_itself() {
    let world = World::new().await;
    world.store.fail(CommitError::Unavailable);
    let create = input(json!({ "n": 1 }), BTreeMap::new());
    let refusal = world
        .plane
        .create_configuration(&world.admin, world.namespace, create)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::DependencyUnavailable);
    let id = world.configuration(json!({ "n": 1 })).await;
    world.store.fail(CommitError::Unavailable);
    let update = world
        .plane
        .update_configuration(&world.admin, world.namespace, id, values(json!({ "n": 2 })));
    assert_eq!(update.await.unwrap_err().code(), ApiCode::DependencyUnavailable);
    let saved = world
        .plane
        .configuration(&world.admin, world.namespace, id)
        .await
        .unwrap();
    assert_eq!((saved.generation, &saved.values["n"]), (1, &json!(1)));
    assert_eq!(
        world
            .plane
            .configurations(&world.admin, world.namespace)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn what_agents_use_is_not_deleted_and_they_are_named_to_whom_may_read_them() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let delete = |plane: ControlPlane, caller: Caller, id: ConfigurationId| {
        let namespace = world.namespace;
        async move { plane.delete_configuration(&caller, namespace, id).await }
    };
    let refusal = delete(world.plane.clone(), world.admin.clone(), agent.configuration_id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::ResourceConflict);
    assert!(refusal.message().contains(&agent.id.to_string()), "{refusal}");
    let cleaner = person(&world, &[(Action::Delete, ResourceKind::Configuration)]).await;
    let refusal = delete(world.plane.clone(), cleaner.clone(), agent.configuration_id)
        .await
        .unwrap_err();
    assert!(
        !refusal.message().contains("agt_") && refusal.message().contains('1'),
        "{refusal}"
    );
    let free = world.configuration(json!({})).await;
    delete(world.plane.clone(), cleaner, free).await.unwrap();
    let read = world
        .plane
        .configuration(&world.admin, world.namespace, free)
        .await
        .unwrap_err();
    assert_eq!(read.code(), ApiCode::NotFound);
}

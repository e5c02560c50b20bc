//! Secrets (spec/engine 1.6, spec/contracts 9).

use std::sync::Arc;

use occ_core::{
    control::SecretView,
    driver::{Action, ResourceKind},
    id::SecretId,
    reason::ApiCode,
    secret_value::SecretValue,
    store::{CommitError, Store as _},
};
use occ_test_support::drivers::{NullCompute, OutsideSecrets, World};
use serde_json::json;

use crate::{configurations::binding, people::person};

fn value(text: &str) -> SecretValue {
    SecretValue::from_caller(text.as_bytes().to_vec()).unwrap()
}

async fn create(world: &World, name: &str) -> Result<SecretView, occ_core::admission::Refusal> {
    world
        .plane
        .create_secret(
            &world.admin,
            world.namespace,
            name.parse().unwrap(),
            value("canary-value"),
        )
        .await
}

#[tokio::test]
async fn a_secret_shows_its_name_and_reference_and_never_its_value_or_place() {
    let world = World::new().await;
    let secret = create(&world, "openai").await.unwrap();
    let shown = serde_json::to_value(&secret).unwrap();
    assert_eq!(
        shown,
        json!({
            "id": secret.id, "namespaceId": world.namespace, "name": "openai",
            "ref": { "kind": "secret", "namespaceId": world.namespace, "id": secret.id },
        })
    );
    let record = world.store.secret(world.namespace, secret.id).await.unwrap().unwrap();
    assert!(!serde_json::to_string(&record).unwrap().contains("canary"));
    for event in world.store.take_audit() {
        assert!(!serde_json::to_string(&event).unwrap().contains("canary"));
    }
    let listed = world.plane.secrets(&world.admin, world.namespace).await.unwrap();
    assert_eq!(listed, [secret]);
}

#[tokio::test]
async fn names_are_unique_in_a_namespace_and_a_refused_create_leaves_nothing_outside() {
    let vault = Arc::new(OutsideSecrets::named("vault"));
    let world = World::builder().secret(vault.clone()).build().await;
    create(&world, "openai").await.unwrap();
    let refusal = create(&world, "openai").await.unwrap_err();
    assert_eq!(refusal.code(), ApiCode::ResourceConflict);
    assert_eq!(vault.len(), 1, "the second value was taken back");
}

#[tokio::test]
async fn a_create_whose_outcome_is_unknown_keeps_its_value_and_is_not_repeated() {
    let vault = Arc::new(OutsideSecrets::named("vault"));
    let world = World::builder().secret(vault.clone()).build().await;
    world.store.lose_answer();
    let refusal = create(&world, "openai").await.unwrap_err();
    assert_eq!(refusal.code(), ApiCode::DependencyUnavailable);
    assert!(refusal.message().contains("do not retry automatically"), "{refusal}");
    assert_eq!(vault.len(), 1);
    assert_eq!(
        world.plane.secrets(&world.admin, world.namespace).await.unwrap().len(),
        1
    );
    for (error, said) in [
        (
            CommitError::Unavailable,
            "The database is unavailable; nothing was done.",
        ),
        (
            CommitError::NoSpace,
            "The database has no space left; nothing was done.",
        ),
    ] {
        world.store.fail(error);
        let refusal = create(&world, "second").await.unwrap_err();
        assert_eq!(
            (refusal.code(), refusal.message()),
            (ApiCode::DependencyUnavailable, said)
        );
        assert_eq!(vault.len(), 1, "a create that certainly failed is taken back");
    }
}

#[tokio::test]
async fn consumers_are_shown_as_far_as_they_may_be_read_and_keep_the_secret() {
    let world = World::new().await;
    let secret = world.secret("openai", "sk-test-0123456789").await;
    let configuration = world.configuration(json!({})).await;
    let agent = world.agent("triage", configuration, secret).await;
    let consumers = world
        .plane
        .secret(&world.admin, world.namespace, secret)
        .await
        .unwrap()
        .consumers
        .unwrap();
    assert_eq!((consumers.agents, consumers.unreadable), (vec![agent.id], 0));
    let reader = person(
        &world,
        &[
            (Action::Read, ResourceKind::Secret),
            (Action::Delete, ResourceKind::Secret),
        ],
    )
    .await;
    let consumers = world
        .plane
        .secret(&reader, world.namespace, secret)
        .await
        .unwrap()
        .consumers
        .unwrap();
    assert_eq!((consumers.agents.len(), consumers.unreadable), (0, 1));
    let refusal = world
        .plane
        .delete_secret(&reader, world.namespace, secret)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::ResourceConflict);
    assert!(!refusal.message().contains("agt_"), "{refusal}");
}

#[tokio::test]
async fn a_reference_that_comes_between_keeps_the_secret() {
    let world = World::new().await;
    let secret = world.secret("slack", "xoxb-0123456789").await;
    let (plane, admin, namespace) = (world.plane.clone(), world.admin.clone(), world.namespace);
    world.store.race(async move {
        let input = occ_core::control::CreateConfiguration {
            kind: occ_core::resource::ConfigurationKind::Agent,
            values: occ_core::resource::Document::new(),
            secret_bindings: binding(namespace, secret),
        };
        plane.create_configuration(&admin, namespace, input).await.unwrap();
    });
    let refusal = world
        .plane
        .delete_secret(&world.admin, world.namespace, secret)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::ResourceConflict);
    assert!(refusal.message().contains("configuration cfg_"), "{refusal}");
}

#[tokio::test]
async fn deletion_takes_the_value_and_the_grants_on_the_secret_with_it() {
    let world = World::new().await;
    let secret = world.secret("openai", "sk-test-0123456789").await;
    let bob = person(&world, &[(Action::Read, ResourceKind::Namespace)]).await;
    world.let_operate(&bob.principal, secret).await;
    let before = world
        .plane
        .access_bindings(&world.admin, world.namespace)
        .await
        .unwrap()
        .len();
    world.store.take_audit();
    world
        .plane
        .delete_secret(&world.admin, world.namespace, secret)
        .await
        .unwrap();
    let after = world
        .plane
        .access_bindings(&world.admin, world.namespace)
        .await
        .unwrap()
        .len();
    assert_eq!(before - after, 1);
    let audit = world.store.take_audit().remove(0);
    assert_eq!(audit.details["accessBindingIds"].as_array().unwrap().len(), 1);
    assert_eq!(
        world
            .plane
            .secret(&world.admin, world.namespace, secret)
            .await
            .unwrap_err()
            .code(),
        ApiCode::NotFound
    );
    create(&world, "openai").await.unwrap();
}

#[tokio::test]
async fn a_new_value_is_a_new_version_and_the_old_one_is_gone() {
    let world = World::new().await;
    let secret = world.secret("openai", "sk-test-0123456789").await;
    world
        .plane
        .update_secret(&world.admin, world.namespace, secret, value("sk-test-new"))
        .await
        .unwrap();
    let record = world.store.secret(world.namespace, secret).await.unwrap().unwrap();
    assert_eq!(record.version, 2);
    let identity = occ_core::driver::SecretIdentity {
        id: secret,
        namespace_id: world.namespace,
        name: record.name.clone(),
    };
    let state = occ_core::driver::DriverState::new(world.store.clone());
    let cx = occ_core::driver::OperationContext::new(Arc::new(occ_core::time::SystemClock), state);
    let stored = world
        .drivers
        .secret
        .value(&cx, &identity, &record.backend_ref)
        .await
        .unwrap();
    assert_eq!(stored.expose_str(), Some("sk-test-new"));
}

#[tokio::test]
async fn another_drivers_secret_is_neither_changed_nor_deleted() {
    let world = World::new().await;
    let secret = world.secret("openai", "sk-test-0123456789").await;
    let vault = Arc::new(OutsideSecrets::named("vault"));
    let switched = world.with(Some(vault.clone()), NullCompute::default());
    let update = switched
        .update_secret(&world.admin, world.namespace, secret, value("x"))
        .await
        .unwrap_err();
    let delete = switched
        .delete_secret(&world.admin, world.namespace, secret)
        .await
        .unwrap_err();
    assert_eq!(
        (update.code(), delete.code()),
        (ApiCode::DependencyUnavailable, ApiCode::DependencyUnavailable)
    );
    assert_eq!(update.message(), delete.message());
    assert!(
        switched.secret(&world.admin, world.namespace, secret).await.is_ok(),
        "it can still be read"
    );
    assert!(vault.is_empty());
}

#[tokio::test]
async fn a_vault_that_is_away_says_only_that() {
    let vault = Arc::new(OutsideSecrets::named("vault"));
    let world = World::builder().secret(vault.clone()).build().await;
    vault.set_away(true);
    let refusal = create(&world, "openai").await.unwrap_err();
    assert_eq!(
        (refusal.code(), refusal.message()),
        (ApiCode::DependencyUnavailable, "The Secret Driver is unavailable.")
    );
    assert!(
        world
            .plane
            .secrets(&world.admin, world.namespace)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_denial_does_not_tell_whether_the_secret_exists() {
    let world = World::new().await;
    let secret = world.secret("openai", "sk-test-0123456789").await;
    let stranger = person(&world, &[(Action::Read, ResourceKind::Namespace)]).await;
    let there = world
        .plane
        .secret(&stranger, world.namespace, secret)
        .await
        .unwrap_err();
    let nowhere = world
        .plane
        .secret(&stranger, world.namespace, SecretId::random())
        .await
        .unwrap_err();
    assert_eq!((there.code(), there.message()), (nowhere.code(), nowhere.message()));
    assert!(
        world
            .plane
            .secrets(&stranger, world.namespace)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_namespace_that_goes_meanwhile_takes_the_value_back() {
    let vault = Arc::new(OutsideSecrets::named("vault"));
    let world = World::builder().secret(vault.clone()).build().await;
    let (store, namespace) = (world.store.clone(), world.namespace);
    world.store.race(async move {
        let status = occ_core::resource::NamespaceStatus::Deleting;
        let write = occ_core::store::Write::NamespaceStatus {
            id: namespace,
            status,
            deletion_actor: None,
        };
        store.commit(occ_core::store::Change::new().write(write)).await.unwrap();
    });
    assert_eq!(
        create(&world, "openai").await.unwrap_err().code(),
        ApiCode::ResourceConflict
    );
    assert!(vault.is_empty());
}

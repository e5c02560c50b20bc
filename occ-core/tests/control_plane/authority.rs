//! What is withdrawn before a change commits allows nothing of it (spec/engine 11: authority is checked again in the transaction).

use std::sync::Arc;

use occ_core::{
    audit::AuditOutcome,
    control::{Caller, CreatePreset, UpdateAgent, UpdateConfiguration},
    driver::{Action, ResourceKind},
    reason::ApiCode,
    secret_value::SecretValue,
    store::{BindingsOf, Change, Store as _, Write},
};
use occ_test_support::drivers::{OutsideSecrets, World};
use serde_json::json;

use crate::people::person;

fn value(text: &str) -> SecretValue {
    SecretValue::from_caller(text.as_bytes().to_vec()).expect("a value")
}

/// Before the next commit, everything that was granted to this person is withdrawn.
async fn withdrawn_meanwhile(world: &World, caller: &Caller) {
    let of = BindingsOf::Principal(&caller.principal);
    let bindings = world.store.access_bindings(Some(world.namespace), of).await.unwrap();
    assert!(!bindings.is_empty());
    let change = bindings.into_iter().fold(Change::new(), |change, binding| {
        change.write(Write::DeleteAccessBinding(binding.id))
    });
    let store = Arc::clone(&world.store);
    world.store.race(async move { store.commit(change).await.unwrap() });
}

#[tokio::test]
async fn a_grant_that_is_withdrawn_while_a_driver_is_called_commits_nothing() {
    let world = World::new().await;
    let secret = world.secret("openai", "sk-test-0123456789").await;
    let bob = person(&world, &[(Action::Update, ResourceKind::Secret)]).await;
    withdrawn_meanwhile(&world, &bob).await;
    world.store.take_audit();
    let (plane, namespace) = (&world.plane, world.namespace);
    let refusal = plane
        .update_secret(&bob, namespace, secret, value("sk-test-of-somebody"))
        .await;
    assert_eq!(refusal.unwrap_err().code(), ApiCode::Forbidden);
    let row = world.store.secret(namespace, secret).await.unwrap().unwrap();
    assert_eq!(row.version, 1);
    let recorded = world.store.take_audit();
    assert!(
        recorded.iter().all(|event| event.outcome == AuditOutcome::Denied),
        "{recorded:?}"
    );
}

#[tokio::test]
async fn every_kind_of_change_asks_again_in_its_transaction() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let (plane, namespace) = (&world.plane, world.namespace);
    let everything = [
        (Action::Read, ResourceKind::Namespace),
        (Action::Create, ResourceKind::Secret),
        (Action::Create, ResourceKind::Preset),
        (Action::Delete, ResourceKind::Secret),
        (Action::Read, ResourceKind::Configuration),
        (Action::Update, ResourceKind::Configuration),
        (Action::Operate, ResourceKind::Secret),
        (Action::Update, ResourceKind::Agent),
        (Action::Operate, ResourceKind::Agent),
        (Action::Delete, ResourceKind::Agent),
    ];
    let spare = world.secret("spare", "sk-test-0123456789").await;
    for round in 0..7 {
        let bob = person(&world, &everything).await;
        withdrawn_meanwhile(&world, &bob).await;
        let answer = match round {
            0 => plane
                .create_secret(&bob, namespace, "new".parse().unwrap(), value("sk-new-0123456789"))
                .await
                .map(drop),
            1 => plane.delete_secret(&bob, namespace, spare).await,
            2 => {
                let input = UpdateConfiguration {
                    values: serde_json::from_value(json!({})).unwrap(),
                    secret_bindings: None,
                };
                plane
                    .update_configuration(&bob, namespace, agent.configuration_id, input)
                    .await
                    .map(drop)
            }
            3 => {
                let input = UpdateAgent::configuration(agent.configuration_id);
                plane.update_agent(&bob, namespace, agent.id, input).await.map(drop)
            }
            4 => plane.stop_agent(&bob, namespace, agent.id).await.map(drop),
            5 => plane.delete_agent(&bob, namespace, agent.id).await.map(drop),
            _ => {
                let input = CreatePreset {
                    name: "preset".parse().unwrap(),
                    settings: serde_json::from_value(json!({})).unwrap(),
                };
                plane.create_preset(&bob, namespace, input).await.map(drop)
            }
        };
        assert_eq!(answer.unwrap_err().code(), ApiCode::Forbidden, "{round}");
        assert_eq!(
            world.store.let_be(),
            0,
            "{round}: the grant was withdrawn before the commit"
        );
    }
    let row = world.store.agent(namespace, agent.id).await.unwrap().unwrap();
    assert_eq!(row.version, 1, "nothing of it was done");
    assert!(world.store.secret(namespace, spare).await.unwrap().is_some());
}

#[tokio::test]
async fn a_driver_that_keeps_its_policy_is_asked_again_after_the_other_driver_was_called() {
    let vault = Arc::new(OutsideSecrets::named("vault"));
    let world = World::builder().secret(Arc::clone(&vault) as _).build().await;
    world.iam.keeps_its_policy();
    let secret = world.secret("openai", "sk-test-0123456789").await;
    world.iam.take_asked();
    world
        .plane
        .update_secret(&world.admin, world.namespace, secret, value("sk-test-of-today"))
        .await
        .unwrap();
    let asked = world.iam.take_asked();
    assert_eq!(asked.len(), 2, "before and after: {asked:?}");
}

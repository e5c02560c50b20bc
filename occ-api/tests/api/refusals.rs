//! What admission refuses: in the order of its tables, and in words that give nothing away.

use std::sync::Arc;

use occ_core::{
    admission::{
        deploy::CHECKS,
        draft::{CREATE, UPDATE},
    },
    driver::SettingRejection,
    store::{Change, Store as _, Write},
};
use occ_test_support::drivers::{NullCompute, OutsideSecrets, World};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    admission::{
        scene::Credentials,
        table,
        walk::{Operation, walk},
    },
    served::{Served, store},
};

#[tokio::test]
async fn of_two_faults_of_a_deployment_the_earlier_check_refuses() {
    walk(Operation::Deploy, Credentials::Delivered, store().await).await;
}

#[tokio::test]
async fn of_two_faults_of_a_creation_the_earlier_check_refuses() {
    walk(Operation::Create, Credentials::Delivered, store().await).await;
}

#[tokio::test]
async fn of_two_faults_of_a_change_the_earlier_check_refuses() {
    walk(Operation::Update, Credentials::Delivered, store().await).await;
}

#[tokio::test]
async fn of_two_faults_of_a_mediated_deployment_the_earlier_check_refuses() {
    walk(Operation::Deploy, Credentials::Mediated, store().await).await;
}

#[tokio::test]
async fn of_two_faults_of_a_creation_with_mediated_credentials_the_earlier_check_refuses() {
    walk(Operation::Create, Credentials::Mediated, store().await).await;
}

#[tokio::test]
async fn of_two_faults_of_a_change_of_mediated_credentials_the_earlier_check_refuses() {
    walk(Operation::Update, Credentials::Mediated, store().await).await;
}

#[tokio::test]
async fn of_two_faults_of_a_deployment_with_an_issued_token_the_earlier_check_refuses() {
    walk(Operation::Deploy, Credentials::Issued, store().await).await;
}

#[tokio::test]
async fn of_two_faults_of_a_creation_with_an_issued_token_the_earlier_check_refuses() {
    walk(Operation::Create, Credentials::Issued, store().await).await;
}

#[tokio::test]
async fn of_two_faults_of_a_change_with_an_issued_token_the_earlier_check_refuses() {
    walk(Operation::Update, Credentials::Issued, store().await).await;
}

#[test]
fn the_tables_name_every_check_in_its_order() {
    let lines = |table: &[table::Line]| table.iter().map(|(name, ..)| *name).collect::<Vec<_>>();
    // No request leaves a setting behind that cannot be read: that is proved in `unreadable`.
    let by_requests = |name: &&str| *name != "settings_readable";
    let checks = CHECKS.iter().map(|(name, _)| *name);
    assert_eq!(
        lines(table::DEPLOY),
        checks
            .filter(|name| *name != "configuration_exists")
            .filter(by_requests)
            .collect::<Vec<_>>()
    );
    // The name is the database's to judge, at the commit.
    let names = CREATE.iter().map(|(name, _)| *name).chain(["name_free"]);
    assert_eq!(lines(table::CREATE), names.collect::<Vec<_>>());
    assert_eq!(
        lines(table::UPDATE),
        UPDATE
            .iter()
            .map(|(name, _)| *name)
            .filter(by_requests)
            .collect::<Vec<_>>()
    );
}
#[tokio::test]
async fn a_configuration_that_an_agent_names_cannot_vanish() {
    let served = Served::new().await;
    let agent = served.world.deployable("a").await;
    let path = served.path(&format!("/configurations/{}", agent.configuration_id));
    let seen = served.send(Method::DELETE, &path).await;
    assert_eq!((seen.status.as_u16(), seen.code()), (409, "RESOURCE_CONFLICT"));
    assert!(seen.message().contains(&agent.id.to_string()), "{}", seen.body);
}

#[tokio::test]
async fn the_refusal_of_a_gateway_setting_names_it_and_never_its_value() {
    let served = Served::new().await;
    let world = &served.world;
    let agent = world.deployable("a").await;
    world.compute.reject_settings(Some(SettingRejection {
        setting: "gateway.auth.password",
        accepted: "must be ${OPENCLAW_GATEWAY_PASSWORD}",
    }));
    let path = served.path(&format!("/configurations/{}", agent.configuration_id));
    let body = json!({ "values": { "gateway": { "auth": { "password": "canary-value" } } } });
    served.json(Method::PATCH, &path, &body).await;
    let seen = served
        .send(Method::POST, &served.path(&format!("/agents/{}/deploy", agent.id)))
        .await;
    assert_eq!((seen.status.as_u16(), seen.code()), (409, "RESOURCE_CONFLICT"));
    assert_eq!(
        seen.message(),
        "gateway.auth.password must be ${OPENCLAW_GATEWAY_PASSWORD}."
    );
    assert!(!seen.body.to_string().contains("canary"));
    let revisions = served
        .send(Method::GET, &served.path(&format!("/agents/{}/revisions", agent.id)))
        .await;
    assert_eq!(revisions.data(), &json!([]), "refused before a version exists");
}

#[tokio::test]
async fn after_a_driver_switch_a_binding_can_be_kept_cleared_and_replaced_but_not_named_again() {
    let world = World::builder().store(store().await).build().await;
    let agent = world.deployable("a").await;
    let old = agent.harness_auth;
    let vault: Arc<OutsideSecrets> = Arc::new(OutsideSecrets::named("secret-now"));
    let plane = world.with(Some(vault), NullCompute::default());
    let served = Served::serving(world, plane).await;
    let secrets = served.path("/secrets");
    let seen = served
        .json(
            Method::POST,
            &secrets,
            &json!({ "name": "new", "value": "sk-test-0123456789" }),
        )
        .await;
    let new = json!({ "method": "api_key", "source": seen.data()["ref"] });
    let path = served.path(&format!("/agents/{}", agent.id));
    let body = |auth: Option<Value>| {
        let mut body = json!({ "configurationId": agent.configuration_id });
        if let Some(auth) = auth {
            body["harnessAuth"] = auth;
        }
        body
    };
    let name_it = body(Some(json!(old)));
    let text = "The harnessAuth Secret is stored through another Secret Driver. Bind a Secret that is stored through the selected one.";
    let deploy = served.path(&format!("/agents/{}/deploy", agent.id));

    let kept = served.json(Method::PATCH, &path, &body(None)).await;
    assert_eq!(kept.status.as_u16(), 200, "{}", kept.body);
    for refused in [
        served.json(Method::PATCH, &path, &name_it).await,
        served.send(Method::POST, &deploy).await,
    ] {
        assert_eq!(
            (refused.status.as_u16(), refused.code(), refused.message()),
            (503, "DEPENDENCY_UNAVAILABLE", text)
        );
    }
    let cleared = served.json(Method::PATCH, &path, &body(Some(Value::Null))).await;
    assert_eq!(cleared.data()["harnessAuth"], Value::Null);
    assert_eq!(served.json(Method::PATCH, &path, &name_it).await.status.as_u16(), 503);
    let replaced = served.json(Method::PATCH, &path, &body(Some(new.clone()))).await;
    assert_eq!(replaced.data()["harnessAuth"], new);

    // What the named Configuration binds is checked whole with every change, named anew or not.
    let binding = json!({ "SLACK_BOT_TOKEN": { "source": json!(old)["source"] } });
    let configuration = served
        .world
        .store
        .configuration(served.world.namespace, agent.configuration_id)
        .await
        .expect("a read")
        .expect("a Configuration");
    let mut row = configuration.clone();
    row.secret_bindings = serde_json::from_value(binding).expect("bindings");
    row.generation += 1;
    let change = Change::new().write(Write::UpdateConfiguration(row));
    served.world.store.commit(change).await.expect("a change");
    let seen = served.json(Method::PATCH, &path, &body(None)).await;
    assert_eq!((seen.status.as_u16(), seen.code()), (503, "DEPENDENCY_UNAVAILABLE"));
    assert!(
        seen.message()
            .starts_with("The Configuration's secretBindings name a Secret stored through another Secret"),
        "{}",
        seen.body
    );
    // Naming another Configuration resolves it.
    let other = served.world.configuration(json!({})).await;
    let seen = served
        .json(Method::PATCH, &path, &json!({ "configurationId": other }))
        .await;
    assert_eq!(seen.status.as_u16(), 200, "{}", seen.body);
}

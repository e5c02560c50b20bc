//! Plugins of Agents: their selection, what a version freezes of it, and what is reported of them (seed: Plugin selections;
//! spec/engine 1.13, spec/contracts 12.4).

use std::sync::Arc;

use occ_core::{
    admission::Refusal,
    control::{NamedPlugin, UpdateAgent},
    driver::{
        Action, EffectError, Fault, FaultKind, PluginDriver as _, PluginWarning, PluginWarningCode, Readiness,
        ResourceKind, RevisionObservation,
    },
    id::AgentId,
    reason::{ApiCode, Failure},
    resource::{Agent, Plugins},
    status::Deployment,
    store::Store as _,
    work::Policy,
    worker::Worker,
};
use occ_test_support::drivers::{NullCompute, Optional, PluginCatalog, World};
use serde_json::{Value, json};

use crate::people::person;

const CALENDAR: &str = "calendar@curated";

async fn world() -> (World, Arc<PluginCatalog>) {
    let catalog = Arc::new(PluginCatalog::named("plugins"));
    let world = World::builder().plugin(Arc::clone(&catalog) as _).build().await;
    (world, catalog)
}

fn selection(value: Value) -> Plugins {
    serde_json::from_value(value).expect("a selection")
}

async fn change(world: &World, agent: AgentId, fields: Value) -> Result<Agent, Refusal> {
    let row = world.store.agent(world.namespace, agent).await.unwrap().unwrap();
    let mut body = json!({ "configurationId": row.agent.configuration_id });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    let input: UpdateAgent = serde_json::from_value(body).unwrap();
    world
        .plane
        .update_agent(&world.admin, world.namespace, agent, input)
        .await
}

#[tokio::test]
async fn a_change_keeps_clears_or_replaces_all_plugins() {
    let (world, _) = world().await;
    let agent = world.deployable("a").await.id;
    let both = json!({ CALENDAR: { "enabled": true }, "mail@curated": { "enabled": false } });
    let one = json!({ "mail@curated": { "enabled": true, "toolDefaults": { "approval": "all_actions" } } });
    let approvers = json!([{ "channel": "slack", "id": "U1" }]);
    let cases = [
        (json!({ "plugins": both }), both.clone(), Value::Null),
        (json!({ "pluginApprovers": approvers }), both.clone(), approvers.clone()),
        (json!({ "executionMode": "embedded" }), both, approvers.clone()),
        (json!({ "plugins": one }), one.clone(), approvers),
        (json!({ "pluginApprovers": [] }), one.clone(), json!([])),
        (json!({ "pluginApprovers": null }), one, Value::Null),
        (json!({ "plugins": {} }), json!({}), Value::Null),
    ];
    for (fields, plugins, approvers) in cases {
        let answered = change(&world, agent, fields.clone()).await.unwrap();
        let saved = world.store.agent(world.namespace, agent).await.unwrap().unwrap().agent;
        assert_eq!(answered, saved, "{fields}");
        assert_eq!(json!(saved.plugins), plugins, "{fields}");
        assert_eq!(json!(saved.plugin_approvers), approvers, "{fields}");
    }
}

#[tokio::test]
async fn what_the_driver_cannot_carry_out_is_refused_and_pointed_at() {
    let (world, _) = world().await;
    let agent = world.deployable("a").await.id;
    let of = |policy: Value| {
        let mut selected = json!({ "enabled": true });
        for (name, value) in policy.as_object().unwrap() {
            selected[name] = value.clone();
        }
        json!({ "plugins": { CALENDAR: selected } })
    };
    let cases = [
        (
            of(json!({ "toolDefaults": { "approval": "write_actions" } })),
            "/toolDefaults/approval",
        ),
        (
            of(json!({ "toolDefaults": { "reviewer": "auto" } })),
            "/toolDefaults/reviewer",
        ),
        (
            of(json!({ "tools": { "create": { "approval": "write_actions" } } })),
            "/tools",
        ),
        (of(json!({ "driverPolicy": { "scope": "canary" } })), "/driverPolicy"),
        // Of the structure alone.
        (of(json!({ "toolDefaults": {} })), "/toolDefaults"),
        (of(json!({ "driverPolicy": {} })), "/driverPolicy"),
        (of(json!({ "tools": {} })), "/tools"),
        (of(json!({ "tools": { "a/b": {} } })), "/tools/a~1b"),
        (of(json!({ "tools": { "": { "enabled": true } } })), "/tools"),
        (of(json!({ "tools": { "a b": { "enabled": true } } })), "/tools"),
    ];
    for (fields, below) in cases {
        let refused = change(&world, agent, fields.clone()).await.unwrap_err();
        assert_eq!(refused.code(), ApiCode::InvalidRequest, "{fields}");
        assert_eq!(
            refused.details()[0].path,
            format!("/plugins/{CALENDAR}{below}"),
            "{fields}"
        );
        assert!(!refused.message().contains("canary"));
    }
    let twice = json!([{ "channel": "slack", "id": "U1" }, { "channel": "slack", "id": "U1" }]);
    let refused = change(&world, agent, json!({ "pluginApprovers": twice }))
        .await
        .unwrap_err();
    assert_eq!(refused.details()[0].path, "/pluginApprovers/1");
    let saved = world.store.agent(world.namespace, agent).await.unwrap().unwrap().agent;
    assert!(saved.plugins.is_empty() && saved.plugin_approvers.is_none());
}

#[tokio::test]
async fn the_installation_says_which_policies_plugins_can_have() {
    let (world, catalog) = world().await;
    let read = world.plane.installation(&world.admin).await.unwrap();
    let offered = read.capabilities.plugin_policies.clone().unwrap();
    assert_eq!(offered.driver.id, "plugins");
    assert_eq!(offered.policies, catalog.policy_capabilities());
    let shown = json!(read);
    assert_eq!(shown["id"], json!(read.installation.id));
    assert_eq!(shown["capabilities"]["pluginPolicies"]["driver"]["id"], "plugins");
}

#[tokio::test]
async fn a_version_freezes_the_selection_and_the_driver_that_accepted_it() {
    let (world, _) = world().await;
    let agent = world.deployable("a").await.id;
    let selected = json!({ CALENDAR: { "enabled": true } });
    change(&world, agent, json!({ "plugins": selected, "pluginApprovers": [] }))
        .await
        .unwrap();
    let (plane, admin, namespace) = (&world.plane, &world.admin, world.namespace);
    let first = plane.deploy_agent(admin, namespace, agent).await.unwrap();
    assert_eq!(first.plugins, selection(selected.clone()));
    let shown = serde_json::to_string(&first).unwrap();
    assert!(
        !shown.contains("occ/catalog"),
        "the driver's identity is internal: {shown}"
    );
    let saved = world.store.revision(namespace, agent, first.id).await.unwrap().unwrap();
    let snapshot = json!(saved.revision.snapshot);
    let driver = json!({ "id": "plugins", "implementation": "occ/catalog" });
    assert_eq!(snapshot["plugins"], json!({ "driver": driver, "plugins": selected }));
    assert_eq!(snapshot["pluginApprovers"], json!([]));

    change(&world, agent, json!({ "plugins": {}, "pluginApprovers": null }))
        .await
        .unwrap();
    let without = plane.deploy_agent(admin, namespace, agent).await.unwrap();
    assert!(without.plugins.is_empty());
    let again = plane.redeploy(admin, namespace, agent, first.id).await.unwrap();
    assert_eq!((again.plugins, again.digest), (first.plugins, first.digest));
}

#[tokio::test]
async fn without_the_driver_a_saved_selection_is_not_deployed_and_can_be_cleared() {
    let (world, _) = world().await;
    let agent = world.deployable("a").await;
    change(
        &world,
        agent.id,
        json!({ "plugins": { CALENDAR: { "enabled": true } } }),
    )
    .await
    .unwrap();
    let plane = world.selecting(None, NullCompute::default(), Optional::default());
    let (admin, namespace) = (&world.admin, world.namespace);
    let refused = plane.deploy_agent(admin, namespace, agent.id).await.unwrap_err();
    assert_eq!(refused.code(), ApiCode::NotImplemented);
    let change = |fields: Value| {
        let mut body = json!({ "configurationId": agent.configuration_id });
        body["plugins"] = fields;
        let input: UpdateAgent = serde_json::from_value(body).unwrap();
        plane.update_agent(admin, namespace, agent.id, input)
    };
    let named = change(json!({ CALENDAR: { "enabled": true } })).await.unwrap_err();
    assert_eq!(named.code(), ApiCode::NotImplemented);
    assert!(change(json!({})).await.unwrap().plugins.is_empty());
    plane.deploy_agent(admin, namespace, agent.id).await.unwrap();
}

/// Deploys an Agent that selects the calendar; its version is ready with these warnings.
async fn ready_with(warnings: &[(PluginWarningCode, &str)]) -> Deployment {
    let (world, _) = world().await;
    let agent = world.deployable("a").await.id;
    change(&world, agent, json!({ "plugins": { CALENDAR: { "enabled": true } } }))
        .await
        .unwrap();
    let warnings: Vec<_> = warnings
        .iter()
        .map(|(code, plugin)| PluginWarning {
            code: *code,
            plugin_id: (*plugin).to_owned(),
        })
        .collect();
    for script in [&world.compute.prepare, &world.compute.activate] {
        let warnings = warnings.clone();
        script.with(move |target| Ok(RevisionObservation::of(&target, Readiness::Ready { warnings })));
    }
    let (plane, admin, namespace) = (&world.plane, &world.admin, world.namespace);
    let revision = plane.deploy_agent(admin, namespace, agent).await.unwrap().id;
    let worker = Worker::new(
        Arc::clone(&world.store) as _,
        Arc::clone(&world.drivers),
        Policy::default(),
    )
    .start();
    let status = loop {
        let status = plane.deployment(admin, namespace, agent, revision).await.unwrap();
        if status.status.is_terminal() {
            break status;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    worker.shutdown().await;
    status
}

#[tokio::test]
async fn warnings_are_of_admitted_plugins_and_one_each() {
    use PluginWarningCode::{AuthRequired, InstallFailed};
    for (code, shown) in [
        (InstallFailed, "PLUGIN_INSTALL_FAILED"),
        (AuthRequired, "PLUGIN_AUTH_REQUIRED"),
    ] {
        let status = ready_with(&[(code, CALENDAR)]).await;
        assert_eq!(status.error, None);
        assert_eq!(json!(status.warnings), json!([{ "code": shown, "pluginId": CALENDAR }]));
    }
    for odd in [
        &[(InstallFailed, "mail@curated")][..],
        &[(InstallFailed, CALENDAR), (AuthRequired, CALENDAR)],
    ] {
        let error = ready_with(odd).await.error.unwrap();
        assert_eq!(error.code, Failure::InvalidDriverObservation);
    }
}

#[tokio::test]
async fn the_catalogue_is_shown_to_whoever_may_create_or_change_an_agent() {
    let (world, catalog) = world().await;
    let agent = world.deployable("a").await.id;
    let (plane, namespace) = (&world.plane, world.namespace);
    let creator = person(&world, &[(Action::Create, ResourceKind::Agent)]).await;
    let editor = person(&world, &[(Action::Update, ResourceKind::Agent)]).await;
    let found = plane.plugin_catalog(&creator, namespace, None).await.unwrap();
    assert_eq!(found.plugins[0].id.as_str(), CALENDAR);
    assert!(found.policies.tools);
    assert_eq!(
        plane.plugin_catalog(&editor, namespace, Some(agent)).await.unwrap(),
        found
    );
    for (caller, agent) in [(&creator, Some(agent)), (&editor, None)] {
        let refused = plane.plugin_catalog(caller, namespace, agent).await.unwrap_err();
        assert_eq!(refused.code(), ApiCode::Forbidden);
    }
    let nobody = plane.plugin_catalog(&editor, namespace, Some(AgentId::random())).await;
    assert_eq!(nobody.unwrap_err().code(), ApiCode::NotFound);

    let named = |id: &str| NamedPlugin {
        plugin_id: id.parse().unwrap(),
    };
    let details = plane
        .plugin_details(&creator, namespace, None, &named(CALENDAR))
        .await
        .unwrap();
    assert_eq!(details.tools[0].id, "create-event");
    let missing = plane
        .plugin_details(&creator, namespace, None, &named("mail@curated"))
        .await;
    assert_eq!(missing.unwrap_err().code(), ApiCode::NotFound);
    let away: EffectError = Fault::new("reach the marketplace", FaultKind::Unavailable).into();
    catalog.list.next(Err(away));
    let away = plane.plugin_catalog(&creator, namespace, None).await.unwrap_err();
    assert_eq!(
        (away.code(), away.message()),
        (ApiCode::DependencyUnavailable, "The Plugin Driver is unavailable.")
    );
}

#[tokio::test]
async fn what_no_driver_can_say_is_not_implemented() {
    let named = NamedPlugin {
        plugin_id: CALENDAR.parse().unwrap(),
    };
    let world = World::new().await;
    let nothing = world.plane.plugin_catalog(&world.admin, world.namespace, None).await;
    assert_eq!(nothing.unwrap_err().code(), ApiCode::NotImplemented);
    let short = Arc::new(PluginCatalog::named("plugins").without_details());
    let world = World::builder().plugin(short).build().await;
    let details = world.plane.plugin_details(&world.admin, world.namespace, None, &named);
    assert_eq!(details.await.unwrap_err().code(), ApiCode::NotImplemented);
}

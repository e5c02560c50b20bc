//! Plugins over HTTP: the catalogue, and what an Agent selects of it.

use std::sync::Arc;

use occ_test_support::drivers::{PluginCatalog, World};
use reqwest::Method;
use serde_json::{Value, json};

use crate::served::{Served, store};

#[tokio::test]
async fn an_agent_selects_what_the_catalogue_has() {
    let catalog = Arc::new(PluginCatalog::named("plugins"));
    let world = World::builder().store(store().await).plugin(catalog).build().await;
    let agent = world.deployable("a").await;
    let served = Served::over(world).await;
    let path = format!("{}/{}", served.agents(), agent.id);
    for at in [&served.agents(), &path] {
        let found = served.json(Method::POST, &format!("{at}/plugins"), &json!({})).await;
        assert_eq!(found.status.as_u16(), 200, "{}", found.body);
        assert_eq!(found.data()["plugins"][0]["id"], "calendar@curated");
        assert_eq!(found.data()["policies"]["reviewers"], json!(["human"]));
        let details = format!("{at}/plugins/details");
        let named = |id: &str| json!({ "pluginId": id });
        let tools = served.json(Method::POST, &details, &named("calendar@curated")).await;
        assert_eq!(tools.data()["tools"][0]["writes"], true, "{}", tools.body);
        let missing = served.json(Method::POST, &details, &named("mail@curated")).await;
        assert_eq!(missing.status.as_u16(), 404);
        let malformed = served.json(Method::POST, &details, &named("no id")).await;
        assert_eq!(malformed.status.as_u16(), 400);
    }

    let body = |plugins: Value| json!({ "configurationId": agent.configuration_id, "plugins": plugins });
    let before = served.send(Method::GET, &path).await;
    let selected = json!({ "calendar@curated": { "enabled": true, "toolDefaults": { "approval": "none" } } });
    let changed = served.json(Method::PATCH, &path, &body(selected.clone())).await;
    assert_eq!(changed.data()["plugins"], selected, "{}", changed.body);
    let after = served.send(Method::GET, &path).await;
    assert_ne!(before.headers["etag"], after.headers["etag"], "the draft is another");
    for field in ["plugins", "executionMode", "credentialSources"] {
        let null = json!({ "configurationId": agent.configuration_id, field: null });
        let refused = served.json(Method::PATCH, &path, &null).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (400, "INVALID_REQUEST"),
            "{field}"
        );
    }
    let policy = json!({ "calendar@curated": { "enabled": true, "toolDefaults": { "reviewer": "auto" } } });
    let refused = served.json(Method::PATCH, &path, &body(policy)).await;
    assert_eq!(
        refused.detail(),
        ("/plugins/calendar@curated/toolDefaults/reviewer", "INVALID_VALUE")
    );
    let deployed = served.send(Method::POST, &format!("{path}/deploy")).await;
    assert_eq!(deployed.status.as_u16(), 202, "{}", deployed.body);
    assert_eq!(deployed.data()["plugins"], selected);
    let cleared = served.json(Method::PATCH, &path, &body(json!({}))).await;
    assert_eq!(cleared.data().get("plugins"), None, "{}", cleared.body);
}

#[tokio::test]
async fn without_a_driver_the_catalogue_is_not_implemented() {
    let served = Served::new().await;
    let agent = served.world.deployable("a").await;
    for at in [served.agents(), format!("{}/{}", served.agents(), agent.id)] {
        for (path, body) in [("plugins", json!({})), ("plugins/details", json!({ "pluginId": "a" }))] {
            let seen = served.json(Method::POST, &format!("{at}/{path}"), &body).await;
            assert_eq!((seen.status.as_u16(), seen.code()), (501, "NOT_IMPLEMENTED"));
        }
    }
}

//! An Agent with a saved setting that this program cannot read (seed: Unreadable saved settings): what does not go by the setting is done,
//! what does is refused with a code, and the setting can be replaced.

use occ_core::resource::AgentStatus;
use reqwest::Method;
use serde_json::json;
use sqlx::SqliteConnection;

use crate::{
    lists::{on_disk, run},
    served::Served,
};

/// An Agent whose plugins and authentication were left behind by another program.
async fn broken(served: &Served, database: &mut SqliteConnection) -> occ_core::resource::Agent {
    let agent = served.world.deployable("broken").await;
    run(
        database,
        r#"UPDATE agents SET plugins = '{"no id": 7}', harness_auth = '{"method":"oauth","source":"sk-canary"}' WHERE name = 'broken'"#,
    )
    .await;
    agent
}

#[tokio::test]
async fn it_is_stopped_and_deleted_and_its_settings_stay_as_they_are_saved() {
    let (served, mut database, _directory) = on_disk().await;
    let agent = broken(&served, &mut database).await;
    let path = format!("{}/{}", served.agents(), agent.id);

    let stopped = served.send(Method::POST, &format!("{path}/stop")).await;
    assert_eq!(stopped.status.as_u16(), 202, "{}", stopped.body);
    assert_eq!(stopped.data()["desiredRuntimeState"], "stopped");
    let kept: (String, String) = sqlx::query_as("SELECT plugins, harness_auth FROM agents WHERE name = 'broken'")
        .fetch_one(&mut database)
        .await
        .expect("the row");
    assert_eq!(
        kept.0, r#"{"no id": 7}"#,
        "nothing was written over what cannot be read"
    );
    assert!(kept.1.contains("oauth"));
    let consumers: (i64,) =
        sqlx::query_as("SELECT count(*) FROM agents WHERE name = 'broken' AND secret_id IS NOT NULL")
            .fetch_one(&mut database)
            .await
            .expect("a count");
    assert_eq!(consumers.0, 1, "its Secret is still known to be used");

    let deleted = served.send(Method::DELETE, &path).await;
    assert_eq!(deleted.status.as_u16(), 202, "{}", deleted.body);
    assert_eq!(
        deleted.data()["status"],
        serde_json::to_value(AgentStatus::Deleting).unwrap()
    );
}

#[tokio::test]
async fn it_is_deployed_once_every_unreadable_setting_was_replaced() {
    let (served, mut database, _directory) = on_disk().await;
    let agent = broken(&served, &mut database).await;
    let path = format!("{}/{}", served.agents(), agent.id);

    let refused = served.send(Method::POST, &format!("{path}/deploy")).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (409, "RESOURCE_CONFLICT"));
    assert!(
        refused.message().contains("cannot be read: plugins, harnessAuth."),
        "{}",
        refused.body
    );
    let part = json!({ "configurationId": agent.configuration_id, "plugins": {} });
    let refused = served.json(Method::PATCH, &path, &part).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (409, "RESOURCE_CONFLICT"));
    assert!(
        refused.message().contains("cannot be read: harnessAuth."),
        "{}",
        refused.body
    );

    let auth = serde_json::to_value(agent.harness_auth).unwrap();
    let whole = json!({ "configurationId": agent.configuration_id, "plugins": {}, "harnessAuth": auth });
    let mended = served.json(Method::PATCH, &path, &whole).await;
    assert_eq!(mended.status.as_u16(), 200, "{}", mended.body);
    let read = served.send(Method::GET, &path).await;
    assert_eq!(read.data().get("configurationReadError"), None);
    let deployed = served.send(Method::POST, &format!("{path}/deploy")).await;
    assert_eq!(deployed.status.as_u16(), 202, "{}", deployed.body);
}

#[tokio::test]
async fn it_keeps_what_it_may_use_from_being_deleted_until_it_is_mended() {
    let (served, mut database, _directory) = on_disk().await;
    let agent = broken(&served, &mut database).await;
    let accounts = format!("/namespaces/{}/service-accounts", served.world.namespace);
    let account = served.json(Method::POST, &accounts, &json!({ "name": "ci" })).await;
    let account = format!("{accounts}/{}", account.data()["id"].as_str().expect("an id"));
    let refused = served.send(Method::DELETE, &account).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (409, "RESOURCE_CONFLICT"));
    assert!(refused.message().contains(&agent.id.to_string()), "{}", refused.body);

    let mend = json!({ "configurationId": agent.configuration_id, "plugins": {}, "harnessAuth": null });
    let path = format!("{}/{}", served.agents(), agent.id);
    assert_eq!(served.json(Method::PATCH, &path, &mend).await.status.as_u16(), 200);
    assert_eq!(served.send(Method::DELETE, &account).await.status.as_u16(), 204);
}

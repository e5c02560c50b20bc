//! Requests that are done once, and requests that are done only on a known state.

use occ_core::{
    driver::{Action, ResourceKind},
    store::{CommitError, Store as _},
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::served::{Seen, Served};

async fn once(served: &Served, path: &str, key: &str, body: Option<&Value>) -> Seen {
    let mut request = served.request(Method::POST, path).header("idempotency-key", key);
    if let Some(body) = body {
        request = request.json(body);
    }
    Seen::of(request.send().await.expect("an answer")).await
}

async fn matching(served: &Served, path: &str, tag: &str, body: &Value) -> Seen {
    let request = served.request(Method::PATCH, path).header("if-match", tag).json(body);
    Seen::of(request.send().await.expect("an answer")).await
}

fn tag(seen: &Seen) -> String {
    let tag = seen.headers.get("etag").expect("a tag").to_str().expect("text");
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    tag.to_owned()
}

#[tokio::test]
async fn a_deployment_whose_answer_was_lost_is_not_repeated() {
    let served = Served::new().await;
    let agent = served.world.deployable("a").await;
    let path = served.path(&format!("/agents/{}/deploy", agent.id));
    served.world.store.lose_answer();
    let lost = once(&served, &path, "deploy-1", None).await;
    assert_eq!((lost.status.as_u16(), lost.code()), (503, "DEPENDENCY_UNAVAILABLE"));
    let first = once(&served, &path, "deploy-1", None).await;
    assert_eq!((first.status.as_u16(), &first.data()["revision"]), (202, &json!(1)));
    let again = once(&served, &path, "deploy-1", None).await;
    assert_eq!(again.data(), first.data());
    let next = once(&served, &path, "deploy-2", None).await;
    assert_eq!(next.data()["revision"], 2);
    let plain = served.send(Method::POST, &path).await;
    assert_eq!(
        plain.data()["revision"],
        3,
        "without a key each is a version of its own"
    );
    let listed = served
        .send(Method::GET, &served.path(&format!("/agents/{}/revisions", agent.id)))
        .await;
    assert_eq!(listed.data().as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn each_creation_can_be_named() {
    let served = Served::new().await;
    let configuration = served.world.configuration(json!({})).await;
    for (path, body) in [
        ("/namespaces".to_owned(), json!({ "name": "another" })),
        (
            served.path("/configurations"),
            json!({ "kind": "agent", "values": { "a": 1 } }),
        ),
        (
            served.path("/secrets"),
            json!({ "name": "s", "value": "sk-test-0123456789" }),
        ),
        (served.path("/service-accounts"), json!({ "name": "sa" })),
        (served.path("/presets"), json!({ "name": "p", "settings": {} })),
        (
            served.agents(),
            json!({ "name": "a", "configurationId": configuration }),
        ),
    ] {
        served.world.store.lose_answer();
        let key = format!("create {path}").replace(' ', "-");
        assert_eq!(
            once(&served, &path, &key, Some(&body)).await.status.as_u16(),
            503,
            "{path}"
        );
        let first = once(&served, &path, &key, Some(&body)).await;
        assert_eq!(first.status.as_u16(), 201, "{path}: {}", first.body);
        assert_eq!(
            once(&served, &path, &key, Some(&body)).await.data(),
            first.data(),
            "{path}"
        );
        assert!(!first.body.to_string().contains("sk-test"), "{path}");
        // The same key for another request is a mistake.
        let mut other = body.clone();
        other["name"] = json!("other");
        let refused = once(&served, &path, &key, Some(&other)).await;
        assert!(
            matches!(refused.code(), "RESOURCE_CONFLICT" | "INVALID_REQUEST"),
            "{path}: {}",
            refused.body
        );
    }
}

#[tokio::test]
async fn two_of_the_same_request_at_once_have_one_result() {
    let served = Served::new().await;
    let configuration = served.world.configuration(json!({})).await;
    let body = json!({ "name": "a", "configurationId": configuration });
    let agents = served.agents();
    let (first, second, third) = tokio::join!(
        once(&served, &agents, "k", Some(&body)),
        once(&served, &agents, "k", Some(&body)),
        once(&served, &agents, "k", Some(&body)),
    );
    assert_eq!(first.status.as_u16(), 201, "{}", first.body);
    assert_eq!(first.data(), second.data());
    assert_eq!(first.data(), third.data());
    let listed = served.world.store.agents(served.world.namespace).await;
    assert_eq!(listed.expect("a read").len(), 1);
}

#[tokio::test]
async fn a_first_result_is_shown_only_to_whoever_may_ask_still_and_a_failure_is_none() {
    let served = Served::new().await;
    let agent = served.world.deployable("a").await;
    let path = served.path(&format!("/agents/{}/deploy", agent.id));
    served.world.store.fail(CommitError::Unavailable);
    assert_eq!(once(&served, &path, "k", None).await.status.as_u16(), 503);
    assert_eq!(
        once(&served, &path, "k", None).await.data()["revision"],
        1,
        "nothing had been done"
    );
    let world = &served.world;
    world
        .iam
        .deny(&world.admin.principal, Action::Deploy, ResourceKind::Agent);
    assert_eq!(once(&served, &path, "k", None).await.code(), "FORBIDDEN");
}

#[tokio::test]
async fn a_key_has_a_form_and_a_place() {
    let served = Served::new().await;
    for key in ["", "with space", &"x".repeat(256)] {
        let seen = once(&served, "/namespaces", key, Some(&json!({ "name": "n" }))).await;
        assert_eq!((seen.status.as_u16(), seen.code()), (400, "INVALID_REQUEST"), "{key:?}");
    }
    let agent = served.world.deployable("a").await;
    let stop = served.path(&format!("/agents/{}/stop", agent.id));
    assert_eq!(
        once(&served, &stop, "k", None).await.code(),
        "INVALID_REQUEST",
        "a stop is repeatable as it is"
    );
}

#[tokio::test]
async fn a_draft_is_changed_only_on_the_state_that_was_read() {
    let served = Served::new().await;
    let agent = served.world.deployable("a").await;
    let path = served.path(&format!("/agents/{}", agent.id));
    let body = json!({ "configurationId": agent.configuration_id });
    let read = tag(&served.send(Method::GET, &path).await);
    // What the Agent is going through is not the draft.
    served.send(Method::POST, &format!("{path}/deploy")).await;
    assert_eq!(tag(&served.send(Method::GET, &path).await), read);
    let clear = json!({ "configurationId": agent.configuration_id, "harnessAuth": null });
    let changed = matching(&served, &path, &read, &clear).await;
    assert_eq!(changed.status.as_u16(), 200, "{}", changed.body);
    let stale = matching(&served, &path, &read, &body).await;
    assert_eq!((stale.status.as_u16(), stale.code()), (412, "PRECONDITION_FAILED"));
    for tags in [tag(&changed), format!("\"x\", {}", tag(&changed)), "*".to_owned()] {
        assert_eq!(
            matching(&served, &path, &tags, &body).await.status.as_u16(),
            200,
            "{tags}"
        );
    }
    for nonsense in ["x", "\"", ""] {
        assert_eq!(
            matching(&served, &path, nonsense, &body).await.status.as_u16(),
            400,
            "{nonsense}"
        );
    }
    let world = &served.world;
    world
        .iam
        .deny(&world.admin.principal, Action::Update, ResourceKind::Agent);
    assert_eq!(
        matching(&served, &path, &read, &body).await.code(),
        "FORBIDDEN",
        "the permission comes first"
    );
}

#[tokio::test]
async fn a_configuration_is_changed_only_in_the_generation_that_was_read() {
    let served = Served::new().await;
    let id = served.world.configuration(json!({ "a": 1 })).await;
    let path = served.path(&format!("/configurations/{id}"));
    let read = tag(&served.send(Method::GET, &path).await);
    let changed = matching(&served, &path, &read, &json!({ "values": { "a": 2 } })).await;
    assert_eq!(
        (changed.data()["generation"].clone(), tag(&changed) == read),
        (json!(2), false)
    );
    let stale = matching(&served, &path, &read, &json!({ "values": { "a": 3 } })).await;
    assert_eq!((stale.status.as_u16(), stale.code()), (412, "PRECONDITION_FAILED"));
    assert_eq!(
        served.send(Method::GET, &path).await.data()["values"],
        json!({ "a": 2 })
    );
}

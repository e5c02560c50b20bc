//! Credential sources over HTTP, and that their credentials stay with the gateway.

use std::sync::Arc;

use occ_core::{
    driver::{Action, EffectError, Fault, FaultKind, ResourceKind},
    id::{CredentialSourceId, RevisionId},
    resource::ExecutionMode,
    store::{Change, Store as _, Write, sqlite::SqliteStore},
};
use occ_test_support::drivers::{MediatingGateway, PlainHarness, World};
use reqwest::Method;
use serde_json::json;

use crate::{
    log,
    served::{Seen, Served, store},
};

/// An Agent whose selected version uses a source that its draft does not name any more: the paths of both, and of the use.
pub struct Used {
    pub served: Served,
    pub source: String,
    pub usage: String,
}

pub async fn used() -> Used {
    let world = World::builder()
        .store(store().await)
        .harness(PlainHarness::named("plain", &[ExecutionMode::Dedicated]))
        .credential_gateway(Arc::new(MediatingGateway::named("broker")))
        .build()
        .await;
    let secret = world.secret("key", "sk-canary-0123456789").await;
    let role = world.role(&[(Action::Operate, ResourceKind::CredentialSource)]).await;
    let configuration = world.configuration(json!({})).await;
    let served = Served::over(world).await;
    let (namespace, sources) = (served.world.namespace, served.path("/credential-sources"));
    let from = json!({ "kind": "secret", "namespaceId": namespace, "id": secret });
    let body = json!({ "name": "model", "type": "openai", "secrets": { "api_key": from } });
    let made = served.json(Method::POST, &sources, &body).await;
    let id = made.data()["id"].clone();
    let body = json!({
        "name": "a",
        "configurationId": configuration,
        "executionMode": "dedicated",
        "harnessAuth": { "method": "credential_source", "sourceId": id },
        "credentialSources": [{ "sourceId": id }],
    });
    let agent = served.json(Method::POST, &served.agents(), &body).await;
    let grant = json!({ "principalId": agent.data()["servicePrincipalId"], "roleId": role.id });
    served
        .json(Method::POST, &served.path("/iam/access-bindings"), &grant)
        .await;
    let agent = format!("{}/{}", served.agents(), agent.data()["id"].as_str().expect("an id"));
    let deployed = served.send(Method::POST, &format!("{agent}/deploy")).await;
    let revision: RevisionId = serde_json::from_value(deployed.data()["id"].clone()).expect("a version");
    // As the worker does.
    let store = &served.world.store;
    let owner = store.revision_owner(namespace, revision).await.expect("a read");
    let select = Write::ActiveRevision(owner.expect("an Agent"), Some(revision));
    let selected = store.commit(Change::new().write(select)).await;
    selected.expect("it is selected");
    let body = json!({ "configurationId": configuration, "harnessAuth": null, "credentialSources": [] });
    served.json(Method::PATCH, &agent, &body).await;
    let id = id.as_str().expect("an id");
    Used {
        source: format!("{sources}/{id}"),
        usage: format!("{agent}/credential-sources/{id}"),
        served,
    }
}

#[tokio::test]
async fn a_withdrawal_is_accepted_once_and_shown_and_the_source_is_kept_meanwhile() {
    let Used { served, source, usage } = used().await;
    let (withdraw, withdrawal) = (format!("{usage}/withdraw"), format!("{usage}/withdrawal"));
    let none = served.send(Method::GET, &withdrawal).await;
    assert_eq!(none.status.as_u16(), 404, "{}", none.body);
    let referenced = served.send(Method::DELETE, &source).await;
    assert_eq!(
        (referenced.status.as_u16(), referenced.code()),
        (409, "RESOURCE_CONFLICT")
    );
    let asked = served.send(Method::POST, &withdraw).await;
    assert_eq!(asked.status.as_u16(), 202, "{}", asked.body);
    let data = asked.data();
    assert_eq!(
        (&data["state"], &data["withdrawalInProgress"]),
        (&json!("pending"), &json!(true))
    );
    assert_eq!(data["requestedBy"], json!(served.world.admin.principal));
    for (method, path, status) in [(Method::POST, &withdraw, 202), (Method::GET, &withdrawal, 200)] {
        let seen = served.send(method, path).await;
        assert_eq!(
            (seen.status.as_u16(), seen.data()),
            (status, asked.data()),
            "{}",
            seen.body
        );
    }
    let kept = served.send(Method::DELETE, &source).await;
    assert_eq!(
        (kept.status.as_u16(), kept.code()),
        (409, "CREDENTIAL_WITHDRAWAL_IN_PROGRESS")
    );
}

#[tokio::test]
async fn a_source_is_registered_used_and_deleted_and_its_credentials_are_nowhere_else() {
    const VALUE: &str = "sk-canary-0123456789";
    let (log, _) = log::captured();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("occ.db");
    let store = Arc::new(SqliteStore::open(&path).await.expect("it opens"));
    let gateway = Arc::new(MediatingGateway::named("broker"));
    let world = World::builder()
        .store(store)
        .harness(PlainHarness::named("plain", &[ExecutionMode::Dedicated]))
        .credential_gateway(Arc::clone(&gateway) as _)
        .build()
        .await;
    let secret = world.secret("key", VALUE).await;
    let served = Served::over(world).await;
    let sources = served.path("/credential-sources");
    let from = json!({ "kind": "secret", "namespaceId": served.world.namespace, "id": secret });
    let body = json!({ "name": "model", "type": "openai", "secrets": { "api_key": from } });
    let mut seen = Vec::new();

    let away: EffectError = Fault::new("reach the broker", FaultKind::Unavailable).into();
    gateway.register.next(Err(away));
    let failed = served.json(Method::POST, &sources, &body).await;
    assert_eq!((failed.status.as_u16(), failed.code()), (503, "DEPENDENCY_UNAVAILABLE"));
    seen.push(failed.body);
    for _ in 0..2 {
        let request = served.request(Method::POST, &sources);
        let request = request.header("idempotency-key", "once").json(&body);
        let made = Seen::of(request.send().await.expect("an answer")).await;
        assert_eq!(made.status.as_u16(), 201, "{}", made.body);
        seen.push(made.body);
    }
    let listed = served.send(Method::GET, &sources).await;
    assert_eq!(listed.data().as_array().map(Vec::len), Some(1), "{}", listed.body);
    let id = listed.data()[0]["id"].as_str().expect("an id").to_owned();
    let source: CredentialSourceId = id.parse().expect("an id");
    assert_eq!(gateway.kept(source), Some(vec![VALUE.to_owned()]));
    let at = format!("{sources}/{id}");
    let read = served.send(Method::GET, &at).await;
    assert_eq!(
        (&read.data()["state"], &read.data()["status"]),
        (&json!("ready"), &json!({ "state": "ready" }))
    );
    let null = served.json(Method::PATCH, &at, &json!({ "secrets": null })).await;
    assert_eq!((null.status.as_u16(), null.code()), (400, "INVALID_REQUEST"));
    let refreshed = served.json(Method::PATCH, &at, &json!({})).await;
    assert_eq!(refreshed.status.as_u16(), 200, "{}", refreshed.body);

    let body = json!({
        "name": "a",
        "configurationId": served.world.configuration(json!({})).await,
        "executionMode": "dedicated",
        "harnessAuth": { "method": "credential_source", "sourceId": id },
        "credentialSources": [{ "sourceId": id }],
    });
    let agent = served.json(Method::POST, &served.agents(), &body).await;
    assert_eq!(
        agent.data()["credentialSources"],
        body["credentialSources"],
        "{}",
        agent.body
    );
    let principal = agent.data()["servicePrincipalId"].clone();
    let agent = format!("{}/{}", served.agents(), agent.data()["id"].as_str().expect("an id"));
    let denied = served.send(Method::POST, &format!("{agent}/deploy")).await;
    assert_eq!(denied.status.as_u16(), 403);
    assert!(
        denied.message().contains(&format!("operate credential_source {id}")),
        "{}",
        denied.body
    );
    // A grant of exactly this source.
    let role = served
        .world
        .role(&[(Action::Operate, ResourceKind::CredentialSource)])
        .await;
    let exact = json!({ "kind": "credential_source", "id": id });
    let grant = json!({ "principalId": principal, "roleId": role.id, "resource": exact });
    let bound = served
        .json(Method::POST, &served.path("/iam/access-bindings"), &grant)
        .await;
    assert_eq!(bound.status.as_u16(), 201, "{}", bound.body);
    let deployed = served.send(Method::POST, &format!("{agent}/deploy")).await;
    assert_eq!(deployed.status.as_u16(), 202, "{}", deployed.body);
    assert_eq!(deployed.data()["credentialSources"], body["credentialSources"]);
    let withdraw = format!("{agent}/credential-sources/{id}/withdraw");
    let early = served.send(Method::POST, &withdraw).await;
    assert_eq!((early.status.as_u16(), early.code()), (409, "RESOURCE_CONFLICT"));
    let kept = served.send(Method::DELETE, &at).await;
    assert_eq!((kept.status.as_u16(), kept.code()), (409, "RESOURCE_CONFLICT"));
    seen.extend([read.body, refreshed.body, deployed.body, kept.body]);

    let mut rows = std::fs::read(&path).expect("the database");
    rows.extend(std::fs::read(path.with_extension("db-wal")).unwrap_or_default());
    let answers: String = seen.iter().map(ToString::to_string).collect();
    for (place, bytes) in [("a row", rows), ("the log", log.bytes()), ("an answer", answers.into())] {
        let found = bytes.windows(VALUE.len()).any(|part| part == VALUE.as_bytes());
        assert!(!found, "{place} holds a credential");
    }
}

//! Service accounts, Presets, Backends, and what an Installation without optional drivers answers.

use std::sync::Arc;

use occ_core::{
    driver::{Action, ResourceKind},
    resource::{Backend, BackendKind},
    store::{BindingsOf, CommitError, Store as _},
};
use occ_test_support::drivers::{OutsideSecrets, World};
use reqwest::Method;
use serde_json::{Value, json};

use crate::served::{Seen, Served, store};

fn source(served: &Served, secret: impl serde::Serialize) -> Value {
    json!({ "kind": "secret", "namespaceId": served.world.namespace, "id": secret })
}

async fn account(served: &Served, body: &Value) -> Seen {
    served.json(Method::POST, &served.path("/service-accounts"), body).await
}

fn id(seen: &Seen) -> String {
    seen.data()["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn a_service_account_shows_what_its_credential_is_and_never_where() {
    let served = Served::new().await;
    let secret = served.world.secret("key", "sk-test-0123456789").await;
    let credential = json!({ "kind": "api_key", "source": source(&served, secret) });
    let seen = account(&served, &json!({ "name": "shared", "credential": credential })).await;
    assert_eq!(seen.status.as_u16(), 201, "{}", seen.body);
    assert_eq!(seen.data()["credential"], json!({ "kind": "api_key" }));
    let path = served.path(&format!("/service-accounts/{}", id(&seen)));
    let credential = json!({ "kind": "oauth_access_token", "source": source(&served, secret) });
    let changed = served
        .json(Method::PATCH, &format!("{path}/credential"), &credential)
        .await;
    assert_eq!(changed.data()["credential"]["kind"], "oauth_access_token");
    let read = served.send(Method::GET, &path).await;
    let listed = served.send(Method::GET, &served.path("/service-accounts")).await;
    assert_eq!(listed.data(), &json!([read.data()]));
    assert!(!read.body.to_string().contains(&secret.to_string()));

    let taken = account(&served, &json!({ "name": "shared" })).await;
    assert_eq!((taken.status.as_u16(), taken.code()), (409, "RESOURCE_CONFLICT"));
    let issued = json!({ "kind": "access_token", "source": source(&served, secret) });
    let refused = account(&served, &json!({ "name": "other", "credential": issued })).await;
    assert_eq!(refused.detail(), ("/credential/kind", "INVALID_VALUE"));

    // The Secret is in use, and says by whom.
    let at = served.path(&format!("/secrets/{secret}"));
    let consumers = served.send(Method::GET, &at).await;
    assert_eq!(consumers.data()["consumers"]["serviceAccounts"], json!([id(&seen)]));
    let kept = served.send(Method::DELETE, &at).await;
    assert!(
        kept.message().contains(&format!("service_account {}", id(&seen))),
        "{}",
        kept.body
    );
    assert_eq!(served.send(Method::DELETE, &path).await.status.as_u16(), 204);
    assert_eq!(served.send(Method::DELETE, &at).await.status.as_u16(), 204);
    assert_eq!(served.send(Method::GET, &path).await.status.as_u16(), 404);
}

#[tokio::test]
async fn a_token_is_issued_by_a_driver_or_not_at_all() {
    let served = Served::new().await;
    let secret = served.world.secret("key", "sk-test-0123456789").await;
    let bare = id(&account(&served, &json!({ "name": "bare" })).await);
    let credential = json!({ "kind": "api_key", "source": source(&served, secret) });
    let full = id(&account(&served, &json!({ "name": "full", "credential": credential })).await);
    for (account, code) in [
        (bare.as_str(), "SERVICE_ACCOUNT_DRIVER_NOT_CONFIGURED"),
        (&full, "RESOURCE_CONFLICT"),
    ] {
        let path = served.path(&format!("/service-accounts/{account}/credentials"));
        let seen = served.json(Method::POST, &path, &json!({})).await;
        assert_eq!((seen.status.as_u16(), seen.code()), (409, code));
    }
    let admin = &served.world.admin.principal;
    served
        .world
        .iam
        .deny(admin, Action::Update, ResourceKind::ServiceAccount);
    let path = served.path("/service-accounts/sa_123e4567-e89b-42d3-a456-426614174000/credentials");
    let seen = served.json(Method::POST, &path, &json!({})).await;
    assert_eq!(seen.code(), "FORBIDDEN", "nobody learns whether it exists");
}

/// An Agent that uses an account without a token; the answer to its deployment.
async fn deploy_with_account(backend: bool) -> Seen {
    let mut builder = World::builder().store(store().await);
    if backend {
        builder = builder.backend(Backend {
            id: "workspace".parse().expect("an id"),
            kind: BackendKind::Chatgpt,
        });
    }
    let served = Served::over(builder.build().await).await;
    let account = id(&account(&served, &json!({ "name": "shared" })).await);
    let configuration = served.world.configuration(json!({})).await;
    let auth = |id: &str| {
        let source = json!({ "kind": "service_account", "namespaceId": served.world.namespace, "id": id });
        json!({ "method": "codex_pat", "source": source })
    };
    let body = |auth: Value| json!({ "name": "a", "configurationId": configuration, "harnessAuth": auth });
    let missing = body(auth("sa_123e4567-e89b-42d3-a456-426614174000"));
    assert_eq!(
        served
            .json(Method::POST, &served.agents(), &missing)
            .await
            .status
            .as_u16(),
        404
    );
    let agent = served.json(Method::POST, &served.agents(), &body(auth(&account))).await;
    assert_eq!(agent.status.as_u16(), 201, "{}", agent.body);
    let kept = served
        .send(Method::DELETE, &served.path(&format!("/service-accounts/{account}")))
        .await;
    assert_eq!((kept.status.as_u16(), kept.code()), (409, "RESOURCE_CONFLICT"));
    served
        .send(Method::POST, &format!("{}/{}/deploy", served.agents(), id(&agent)))
        .await
}

#[tokio::test]
async fn an_account_without_a_token_cannot_be_deployed_with() {
    let seen = deploy_with_account(false).await;
    assert_eq!(
        (seen.status.as_u16(), seen.code()),
        (409, "SERVICE_ACCOUNT_DRIVER_NOT_CONFIGURED")
    );
    let seen = deploy_with_account(true).await;
    assert_eq!((seen.status.as_u16(), seen.code()), (409, "RESOURCE_CONFLICT"));
    assert!(seen.message().contains("no issued access token"), "{}", seen.body);
}

#[tokio::test]
async fn an_agent_is_associated_with_configured_backends_only() {
    let world = World::builder()
        .store(store().await)
        .backend(Backend {
            id: "workspace".parse().expect("an id"),
            kind: BackendKind::Chatgpt,
        })
        .build()
        .await;
    let served = Served::over(world).await;
    let listed = served.send(Method::GET, "/backends").await;
    assert_eq!(listed.data(), &json!([{ "id": "workspace", "type": "chatgpt" }]));
    let configuration = served.world.configuration(json!({})).await;
    let body =
        |name: &str, backend: &str| json!({ "name": name, "configurationId": configuration, "backendId": backend });
    let seen = served
        .json(Method::POST, &served.agents(), &body("a", "workspace"))
        .await;
    assert_eq!(seen.data()["backendId"], "workspace");
    let seen = served.json(Method::POST, &served.agents(), &body("b", "other")).await;
    assert_eq!(seen.status.as_u16(), 404);
    let seen = served.json(Method::POST, &served.agents(), &body("b", "")).await;
    assert_eq!((seen.status.as_u16(), seen.detail().0), (400, "/backendId"));
    let admin = &served.world.admin.principal;
    served
        .world
        .iam
        .deny(admin, Action::Administer, ResourceKind::Installation);
    assert_eq!(served.send(Method::GET, "/backends").await.status.as_u16(), 403);
}

#[tokio::test]
async fn a_preset_is_kept_changed_and_deleted() {
    let served = Served::new().await;
    let presets = served.path("/presets");
    let settings = json!({ "executionMode": "dedicated" });
    let body = json!({ "name": "support", "settings": settings });
    let made = served.json(Method::POST, &presets, &body).await;
    assert_eq!((made.status.as_u16(), &made.data()["settings"]), (201, &settings));
    let path = format!("{presets}/{}", id(&made));
    let changed = served.json(Method::PATCH, &path, &json!({ "name": "triage" })).await;
    assert_eq!(
        (&changed.data()["name"], &changed.data()["settings"]),
        (&json!("triage"), &settings)
    );
    let unknown = json!({ "name": "x", "settings": { "model": "x" } });
    assert_eq!(
        served.json(Method::POST, &presets, &unknown).await.detail(),
        ("/settings/model", "UNKNOWN_FIELD")
    );
    // A custom Preset keeps its Namespace from being deleted.
    let kept = served.send(Method::DELETE, &served.path("")).await;
    assert_eq!(kept.code(), "NAMESPACE_NOT_EMPTY");
    assert!(kept.message().contains("preset pre_"), "{}", kept.body);
    // And an access binding can be confined to it.
    let role = served.world.role(&[(Action::Read, ResourceKind::Preset)]).await;
    let binding = json!({
        "principalId": served.world.admin.principal,
        "roleId": role.id,
        "resource": { "kind": "preset", "id": id(&made) },
    });
    let bound = served
        .json(Method::POST, &served.path("/iam/access-bindings"), &binding)
        .await;
    assert_eq!(bound.status.as_u16(), 201, "{}", bound.body);
    assert_eq!(served.send(Method::DELETE, &path).await.status.as_u16(), 204);
    let store = &served.world.store;
    let bindings = store
        .access_bindings(Some(served.world.namespace), BindingsOf::Namespace)
        .await;
    assert_eq!(bindings.expect("a read"), [], "its exact bindings go with it");
}

#[tokio::test]
async fn without_their_drivers_credential_sources_and_plugins_are_refused_with_their_codes() {
    let served = Served::new().await;
    let sources = served.path("/credential-sources");
    let seen = served
        .json(Method::POST, &sources, &json!({ "name": "a", "type": "openai" }))
        .await;
    assert_eq!(
        (seen.status.as_u16(), seen.code()),
        (409, "CREDENTIAL_GATEWAY_NOT_CONFIGURED")
    );
    assert_eq!(served.send(Method::GET, &sources).await.data(), &json!([]));
    let one = format!("{sources}/cs_123e4567-e89b-42d3-a456-426614174000");
    assert_eq!(served.send(Method::GET, &one).await.status.as_u16(), 404);
    let admin = &served.world.admin.principal;
    served
        .world
        .iam
        .deny(admin, Action::Read, ResourceKind::CredentialSource);
    assert_eq!(served.send(Method::GET, &one).await.status.as_u16(), 403);

    let configuration = served.world.configuration(json!({})).await;
    let body = |plugins: Value| json!({ "name": "a", "configurationId": configuration, "plugins": plugins });
    for (plugins, status, code) in [
        (
            json!({ "calendar@openai": { "enabled": true } }),
            501,
            "NOT_IMPLEMENTED",
        ),
        (json!({ "with space": { "enabled": true } }), 400, "INVALID_REQUEST"),
        (
            json!({ "calendar@openai": { "enabled": true, "other": 1 } }),
            400,
            "INVALID_REQUEST",
        ),
        (json!({ "calendar@openai": {} }), 400, "INVALID_REQUEST"),
        (json!(null), 400, "INVALID_REQUEST"),
        (json!({}), 201, ""),
    ] {
        let seen = served.json(Method::POST, &served.agents(), &body(plugins)).await;
        assert_eq!((seen.status.as_u16(), seen.code()), (status, code), "{}", seen.body);
    }
}

/// A Secret of a driver with a place of its own.
async fn outside() -> (Served, Arc<OutsideSecrets>, String) {
    let vault = Arc::new(OutsideSecrets::named("vault"));
    let world = World::builder()
        .store(store().await)
        .secret(Arc::clone(&vault) as _)
        .build()
        .await;
    let secret = world.secret("key", "sk-test-0123456789").await;
    let served = Served::over(world).await;
    let path = served.path(&format!("/secrets/{secret}"));
    (served, vault, path)
}

#[tokio::test]
async fn a_deletion_that_was_cut_off_is_remembered_and_finished_by_a_repetition() {
    let (served, vault, path) = outside().await;
    vault.set_away(true);
    let cut = served.send(Method::DELETE, &path).await;
    assert_eq!((cut.status.as_u16(), cut.code()), (503, "DEPENDENCY_UNAVAILABLE"));
    let left = served.send(Method::GET, &path).await;
    assert_eq!(left.data()["deleting"], true);
    vault.set_away(false);
    // Nothing new may refer to it, and it takes no new value.
    let configuration = served.world.configuration(json!({})).await;
    let body = json!({
        "name": "a",
        "configurationId": configuration,
        "harnessAuth": { "method": "api_key", "source": left.data()["ref"] },
    });
    let refused = served.json(Method::POST, &served.agents(), &body).await;
    assert_eq!(
        (refused.status.as_u16(), refused.message()),
        (409, "The Secret is being deleted.")
    );
    let refused = served
        .json(Method::PATCH, &path, &json!({ "value": "new-value" }))
        .await;
    assert_eq!(
        (refused.status.as_u16(), refused.message()),
        (409, "The Secret is being deleted.")
    );

    // A crash between the value's end and the record's: the value is gone, the record is not.
    served.world.store.fail(CommitError::Unavailable);
    assert_eq!(served.send(Method::DELETE, &path).await.status.as_u16(), 503);
    assert!(vault.is_empty());
    assert_eq!(served.send(Method::GET, &path).await.data()["deleting"], true);
    assert_eq!(served.send(Method::DELETE, &path).await.status.as_u16(), 204);
    assert_eq!(served.send(Method::GET, &path).await.status.as_u16(), 404);
}

#[tokio::test]
async fn a_reference_that_comes_first_keeps_the_secret_and_its_value() {
    let (served, vault, path) = outside().await;
    let secret = served.send(Method::GET, &path).await.data()["id"].clone();
    let configuration = served.world.configuration(json!({})).await;
    let (plane, admin, namespace) = (
        served.world.plane.clone(),
        served.world.admin.clone(),
        served.world.namespace,
    );
    let agent: occ_core::control::CreateAgent = serde_json::from_value(json!({
        "name": "a",
        "configurationId": configuration,
        "harnessAuth": { "method": "api_key", "source": source(&served, secret) },
    }))
    .expect("a body");
    served.world.store.race(async move {
        plane.create_agent(&admin, namespace, agent).await.expect("an Agent");
    });
    let refused = served.send(Method::DELETE, &path).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (409, "RESOURCE_CONFLICT"));
    assert_eq!(vault.len(), 1);
    assert_eq!(served.send(Method::GET, &path).await.data().get("deleting"), None);
}

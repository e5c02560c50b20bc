//! Requests that name themselves, each of them cut off at each of its commits: the repetition gives the first result.

use std::{collections::BTreeSet, sync::Arc};

use occ_core::resource::ExecutionMode;
use occ_test_support::drivers::{IssuingAccounts, MediatingGateway, PlainHarness, World};
use reqwest::Method;
use serde_json::{Value, json};

use crate::served::{Seen, Served, store};

/// An operation, and how it is asked for.
struct Named {
    id: &'static str,
    path: String,
    /// What is sent, under a name of its own; nothing when the operation takes no body.
    body: Option<fn(&str, &Value) -> Value>,
    /// What the body refers to.
    refers: Value,
    /// Where its results are listed.
    results: String,
}

impl Named {
    async fn ask(&self, served: &Served, key: &str) -> Seen {
        let mut request = served.request(Method::POST, &self.path).header("idempotency-key", key);
        if let Some(body) = self.body {
            request = request.json(&body(key, &self.refers));
        }
        Seen::of(request.send().await.expect("an answer")).await
    }

    async fn results(&self, served: &Served) -> usize {
        let seen = served.send(Method::GET, &self.results).await;
        seen.data().as_array().expect("a list").len()
    }

    /// Cuts the request off at one commit after the other, until it has no further one. Each time it is done once.
    async fn is_done_once(&self, served: &Served) {
        let store = &served.world.store;
        for commit in 0.. {
            let case = format!("{} at its commit {commit}", self.id);
            let key = format!("{}-{commit}", self.id);
            let before = self.results(served).await;
            (0..commit).for_each(|_| store.race(async {}));
            store.lose_answer();
            let cut = self.ask(served, &key).await;
            if store.let_be() > 0 {
                assert!(cut.status.is_success() && commit > 0, "{case}: {}", cut.body);
                return;
            }
            assert_eq!(
                (cut.status.as_u16(), cut.code()),
                (503, "DEPENDENCY_UNAVAILABLE"),
                "{case}"
            );
            assert!(
                cut.message().starts_with("The outcome is not known"),
                "{case}: {}",
                cut.body
            );
            let first = self.ask(served, &key).await;
            assert!(first.status.is_success(), "{case}: {}", first.body);
            let again = self.ask(served, &key).await;
            assert_eq!((again.status, again.data()), (first.status, first.data()), "{case}");
            assert_eq!(self.results(served).await, before + 1, "{case}: once");
        }
    }
}

async fn plain() -> (Served, Vec<Named>) {
    let world = World::builder()
        .store(store().await)
        .service_account(Arc::new(IssuingAccounts::named("accounts")))
        .build()
        .await;
    let configuration = world.configuration(json!({})).await;
    let agent = world.deployable("agent").await.id;
    let served = Served::over(world).await;
    let agent = served.path(&format!("/agents/{agent}"));
    let revision = served.send(Method::POST, &format!("{agent}/deploy")).await;
    let revision = revision.data()["id"].as_str().expect("an id").to_owned();
    let creation = |id, path: String, body| Named {
        id,
        results: path.clone(),
        path,
        body: Some(body),
        refers: json!(configuration),
    };
    let deployment = |id, path| Named {
        id,
        path,
        body: None,
        refers: Value::Null,
        results: format!("{agent}/revisions"),
    };
    let named = vec![
        creation(
            "createNamespace",
            "/namespaces".to_owned(),
            |name, _| json!({ "name": name }),
        ),
        creation(
            "createConfiguration",
            served.path("/configurations"),
            |name, _| json!({ "kind": "agent", "values": { "name": name } }),
        ),
        creation(
            "createSecret",
            served.path("/secrets"),
            |name, _| json!({ "name": name, "value": "sk-test-0123456789" }),
        ),
        creation(
            "createServiceAccount",
            served.path("/service-accounts"),
            |name, _| json!({ "name": name }),
        ),
        creation(
            "createPreset",
            served.path("/presets"),
            |name, _| json!({ "name": name, "settings": {} }),
        ),
        creation(
            "createAgent",
            served.agents(),
            |name, configuration| json!({ "name": name, "configurationId": configuration }),
        ),
        deployment("deployAgent", format!("{agent}/deploy")),
        deployment(
            "redeployAgentRevision",
            format!("{agent}/revisions/{revision}/redeploy"),
        ),
    ];
    (served, named)
}

async fn mediated() -> (Served, Vec<Named>) {
    let world = World::builder()
        .store(store().await)
        .harness(PlainHarness::named("plain", &[ExecutionMode::Dedicated]))
        .credential_gateway(Arc::new(MediatingGateway::named("broker")))
        .build()
        .await;
    let secret = world.secret("key", "sk-test-0123456789").await;
    let served = Served::over(world).await;
    let path = served.path("/credential-sources");
    let source = Named {
        id: "registerCredentialSource",
        results: path.clone(),
        path,
        body: Some(|name, from| json!({ "name": name, "type": "openai", "secrets": { "api_key": from } })),
        refers: json!({ "kind": "secret", "namespaceId": served.world.namespace, "id": secret }),
    };
    (served, vec![source])
}

#[tokio::test]
async fn whatever_names_itself_is_done_once_wherever_its_answer_is_lost() {
    let document = occ_api::openapi();
    let operations = document["paths"].as_object().expect("paths").values();
    let operations = operations.flat_map(|methods| methods.as_object().expect("methods").values());
    let takes_a_key = |operation: &&Value| {
        let parameters = operation["parameters"].as_array();
        parameters
            .into_iter()
            .flatten()
            .any(|one| one["name"] == "Idempotency-Key")
    };
    let mut left: BTreeSet<_> = operations
        .filter(takes_a_key)
        .map(|operation| operation["operationId"].as_str().expect("an id"))
        .collect();
    for (served, named) in [plain().await, mediated().await] {
        for operation in &named {
            operation.is_done_once(&served).await;
            assert!(left.remove(operation.id), "{}", operation.id);
        }
    }
    // An account has one token: each case needs an account of its own.
    assert!(left.remove("issueServiceAccountCredential"));
    assert_eq!(left, BTreeSet::new());
}

#[tokio::test]
async fn a_token_is_issued_once_wherever_the_answer_is_lost() {
    let provider = Arc::new(IssuingAccounts::named("accounts"));
    let world = World::builder()
        .store(store().await)
        .service_account(Arc::clone(&provider) as _);
    let served = Served::over(world.build().await).await;
    let accounts = served.path("/service-accounts");
    for commit in 0.. {
        let made = served
            .json(Method::POST, &accounts, &json!({ "name": format!("a{commit}") }))
            .await;
        let account = made.data()["id"].as_str().expect("an id").to_owned();
        let path = format!("{accounts}/{account}/credentials");
        let ask = async || {
            let request = served.request(Method::POST, &path);
            let request = request.header("idempotency-key", &account).json(&json!({}));
            Seen::of(request.send().await.expect("an answer")).await
        };
        let store = &served.world.store;
        (0..commit).for_each(|_| store.race(async {}));
        store.lose_answer();
        let cut = ask().await;
        if store.let_be() > 0 {
            assert!(cut.status.is_success() && commit > 1, "{}", cut.body);
            return;
        }
        assert_eq!(cut.status.as_u16(), 503, "{}", cut.body);
        let first = ask().await;
        assert_eq!(first.status.as_u16(), 201, "{}", first.body);
        assert_eq!(ask().await.data(), first.data());
        let tokens = provider.tokens(account.parse().expect("an id"));
        assert_eq!(tokens.map(|tokens| tokens.len()), Some(1), "at its commit {commit}");
    }
}

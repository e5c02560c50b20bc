//! Tokens that a driver issues, over HTTP: once, and shown to nobody.

use std::sync::Arc;

use occ_core::{
    driver::{EffectError, Fault, FaultKind},
    id::ServiceAccountId,
    resource::ExecutionMode,
    store::sqlite::SqliteStore,
};
use occ_test_support::drivers::{IssuingAccounts, PlainHarness, World};
use reqwest::Method;
use serde_json::json;

use crate::{
    log,
    served::{Seen, Served},
};

#[tokio::test]
async fn a_token_is_issued_once_and_its_value_is_in_no_row_log_error_or_answer() {
    let (log, _) = log::captured();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("occ.db");
    let store = Arc::new(SqliteStore::open(&path).await.expect("it opens"));
    let provider = Arc::new(IssuingAccounts::named("accounts"));
    let world = World::builder()
        .store(store)
        .harness(PlainHarness::named("plain", &[ExecutionMode::Dedicated]))
        .service_account(Arc::clone(&provider) as _)
        .build()
        .await;
    let served = Served::over(world).await;
    let accounts = served.path("/service-accounts");
    let made = served.json(Method::POST, &accounts, &json!({ "name": "shared" })).await;
    let id = made.data()["id"].as_str().expect("an id").to_owned();
    let account: ServiceAccountId = id.parse().expect("an id");
    let at = format!("{accounts}/{id}");
    let credentials = format!("{at}/credentials");
    let mut seen = Vec::new();

    // A provider that fails after it issued the token.
    let away: EffectError = Fault::new("read the answer", FaultKind::Protocol).into();
    provider.issued.next(Err(away));
    let failed = served.json(Method::POST, &credentials, &json!({})).await;
    assert_eq!((failed.status.as_u16(), failed.code()), (503, "DEPENDENCY_UNAVAILABLE"));
    assert_eq!(provider.tokens(account), Some(Vec::new()), "nothing is left of it");
    seen.push(failed.body);

    // The answer was lost: the same request again.
    for _ in 0..2 {
        let request = served.request(Method::POST, &credentials);
        let request = request.header("idempotency-key", "once").json(&json!({}));
        let issued = Seen::of(request.send().await.expect("an answer")).await;
        assert_eq!(issued.status.as_u16(), 201, "{}", issued.body);
        assert_eq!(issued.data()["credential"], json!({ "kind": "access_token" }));
        seen.push(issued.body);
    }
    assert_eq!(provider.tokens(account).map(|tokens| tokens.len()), Some(1));
    let again = served.json(Method::POST, &credentials, &json!({})).await;
    assert_eq!((again.status.as_u16(), again.code()), (409, "RESOURCE_CONFLICT"));

    let source = json!({ "kind": "service_account", "namespaceId": served.world.namespace, "id": id });
    let body = json!({
        "name": "a",
        "configurationId": served.world.configuration(json!({})).await,
        "executionMode": "dedicated",
        "backendId": "chatgpt",
        "harnessAuth": { "method": "codex_pat", "source": source },
    });
    let agent = served.json(Method::POST, &served.agents(), &body).await;
    let agent = format!("{}/{}", served.agents(), agent.data()["id"].as_str().expect("an id"));
    let deployed = served.send(Method::POST, &format!("{agent}/deploy")).await;
    assert_eq!(deployed.status.as_u16(), 202, "{}", deployed.body);
    assert_eq!(deployed.data()["harnessAuth"], body["harnessAuth"]);
    for private in ["provider-", "\"driverId\"", "\"tokens\""] {
        assert!(!deployed.body.to_string().contains(private), "{}", deployed.body);
    }
    let kept = served.send(Method::DELETE, &at).await;
    assert_eq!((kept.status.as_u16(), kept.code()), (409, "RESOURCE_CONFLICT"));
    for path in [&at, &served.path("/secrets"), "/installation/audit"] {
        seen.push(served.send(Method::GET, path).await.body);
    }
    seen.extend([again.body, deployed.body, kept.body]);

    let mut rows = std::fs::read(&path).expect("the database");
    rows.extend(std::fs::read(path.with_extension("db-wal")).unwrap_or_default());
    let answers: String = seen.iter().map(ToString::to_string).collect();
    for (place, bytes) in [("a row", rows), ("the log", log.bytes()), ("an answer", answers.into())] {
        let found = bytes.windows(13).any(|part| part == b"canary-token-");
        assert!(!found, "{place} holds a token");
    }
}

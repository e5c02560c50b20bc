//! Waiting for deployments, watching them, repeating an earlier version, and callers that are gone.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use occ_core::{
    driver::{Action, ResourceKind},
    reason::Success,
    store::{Change, Store as _, Write},
    work::{Lease, Transition},
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::served::{Seen, Served};

const LEASE: Lease = Lease {
    duration: Duration::from_hours(1),
    max_attempts: 5,
};

/// A deployed Agent: its path, and that of its deployment.
async fn deployed(served: &Served) -> (String, String) {
    let agent = served.world.deployable("a").await;
    let path = served.path(&format!("/agents/{}", agent.id));
    let seen = served.send(Method::POST, &format!("{path}/deploy")).await;
    let id = seen.data()["id"].as_str().expect("a version");
    let deployment = format!("{path}/deployments/{id}");
    (path, deployment)
}

/// What a worker does, without a Compute.
async fn finish(served: &Served) {
    let store = &served.world.store;
    loop {
        let claims = store.claim(10, LEASE).await.expect("a claim");
        if claims.is_empty() {
            return;
        }
        for claim in claims {
            let done = Transition::Complete {
                code: Success::RevisionActivated,
                warnings: Vec::new(),
            };
            let change = Change::new().write(Write::Settle(claim.token, done));
            store.commit(change).await.expect("it is settled");
        }
    }
}

#[tokio::test]
async fn a_reader_may_wait_for_the_end_of_a_deployment() {
    let served = Served::new().await;
    let (_, deployment) = deployed(&served).await;
    let waiting = format!("{deployment}?wait=60s");
    let (seen, ()) = tokio::join!(served.send(Method::GET, &waiting), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        finish(&served).await;
    });
    assert_eq!(seen.data()["status"], "succeeded", "{}", seen.body);
    let at_once = served.send(Method::GET, &waiting).await;
    assert_eq!(at_once.data(), seen.data(), "what is over is answered at once");
    for nonsense in ["0s", "61s", "10", "s", "-1s", "1m", "+5s"] {
        let refused = served.send(Method::GET, &format!("{deployment}?wait={nonsense}")).await;
        assert_eq!(refused.code(), "INVALID_REQUEST", "{nonsense}");
    }
}

#[tokio::test]
async fn a_reader_whose_time_is_up_sees_how_far_it_is() {
    let served = Served::new().await;
    let (_, deployment) = deployed(&served).await;
    let seen = served.send(Method::GET, &format!("{deployment}?wait=1s")).await;
    assert_eq!((seen.status.as_u16(), &seen.data()["status"]), (200, &json!("queued")));
}

#[tokio::test]
async fn a_watcher_sees_each_change_and_then_the_end() {
    let served = Served::new().await;
    let (_, deployment) = deployed(&served).await;
    let mut response = served
        .request(Method::GET, &format!("{deployment}/events"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-store");
    let mut text = String::new();
    while !text.contains("\n\n") {
        let chunk = response.chunk().await.expect("it goes on").expect("not over");
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(text.contains("\"status\":\"queued\""), "{text}");
    finish(&served).await;
    while let Some(chunk) = response.chunk().await.expect("it goes on") {
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
    let last: Value = serde_json::from_str(last.expect("an event")).expect("JSON");
    assert_eq!(last["status"], "succeeded");

    let world = &served.world;
    world
        .iam
        .deny(&world.admin.principal, Action::Read, ResourceKind::AgentRevision);
    let refused = served.send(Method::GET, &format!("{deployment}/events")).await;
    assert_eq!(refused.code(), "FORBIDDEN", "a refusal has the usual envelope");
}

#[tokio::test]
async fn there_are_so_many_places_for_readers_that_wait_and_one_that_is_left_is_free() {
    let served = Served::with(occ_api::Access {
        listeners: 1,
        ..occ_api::Access::default()
    })
    .await;
    let (_, deployment) = deployed(&served).await;
    let events = format!("{deployment}/events");
    let watch = || served.request(Method::GET, &events).send();
    let mut first = watch().await.expect("an answer");
    assert_eq!(first.status().as_u16(), 200);
    assert!(first.chunk().await.expect("it goes on").is_some());
    let refused = served.send(Method::GET, &events).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code()),
        (503, "DEPENDENCY_UNAVAILABLE")
    );
    assert!(
        refused.message().starts_with("Too many readers wait"),
        "{}",
        refused.body
    );
    let asked = std::time::Instant::now();
    let at_once = served.send(Method::GET, &format!("{deployment}?wait=60s")).await;
    assert_eq!(at_once.data()["status"], "queued", "told how far it is");
    assert!(asked.elapsed() < Duration::from_secs(50), "it did not wait");
    drop(first);
    while watch().await.expect("an answer").status().as_u16() != 200 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_earlier_version_is_repeated_as_a_new_one() {
    let served = Served::new().await;
    let (agent, _) = deployed(&served).await;
    let revisions = format!("{agent}/revisions");
    let first = served.send(Method::GET, &revisions).await.data()[0].clone();
    let configuration = first["configurationId"].as_str().expect("an id");
    let configuration = served.path(&format!("/configurations/{configuration}"));
    served
        .json(Method::PATCH, &configuration, &json!({ "values": { "tls": true } }))
        .await;
    let second = served.send(Method::POST, &format!("{agent}/deploy")).await;
    assert_eq!(second.data()["configuration"], json!({ "tls": true }));
    let draft = served.send(Method::GET, &agent).await;

    let again = format!("{revisions}/{}/redeploy", first["id"].as_str().expect("an id"));
    let third = served.send(Method::POST, &again).await;
    assert_eq!(third.status.as_u16(), 202, "{}", third.body);
    assert_eq!(
        (&third.data()["revision"], third.data()["id"] == first["id"]),
        (&json!(3), false)
    );
    for kept in [
        "configuration",
        "configurationGeneration",
        "harness",
        "harnessAuth",
        "digest",
    ] {
        assert_eq!(third.data()[kept], first[kept], "{kept}");
    }
    let listed = served.send(Method::GET, &revisions).await;
    assert_eq!(listed.data()[0], first, "the earlier version stays as it was");
    for field in ["configurationId", "harnessAuth", "executionMode"] {
        assert_eq!(
            served.send(Method::GET, &agent).await.data()[field],
            draft.data()[field],
            "{field}"
        );
    }

    // It is admitted anew, under the policy and the Compute of now.
    let world = &served.world;
    let principal = serde_json::from_value(draft.data()["servicePrincipalId"].clone()).expect("an id");
    world.iam.deny(&principal, Action::Operate, ResourceKind::Secret);
    let refused = served.send(Method::POST, &again).await;
    assert_eq!(refused.status.as_u16(), 403);
    assert!(
        refused.message().starts_with("The Agent service principal"),
        "{}",
        refused.body
    );
    world.iam.relent();
    world
        .iam
        .deny(&world.admin.principal, Action::Read, ResourceKind::AgentRevision);
    assert_eq!(served.send(Method::POST, &again).await.code(), "FORBIDDEN");
    world.iam.relent();
    let missing = format!("{revisions}/rev_123e4567-e89b-42d3-a456-426614174000/redeploy");
    assert_eq!(served.send(Method::POST, &missing).await.code(), "NOT_FOUND");
}

#[tokio::test]
async fn what_a_caller_asked_for_is_done_although_the_caller_is_gone() {
    let served = Served::new().await;
    let (reached, go) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
    served.world.store.race({
        let (reached, go) = (Arc::clone(&reached), Arc::clone(&go));
        async move {
            reached.store(true, Ordering::Relaxed);
            go.notified().await;
        }
    });
    let body = r#"{"name":"another"}"#;
    let request = format!(
        "POST /namespaces HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        served.key,
        body.len(),
    );
    let mut stream = TcpStream::connect(served.address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    while !reached.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(stream);
    // The server has noticed by the time that it has answered others.
    for _ in 0..20 {
        served.send(Method::GET, "/healthz").await;
    }
    go.notify_one();
    let mut names: Vec<Value> = Vec::new();
    while names.len() < 2 {
        let listed: Seen = served.send(Method::GET, "/namespaces").await;
        names = listed
            .data()
            .as_array()
            .expect("a list")
            .iter()
            .map(|n| n["name"].clone())
            .collect();
    }
    assert_eq!(names, ["default", "another"]);
}

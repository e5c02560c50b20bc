//! Files of a live workspace: who may see and change them, within which limits, and what is recorded.

use occ_core::{
    driver::{Action, EffectError, Fault, FaultKind, ResourceKind},
    id::RevisionId,
    resource::{Agent, AgentStatus, DesiredRuntimeState},
    store::{Change, CommitError, Store as _, Write},
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::served::{Seen, Served};

struct Live {
    served: Served,
    agent: Agent,
    path: String,
}

impl Live {
    /// An Agent whose version is selected.
    async fn new() -> Self {
        let served = Served::new().await;
        let agent = served.world.deployable("a").await;
        let seen = served
            .send(Method::POST, &served.path(&format!("/agents/{}/deploy", agent.id)))
            .await;
        let revision: RevisionId = serde_json::from_value(seen.data()["id"].clone()).expect("an id");
        let select = Change::new().write(Write::ActiveRevision(agent.id, Some(revision)));
        served.world.store.commit(select).await.expect("it is selected");
        let path = served.path(&format!("/agents/{}/workspace/files", agent.id));
        served.world.store.take_audit();
        Self { served, agent, path }
    }

    async fn put(&self, name: &str, content: impl Into<Value>) -> Seen {
        let body = json!({ "content": content.into() });
        self.served
            .json(Method::PUT, &format!("{}/{name}", self.path), &body)
            .await
    }

    async fn get(&self, name: &str) -> Seen {
        self.served.send(Method::GET, &format!("{}/{name}", self.path)).await
    }

    async fn change(&self, change: impl FnOnce(&mut Agent)) {
        let store = &self.served.world.store;
        let row = store.agent(self.agent.namespace_id, self.agent.id).await;
        let mut agent = row.expect("a read").expect("an Agent").agent;
        change(&mut agent);
        store
            .commit(Change::new().write(Write::UpdateAgent(agent)))
            .await
            .expect("a change");
    }
}

#[tokio::test]
async fn a_file_is_written_read_and_recorded_without_its_content() {
    let live = Live::new().await;
    assert_eq!(live.get("AGENTS.md").await.status.as_u16(), 404);
    let written = live.put("AGENTS.md", "canary ✓\n").await;
    assert_eq!(
        written.data(),
        &json!({ "name": "AGENTS.md", "size": 11 }),
        "{}",
        written.body
    );
    let read = live.get("AGENTS.md").await;
    assert_eq!(read.data(), &json!({ "name": "AGENTS.md", "content": "canary ✓\n" }));
    let audit = live.served.world.store.take_audit();
    assert_eq!(audit.len(), 1, "reads are not recorded");
    assert_eq!(audit[0].action, "openclaw.agents.workspace.files.write");
    assert_eq!(audit[0].details["file"], "AGENTS.md");
    assert!(!serde_json::to_string(&audit).expect("JSON").contains("canary"));
}

#[tokio::test]
async fn contents_and_bodies_have_their_limits() {
    let live = Live::new().await;
    assert_eq!(live.put("AGENTS.md", "x".repeat(16 * 1024)).await.status.as_u16(), 200);
    let long = live.put("AGENTS.md", "é".repeat(8 * 1024 + 1)).await;
    assert_eq!((long.status.as_u16(), long.detail()), (400, ("/content", "TOO_LONG")));
    // 16 KiB written entirely in six-byte escapes fit; more than 97 KiB do not.
    let path = format!("{}/AGENTS.md", live.path);
    let escaped = format!("{{\"content\":\"{}\"}}", "\\u0041".repeat(16 * 1024));
    assert!(escaped.len() > 96 * 1024);
    assert_eq!(live.served.text(Method::PUT, &path, escaped).await.status.as_u16(), 200);
    let large = format!("{{\"content\":\"{}\"}}", "x".repeat(97 * 1024));
    assert_eq!(
        live.served.text(Method::PUT, &path, large).await.code(),
        "PAYLOAD_TOO_LARGE"
    );
    for name in ["OTHER.md", "agents.md", "..%2fAGENTS.md", "%00"] {
        assert_eq!(live.put(name, "x").await.status.as_u16(), 400, "{name}");
    }
    let extra = json!({ "content": "x", "mode": 1 });
    assert_eq!(
        live.served.json(Method::PUT, &path, &extra).await.detail(),
        ("/mode", "UNKNOWN_FIELD")
    );
}

#[tokio::test]
async fn a_write_needs_an_agent_that_runs() {
    let live = Live::new().await;
    live.change(|agent| agent.desired_runtime_state = DesiredRuntimeState::Stopped)
        .await;
    let stopping = live.put("AGENTS.md", "x").await;
    assert_eq!((stopping.status.as_u16(), stopping.code()), (409, "RESOURCE_CONFLICT"));
    assert_eq!(
        live.get("AGENTS.md").await.status.as_u16(),
        404,
        "a read looks all the same"
    );
    live.change(|agent| agent.status = AgentStatus::Deleting).await;
    assert_eq!(live.put("AGENTS.md", "x").await.code(), "AGENT_DELETING");
    let other = live.served.world.deployable("b").await;
    let path = live
        .served
        .path(&format!("/agents/{}/workspace/files/AGENTS.md", other.id));
    let none = live.served.send(Method::GET, &path).await;
    assert_eq!((none.status.as_u16(), none.code()), (503, "DEPENDENCY_UNAVAILABLE"));
}

#[tokio::test]
async fn what_became_of_a_write_is_said_and_recorded() {
    let live = Live::new().await;
    let world = &live.served.world;
    let away = Fault::new("reach the gateway", FaultKind::Unavailable);
    for (error, status, code, reason) in [
        (EffectError::UnknownOutcome, 503, "UNKNOWN_OUTCOME", "UNKNOWN_OUTCOME"),
        (away.into(), 503, "DEPENDENCY_UNAVAILABLE", "DEPENDENCY_UNAVAILABLE"),
    ] {
        world.compute.write_file.next(Err(error));
        let seen = live.put("SOUL.md", "x").await;
        assert_eq!((seen.status.as_u16(), seen.code()), (status, code));
        let audit = world.store.take_audit();
        assert_eq!(audit[0].reason_code.as_deref(), Some(reason));
        assert_eq!(audit[0].details["file"], "SOUL.md");
    }
    world.store.fail(CommitError::Unavailable);
    let unrecorded = live.put("SOUL.md", "x").await;
    assert_eq!(
        (unrecorded.status.as_u16(), unrecorded.code()),
        (503, "UNKNOWN_OUTCOME")
    );
    assert_eq!(
        live.get("SOUL.md").await.data()["content"],
        "x",
        "it may have been done"
    );
}

#[tokio::test]
async fn reading_and_writing_are_permissions_of_their_own() {
    let live = Live::new().await;
    let world = &live.served.world;
    world
        .iam
        .deny(&world.admin.principal, Action::Operate, ResourceKind::Agent);
    assert_eq!(live.put("USER.md", "x").await.code(), "FORBIDDEN");
    assert_eq!(live.get("USER.md").await.code(), "NOT_FOUND");
    world.iam.relent();
    world
        .iam
        .deny(&world.admin.principal, Action::Read, ResourceKind::Agent);
    assert_eq!(live.get("USER.md").await.code(), "FORBIDDEN");
}

//! What a case of the tables is played on, and its requests.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use occ_core::{
    driver::{Action, ResourceKind, ResourceRef},
    id::{AgentId, ConfigurationId, NamespaceId, SecretId},
    resource::{Agent, ExecutionMode, NamespaceStatus},
    store::{Change, Store, Write},
};
use occ_test_support::drivers::{OutsideSecrets, PlainHarness, PlainSandbox, World};
use reqwest::Method;
use serde_json::{Value, json};

use crate::served::{Seen, Served};

const DEFAULTS: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// One control plane for a whole table; each case has resources of its own.
pub struct Stage {
    pub served: Served,
    pub vault: Arc<OutsideSecrets>,
    number: AtomicU32,
    role: String,
}

impl Stage {
    /// Over this store, which is empty.
    pub async fn over(store: Arc<dyn Store>) -> Self {
        let vault = Arc::new(OutsideSecrets::named("secret-now"));
        let world = World::builder()
            .store(store)
            .secret(Arc::clone(&vault) as _)
            .sandbox(PlainSandbox::with(|mut document| {
                if document.contains_key("confined") {
                    document.insert("harness".to_owned(), json!("embedded-only"));
                }
                Ok(document)
            }))
            .harness(PlainHarness::named("plain", &[ExecutionMode::Dedicated]).with_defaults(DEFAULTS))
            .harness(PlainHarness::named("embedded-only", &[ExecutionMode::Embedded]))
            .build()
            .await;
        let role = world.role(&[(Action::Operate, ResourceKind::Secret)]).await.id;
        Self {
            served: Served::over(world).await,
            vault,
            number: AtomicU32::new(0),
            role,
        }
    }

    pub async fn relent(&self) {
        let world = &self.served.world;
        world.iam.relent();
        world.compute.reject_auth(None);
        world.compute.reject_settings(None);
        world.set_namespace(world.namespace, NamespaceStatus::Ready).await;
    }
}

/// One case.
pub struct Scene<'a> {
    pub stage: &'a Stage,
    number: u32,
    pub namespace: NamespaceId,
    pub agent_id: AgentId,
    pub agent: Agent,
    /// The Secret that the Agent names, the one that a request names, and the one that the Configuration binds.
    pub key: SecretId,
    pub other: SecretId,
    pub bound: SecretId,
    pub configuration: ConfigurationId,
    pub body: Value,
}

impl<'a> Scene<'a> {
    pub async fn new(stage: &'a Stage) -> Self {
        let number = stage.number.fetch_add(1, Ordering::Relaxed);
        let (served, world) = (&stage.served, &stage.served.world);
        let mut secrets = Vec::new();
        for called in ["key", "other", "bound"] {
            secrets.push(world.secret(&format!("{called}-{number}"), "sk-test-0123456789").await);
        }
        let (key, other, bound) = (secrets[0], secrets[1], secrets[2]);
        let source = |id: SecretId| json!({ "kind": "secret", "namespaceId": world.namespace, "id": id });
        let configuration = json!({
            "kind": "agent",
            "values": {},
            "secretBindings": { "SLACK_BOT_TOKEN": { "source": source(bound) } },
        });
        let seen = served
            .json(Method::POST, &served.path("/configurations"), &configuration)
            .await;
        let configuration: ConfigurationId = serde_json::from_value(seen.data()["id"].clone()).expect("an id");
        let agent = json!({
            "name": format!("agent-{number}"),
            "configurationId": configuration,
            "executionMode": "dedicated",
            "harnessAuth": { "method": "api_key", "source": source(key) },
        });
        let seen = served.json(Method::POST, &served.agents(), &agent).await;
        let agent: Agent = serde_json::from_value(seen.data().clone()).expect("an Agent");
        let binding = json!({ "principalId": agent.service_principal_id, "roleId": stage.role });
        let seen = served
            .json(Method::POST, &served.path("/iam/access-bindings"), &binding)
            .await;
        assert_eq!(seen.status.as_u16(), 201, "{}", seen.body);
        let body = json!({
            "configurationId": configuration,
            "executionMode": "dedicated",
            "harnessAuth": { "method": "api_key", "source": source(other) },
        });
        Self {
            stage,
            number,
            namespace: world.namespace,
            agent_id: agent.id,
            agent,
            key,
            other,
            bound,
            configuration,
            body,
        }
    }

    pub fn world(&self) -> &World {
        &self.stage.served.world
    }

    pub async fn change(&self, change: impl FnOnce(&mut Agent)) {
        let world = self.world();
        let row = world.store.agent(world.namespace, self.agent.id).await;
        let mut agent = row.expect("a read").expect("an Agent").agent;
        change(&mut agent);
        let change = Change::new().write(Write::UpdateAgent(agent));
        world.store.commit(change).await.expect("a change of the Agent");
    }

    /// As if another driver had stored the value, before the Installation selected the present one.
    pub async fn disown(&self, id: SecretId) {
        let world = self.world();
        let row = world.store.secret(world.namespace, id).await;
        let mut secret = row.expect("a read").expect("a Secret");
        "secret-of-yesterday".clone_into(&mut secret.driver_id);
        secret.version += 1;
        let change = Change::new().write(Write::UpdateSecret(secret));
        world.store.commit(change).await.expect("a change of the Secret");
    }

    pub fn deny(&self, action: Action, kind: ResourceKind) {
        let world = self.world();
        world.iam.deny(&world.admin.principal, action, kind);
    }

    pub fn deny_secret(&self, id: SecretId) {
        let world = self.world();
        let resource = ResourceRef::secret(world.namespace, id);
        world
            .iam
            .deny_exactly(&world.admin.principal, Action::Operate, resource);
    }

    /// Whether a request names an authentication.
    pub fn is_draft(&self) -> bool {
        self.body.get("draft").is_some()
    }

    pub async fn deploy(&self) -> Seen {
        let path = format!("/namespaces/{}/agents/{}/deploy", self.namespace, self.agent_id);
        self.stage.served.send(Method::POST, &path).await
    }

    pub async fn create(&self) -> Seen {
        let mut body = self.body.clone();
        if let Some(object) = body.as_object_mut() {
            object.remove("draft");
            object
                .entry("name")
                .or_insert_with(|| json!(format!("new-{}", self.number)));
        }
        let path = format!("/namespaces/{}/agents", self.namespace);
        self.stage.served.json(Method::POST, &path, &body).await
    }

    pub async fn update(&self) -> Seen {
        let mut body = self.body.clone();
        if let Some(object) = body.as_object_mut() {
            object.remove("draft");
        }
        let path = format!("/namespaces/{}/agents/{}", self.namespace, self.agent_id);
        self.stage.served.json(Method::PATCH, &path, &body).await
    }
}

//! Credential sources and the gateway that mediates them (spec/engine 1.8, spec/contracts 11).

mod refreshing;
mod registering;
mod repeating;
mod using;
mod withdrawing;

use std::{sync::Arc, time::Duration};

use occ_core::{
    admission::Refusal,
    control::{CredentialSourceView, RegisterCredentialSource, RevisionView, UpdateCredentialSource},
    driver::{Action, EffectError, Fault, FaultKind, ResourceKind},
    id::{AgentId, CredentialSourceId, RevisionId, SecretId},
    reason::{ApiCode, Failure},
    resource::{CredentialSource, ExecutionMode, OwnedKind, PrincipalId},
    status::Deployment,
    store::{Change, Slice, Store as _, Write},
    time::Timestamp,
    work::Policy,
    worker::{Worker, WorkerHandle},
};
use occ_test_support::drivers::{MediatingGateway, PlainHarness, World};
use serde_json::{Value, json};

const VALUE: &str = "sk-canary-0123456789";

struct Scene {
    world: World,
    gateway: Arc<MediatingGateway>,
    secret: SecretId,
}

async fn scene() -> Scene {
    let gateway = Arc::new(MediatingGateway::named("broker"));
    let world = World::builder()
        .harness(PlainHarness::named("plain", &[ExecutionMode::Dedicated]))
        .credential_gateway(Arc::clone(&gateway) as _)
        .build()
        .await;
    let secret = world.secret("key", VALUE).await;
    Scene { world, gateway, secret }
}

fn away() -> EffectError {
    Fault::new("reach the broker", FaultKind::Unavailable).into()
}

fn is(refusal: &Refusal, code: ApiCode, beginning: &str) {
    assert_eq!(refusal.code(), code, "{refusal}");
    assert!(refusal.message().starts_with(beginning), "{refusal}");
}

impl Scene {
    fn body(&self, name: &str, kind: &str, field: &str, config: &Value) -> Value {
        let from = self.from(self.secret);
        json!({ "name": name, "type": kind, "config": config, "secrets": { field: from } })
    }

    /// As a request names a Secret.
    fn from(&self, secret: SecretId) -> Value {
        json!({ "kind": "secret", "namespaceId": self.world.namespace, "id": secret })
    }

    async fn register(&self, body: Value) -> Result<CredentialSourceView, Refusal> {
        let world = &self.world;
        let input: RegisterCredentialSource = serde_json::from_value(body).unwrap();
        world
            .plane
            .register_credential_source(&world.admin, world.namespace, input)
            .await
    }

    /// A model credential.
    async fn model(&self) -> CredentialSourceId {
        let made = self.register(self.body("model", "openai", "api_key", &json!({}))).await;
        made.unwrap().id
    }

    /// A credential of something else, in this variable.
    async fn bearer(&self, name: &str, variable: &str) -> CredentialSourceId {
        let body = self.body(name, "bearer-token", "token", &json!({ "host": variable }));
        self.register(body).await.unwrap().id
    }

    async fn row(&self, id: CredentialSourceId) -> Option<CredentialSource> {
        let world = &self.world;
        let id = id.to_string();
        let row = world
            .store
            .owned(world.namespace, OwnedKind::CredentialSource, &id)
            .await;
        row.unwrap().map(|row| row.try_into().unwrap())
    }

    async fn rows(&self) -> usize {
        let world = &self.world;
        let rows = world
            .store
            .all_owned(world.namespace, OwnedKind::CredentialSource, &Slice::ALL);
        rows.await.unwrap().len()
    }

    async fn delete(&self, id: CredentialSourceId) -> Result<(), Refusal> {
        let world = &self.world;
        world
            .plane
            .delete_credential_source(&world.admin, world.namespace, id)
            .await
    }

    async fn let_operate(&self, principal: &PrincipalId) {
        let role = self
            .world
            .role(&[(Action::Operate, ResourceKind::CredentialSource)])
            .await;
        let input = serde_json::from_value(json!({ "principalId": principal, "roleId": role.id })).unwrap();
        let world = &self.world;
        world
            .plane
            .create_access_binding(&world.admin, world.namespace, input)
            .await
            .unwrap();
    }

    /// A dedicated Agent that authenticates with `auth` and lists `listed`; its principal may operate every source.
    async fn agent(&self, auth: Value, listed: &[CredentialSourceId]) -> AgentId {
        let world = &self.world;
        let listed: Vec<_> = listed.iter().map(|id| json!({ "sourceId": id })).collect();
        let input = json!({
            "name": "a",
            "configurationId": world.configuration(json!({})).await,
            "executionMode": "dedicated",
            "harnessAuth": auth,
            "credentialSources": listed,
        });
        let input = serde_json::from_value(input).unwrap();
        let agent = world.plane.create_agent(&world.admin, world.namespace, input).await;
        let agent = agent.unwrap();
        self.let_operate(&agent.service_principal_id).await;
        agent.id
    }

    async fn deploy(&self, agent: AgentId) -> Result<RevisionView, Refusal> {
        let world = &self.world;
        world.plane.deploy_agent(&world.admin, world.namespace, agent).await
    }

    fn work(&self) -> WorkerHandle {
        let store = Arc::clone(&self.world.store) as _;
        Worker::new(store, Arc::clone(&self.world.drivers), Policy::default()).start()
    }

    async fn status(&self, agent: AgentId, revision: RevisionId) -> Deployment {
        let world = &self.world;
        let read = world
            .plane
            .deployment(&world.admin, world.namespace, agent, revision)
            .await;
        read.unwrap()
    }

    /// How the deployment ends.
    async fn ends(&self, agent: AgentId, revision: RevisionId) -> Option<Failure> {
        loop {
            let status = self.status(agent, revision).await;
            if status.status.is_terminal() {
                return status.error.map(|error| error.code);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn by(source: CredentialSourceId) -> Value {
    json!({ "method": "credential_source", "sourceId": source })
}

const UNDER_WAY: &str = "The registration or a refresh of the credential source may still be under way.";

impl Scene {
    async fn refresh(&self, id: CredentialSourceId) -> Result<CredentialSourceView, Refusal> {
        let world = &self.world;
        let again = UpdateCredentialSource::default();
        let refreshed = world
            .plane
            .update_credential_source(&world.admin, world.namespace, id, again);
        refreshed.await
    }

    /// As if so much time had passed since what the record of a source knows of.
    async fn age(&self, id: CredentialSourceId, by: Duration) {
        let mut row = self.row(id).await.unwrap();
        let earlier = |at: Timestamp| Timestamp::from_millis(at.as_millis() - i64::try_from(by.as_millis()).unwrap());
        for telling in &mut row.tellings {
            telling.since = earlier(telling.since);
        }
        row.version += 1;
        let change = Change::new().write(Write::UpdateOwned((&row).into()));
        self.world.store.commit(change).await.unwrap();
    }
}

//! What a case of the tables is played on, and its requests.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use occ_core::{
    driver::{Action, ResourceKind, ResourceRef},
    id::{AgentId, ConfigurationId, CredentialSourceId, NamespaceId, SecretId, ServiceAccountId},
    resource::{Agent, CredentialSource, ExecutionMode, HarnessAuth, NamespaceStatus, OwnedKind, ServiceAccount},
    store::{Change, Store, Write},
};
use occ_test_support::drivers::{IssuingAccounts, MediatingGateway, OutsideSecrets, PlainHarness, PlainSandbox, World};
use reqwest::Method;
use serde_json::{Value, json};

use crate::served::{Seen, Served};

const DEFAULTS: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// How model credentials reach an Agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Credentials {
    /// From Secrets.
    Delivered,
    /// Through a Credential Gateway.
    Mediated,
    /// From a service account whose token a driver issued.
    Issued,
}

/// One control plane for a whole table; each case has resources of its own.
pub struct Stage {
    pub served: Served,
    credentials: Credentials,
    pub vault: Arc<OutsideSecrets>,
    number: AtomicU32,
    role: String,
}

impl Stage {
    /// Over this store, which is empty.
    pub async fn over(store: Arc<dyn Store>, credentials: Credentials) -> Self {
        let vault = Arc::new(OutsideSecrets::named("secret-now"));
        let world = World::builder();
        let world = match credentials {
            Credentials::Delivered => world,
            Credentials::Mediated => world.credential_gateway(Arc::new(MediatingGateway::named("broker"))),
            Credentials::Issued => world.service_account(Arc::new(IssuingAccounts::named("accounts"))),
        };
        let world = world
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
        let operate = [ResourceKind::Secret, ResourceKind::CredentialSource].map(|kind| (Action::Operate, kind));
        let role = world.role(&operate).await.id;
        Self {
            served: Served::over(world).await,
            credentials,
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
    /// The credential sources.
    pub sources: Sources,
    /// The service accounts: the Agent's, and the one that a request names in its place. They exist where tokens are issued.
    pub account: ServiceAccountId,
    pub other_account: ServiceAccountId,
    pub configuration: ConfigurationId,
    pub body: Value,
}

/// Credential sources: the Agent's model credential and another one that it names, and those that a request names in their places. Where
/// nothing is mediated there are none.
#[derive(Clone, Copy)]
pub struct Sources {
    pub model: CredentialSourceId,
    pub listed: CredentialSourceId,
    pub other_model: CredentialSourceId,
    pub other_listed: CredentialSourceId,
}

impl Stage {
    async fn sources(&self, number: u32, secret: SecretId) -> Sources {
        let from = json!({ "kind": "secret", "namespaceId": self.served.world.namespace, "id": secret });
        let register = async |called: &str, rest: Value| {
            if self.credentials != Credentials::Mediated {
                return CredentialSourceId::random();
            }
            let mut body = rest;
            body["name"] = json!(format!("{called}-{number}"));
            let path = self.served.path("/credential-sources");
            let seen = self.served.json(Method::POST, &path, &body).await;
            serde_json::from_value(seen.data()["id"].clone()).expect("an id")
        };
        let model = json!({ "type": "openai", "secrets": { "api_key": from } });
        let bearer = json!({ "type": "bearer-token", "config": { "host": "WEB" }, "secrets": { "token": from } });
        Sources {
            model: register("model", model.clone()).await,
            listed: register("listed", bearer.clone()).await,
            other_model: register("other-model", model).await,
            other_listed: register("other-listed", bearer).await,
        }
    }
}

impl Stage {
    /// With an issued token.
    async fn account(&self, called: &str, number: u32) -> ServiceAccountId {
        if self.credentials != Credentials::Issued {
            return ServiceAccountId::random();
        }
        let path = self.served.path("/service-accounts");
        let body = json!({ "name": format!("{called}-{number}") });
        let seen = self.served.json(Method::POST, &path, &body).await;
        let id: ServiceAccountId = serde_json::from_value(seen.data()["id"].clone()).expect("an id");
        let path = format!("{path}/{id}/credentials");
        let seen = self.served.json(Method::POST, &path, &json!({})).await;
        assert_eq!(seen.status.as_u16(), 201, "{}", seen.body);
        id
    }
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
        let sources = stage.sources(number, key).await;
        let account = stage.account("account", number).await;
        let other_account = stage.account("other-account", number).await;
        let authenticated = |secret, account: ServiceAccountId, model, listed: &[CredentialSourceId]| {
            let mut body = json!({ "configurationId": configuration, "executionMode": "dedicated" });
            match stage.credentials {
                Credentials::Delivered => {
                    body["harnessAuth"] = json!({ "method": "api_key", "source": source(secret) });
                }
                Credentials::Mediated => {
                    let model: CredentialSourceId = model;
                    body["harnessAuth"] = json!({ "method": "credential_source", "sourceId": model });
                    let listed = listed.iter().map(|id| json!({ "sourceId": id }));
                    body["credentialSources"] = listed.collect();
                }
                Credentials::Issued => {
                    let source = json!({ "kind": "service_account", "namespaceId": world.namespace, "id": account });
                    body["harnessAuth"] = json!({ "method": "codex_pat", "source": source });
                    body["backendId"] = json!("chatgpt");
                }
            }
            body
        };
        let mut agent = authenticated(key, account, sources.model, &[sources.model, sources.listed]);
        agent["name"] = json!(format!("agent-{number}"));
        let seen = served.json(Method::POST, &served.agents(), &agent).await;
        let agent: Agent = serde_json::from_value(seen.data().clone()).expect("an Agent");
        let binding = json!({ "principalId": agent.service_principal_id, "roleId": stage.role });
        let seen = served
            .json(Method::POST, &served.path("/iam/access-bindings"), &binding)
            .await;
        assert_eq!(seen.status.as_u16(), 201, "{}", seen.body);
        let body = authenticated(other, other_account, sources.other_model, &[sources.other_listed]);
        Self {
            stage,
            number,
            namespace: world.namespace,
            agent_id: agent.id,
            agent,
            key,
            other,
            bound,
            sources,
            account,
            other_account,
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

    pub async fn change_source(&self, id: CredentialSourceId, change: impl FnOnce(&mut CredentialSource)) {
        let world = self.world();
        let id = id.to_string();
        let row = world.store.owned(world.namespace, OwnedKind::CredentialSource, &id);
        let row = row.await.expect("a read").expect("a credential source");
        let mut source: CredentialSource = row.try_into().expect("a credential source");
        change(&mut source);
        source.version += 1;
        let change = Change::new().write(Write::UpdateOwned((&source).into()));
        world.store.commit(change).await.expect("a change of the source");
    }

    pub async fn change_account(&self, id: ServiceAccountId, change: impl FnOnce(&mut ServiceAccount)) {
        let world = self.world();
        let mut account = self.saved_account(id).await;
        change(&mut account);
        account.version += 1;
        let change = Change::new().write(Write::UpdateOwned((&account).into()));
        world.store.commit(change).await.expect("a change of the account");
    }

    pub async fn saved_account(&self, id: ServiceAccountId) -> ServiceAccount {
        let (world, id) = (self.world(), id.to_string());
        let row = world.store.owned(world.namespace, OwnedKind::ServiceAccount, &id);
        let row = row.await.expect("a read").expect("a service account");
        row.try_into().expect("a service account")
    }

    pub fn deny_account(&self, id: ServiceAccountId) {
        let world = self.world();
        let resource = ResourceRef::service_account(world.namespace, id);
        world.iam.deny_exactly(&world.admin.principal, Action::Read, resource);
    }

    async fn auth(&self) -> Option<HarnessAuth> {
        let world = self.world();
        let row = world.store.agent(world.namespace, self.agent.id).await;
        row.expect("a read").expect("an Agent").agent.harness_auth
    }

    /// The service account that the Agent names.
    pub async fn bound_account(&self) -> ServiceAccountId {
        let named = self.auth().await.and_then(|auth| auth.account());
        named.unwrap_or(self.account)
    }

    /// The Agent's model credential.
    pub async fn model(&self) -> CredentialSourceId {
        let auth = self.auth().await;
        auth.and_then(|auth| auth.credential_source())
            .unwrap_or(self.sources.model)
    }

    pub fn deny_source(&self, id: CredentialSourceId) {
        let world = self.world();
        let resource = ResourceRef::credential_source(world.namespace, id);
        world
            .iam
            .deny_exactly(&world.admin.principal, Action::Operate, resource);
    }

    pub fn is_mediated(&self) -> bool {
        self.stage.credentials == Credentials::Mediated
    }

    pub fn is_issued(&self) -> bool {
        self.stage.credentials == Credentials::Issued
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

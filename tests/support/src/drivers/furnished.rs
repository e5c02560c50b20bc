//! A control plane with one of everything that the API's paths name, and a second one of what a caller may take away.

// A test whose scene cannot be set has failed.
#![allow(clippy::missing_panics_doc)]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use occ_core::{
    control::{CreateAccount, CreateServiceKey},
    driver::{Action, ResourceKind},
    id::{AgentId, CredentialSourceId, RevisionId, ServiceAccountId},
    resource::{Agent, ExecutionMode, NamespaceStatus, PrincipalId},
    status::DeploymentStatus,
    store::Store,
    work::Policy,
    worker::{Worker, WorkerHandle},
};
use serde_json::json;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{IssuingAccounts, MediatingGateway, PlainHarness, PluginCatalog, World};

/// How long its own deployments may take.
const BOUND: Duration = Duration::from_mins(1);
/// Between two looks at them.
const LOOK: Duration = Duration::from_millis(5);

/// Which drivers of optional kinds are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// None of them.
    Bare,
    /// A Credential Gateway, a Plugin Driver, a Service Account Driver with its Backend, and a Harness of both modes.
    Every,
}

/// Ids by the name of the path parameter in whose place they stand.
pub type Ids = BTreeMap<&'static str, String>;

/// The control plane and what is in it. Nobody works for it yet, and nothing is queued.
pub struct Furnished {
    /// The control plane.
    pub world: World,
    /// Its Credential Gateway, if one is selected.
    pub gateway: Arc<MediatingGateway>,
    /// Its Service Account Driver, if one is selected.
    pub issuer: Arc<IssuingAccounts>,
    /// One of everything, in use: an Agent that runs its second version after a stop, and what it is made of.
    pub named: Ids,
    /// What may be stopped and deleted, for each parameter of such a request.
    pub spare: Ids,
}

impl Furnished {
    /// Over this store, which is empty.
    pub async fn over(store: Arc<dyn Store>, selection: Selection) -> Self {
        let (gateway, issuer) = (
            Arc::new(MediatingGateway::named("broker")),
            Arc::new(IssuingAccounts::named("accounts")),
        );
        let builder = World::builder().store(store);
        let builder = match selection {
            Selection::Bare => builder,
            Selection::Every => builder
                .harness(PlainHarness::named(
                    "plain",
                    &[ExecutionMode::Embedded, ExecutionMode::Dedicated],
                ))
                .credential_gateway(Arc::clone(&gateway) as _)
                .service_account(Arc::clone(&issuer) as _)
                .plugin(Arc::new(PluginCatalog::named("plugins"))),
        };
        let world = builder.build().await;
        let worker = work_for(&world);
        let scene = Scene { world, selection };
        let (named, spare) = scene.furnish().await;
        worker.shutdown().await;
        Self {
            world: scene.world,
            gateway,
            issuer,
            named,
            spare,
        }
    }

    /// Starts a worker for it.
    pub fn work(&self) -> WorkerHandle {
        work_for(&self.world)
    }
}

fn work_for(world: &World) -> WorkerHandle {
    let store = Arc::clone(&world.store) as Arc<dyn Store>;
    Worker::new(store, Arc::clone(&world.drivers), Policy::default()).start()
}

struct Scene {
    world: World,
    selection: Selection,
}

impl Scene {
    async fn furnish(&self) -> (Ids, Ids) {
        let world = &self.world;
        let (account, source) = (self.account("shared").await, self.source("model").await);
        let agent = self.agent("support", source).await;
        self.deploy(agent.id).await;
        let operation = self.stop(agent.id).await;
        let revision = self.deploy(agent.id).await;
        let role = world.role(&[(Action::Read, ResourceKind::Agent)]).await.id;
        let person = self.person("grace@example.com").await;
        let named = [
            ("namespace", world.namespace.to_string()),
            ("configuration", world.configuration(json!({})).await.to_string()),
            ("secret", world.secret("named", "sk-test-0123456789").await.to_string()),
            ("account", account.to_string()),
            ("source", source.to_string()),
            ("preset", self.preset("named").await),
            ("agent", agent.id.to_string()),
            ("revision", revision.to_string()),
            ("operation", operation.to_string()),
            ("name", "AGENTS.md".to_owned()),
            ("role", role.clone()),
            ("binding", self.binding(&agent.service_principal_id, &role).await),
            ("person", person.to_string()),
            ("key", self.key("named").await),
        ];
        let second = self.agent("second", source).await;
        self.deploy(second.id).await;
        if self.every() {
            self.holder("holder", account).await;
        }
        let spare = [
            ("namespace", self.namespace("second").await),
            ("configuration", world.configuration(json!({})).await.to_string()),
            ("secret", world.secret("spare", "sk-test-0123456789").await.to_string()),
            ("account", self.account("spare").await.to_string()),
            ("source", self.source("spare").await.to_string()),
            ("preset", self.preset("spare").await),
            ("agent", second.id.to_string()),
            ("role", world.role(&[(Action::Read, ResourceKind::Secret)]).await.id),
            ("binding", self.binding(&person, &role).await),
            ("person", self.person("eve@example.com").await.to_string()),
            ("key", self.key("spare").await),
        ];
        (named.into(), spare.into())
    }

    fn every(&self) -> bool {
        self.selection == Selection::Every
    }

    /// With an issued token where somebody issues.
    async fn account(&self, name: &str) -> ServiceAccountId {
        let World {
            plane,
            admin,
            namespace,
            ..
        } = &self.world;
        let input = serde_json::from_value(json!({ "name": name })).expect("an account");
        let made = plane.create_service_account(admin, *namespace, input).await;
        let id = made.expect("a new account").id;
        if self.every() {
            let issued = plane.issue_account_credential(admin, *namespace, id).await;
            issued.expect("a token");
        }
        id
    }

    /// Nobody's, where no gateway keeps any.
    async fn source(&self, name: &str) -> CredentialSourceId {
        let World {
            plane,
            admin,
            namespace,
            ..
        } = &self.world;
        if !self.every() {
            return CredentialSourceId::random();
        }
        let secret = self.world.secret(&format!("{name}-key"), "sk-test-0123456789").await;
        let from = json!({ "kind": "secret", "namespaceId": namespace, "id": secret });
        let input = json!({ "name": name, "type": "openai", "secrets": { "api_key": from } });
        let input = serde_json::from_value(input).expect("a source");
        let made = plane.register_credential_source(admin, *namespace, input).await;
        made.expect("a new source").id
    }

    /// An Agent with plugins, whose model credential the gateway mediates; a plain one where there is no gateway.
    async fn agent(&self, name: &str, source: CredentialSourceId) -> Agent {
        if !self.every() {
            return self.world.deployable(name).await;
        }
        let agent = self
            .created(json!({
                "name": name,
                "configurationId": self.world.configuration(json!({})).await,
                "executionMode": "dedicated",
                "harnessAuth": { "method": "credential_source", "sourceId": source },
                "credentialSources": [{ "sourceId": source }],
                "plugins": { "calendar@curated": { "enabled": true } },
            }))
            .await;
        let role = self
            .world
            .role(&[(Action::Operate, ResourceKind::CredentialSource)])
            .await;
        self.binding(&agent.service_principal_id, &role.id).await;
        agent
    }

    /// Holds a service account's token; where a gateway mediates model credentials, it cannot be deployed.
    async fn holder(&self, name: &str, account: ServiceAccountId) {
        let from = json!({ "kind": "service_account", "namespaceId": self.world.namespace, "id": account });
        self.created(json!({
            "name": name,
            "configurationId": self.world.configuration(json!({})).await,
            "executionMode": "dedicated",
            "backendId": "chatgpt",
            "harnessAuth": { "method": "codex_pat", "source": from },
        }))
        .await;
    }

    async fn created(&self, input: serde_json::Value) -> Agent {
        let World {
            plane,
            admin,
            namespace,
            ..
        } = &self.world;
        let input = serde_json::from_value(input).expect("an Agent");
        let made = plane.create_agent(admin, *namespace, input).await;
        made.expect("a new Agent")
    }

    /// Gives the version once it runs.
    async fn deploy(&self, agent: AgentId) -> RevisionId {
        let World {
            plane,
            admin,
            namespace,
            ..
        } = &self.world;
        let admitted = plane.deploy_agent(admin, *namespace, agent).await;
        let id = admitted.expect("a deployable Agent").id;
        let over = async {
            loop {
                let read = plane
                    .deployment(admin, *namespace, agent, id)
                    .await
                    .expect("it is there");
                if read.status.is_terminal() {
                    break read;
                }
                sleep(LOOK).await;
            }
        };
        let deployment = timeout(BOUND, over).await.expect("a worker that gets on");
        assert_eq!(deployment.status, DeploymentStatus::Succeeded, "{deployment:?}");
        id
    }

    /// Gives the stop once it is over.
    async fn stop(&self, agent: AgentId) -> Uuid {
        let World {
            plane,
            admin,
            namespace,
            ..
        } = &self.world;
        let asked = plane.request_stop(admin, *namespace, agent).await.expect("it can stop");
        let id = asked.operation.expect("a stop of its own");
        let over = async {
            let status = async || {
                plane
                    .stop_status(admin, *namespace, agent, id)
                    .await
                    .expect("it is there")
            };
            while !status().await.status.is_terminal() {
                sleep(LOOK).await;
            }
        };
        timeout(BOUND, over).await.expect("a worker that gets on");
        id
    }

    async fn preset(&self, name: &str) -> String {
        let World {
            plane,
            admin,
            namespace,
            ..
        } = &self.world;
        let input = json!({ "name": name, "settings": {} });
        let input = serde_json::from_value(input).expect("a Preset");
        let made = plane.create_preset(admin, *namespace, input).await;
        made.expect("a new Preset").id.to_string()
    }

    async fn namespace(&self, name: &str) -> String {
        let World { plane, admin, .. } = &self.world;
        let input = serde_json::from_value(json!({ "name": name })).expect("a Namespace");
        let made = plane.create_namespace(admin, input).await;
        let id = made.expect("a new Namespace").id;
        let status = async || plane.namespace(admin, id).await.expect("it is there").status;
        let ready = async {
            while status().await != NamespaceStatus::Ready {
                sleep(LOOK).await;
            }
        };
        timeout(BOUND, ready).await.expect("a worker that gets on");
        id.to_string()
    }

    async fn binding(&self, principal: &PrincipalId, role: &str) -> String {
        let World {
            plane,
            admin,
            namespace,
            ..
        } = &self.world;
        let input = json!({ "principalId": principal, "roleId": role });
        let input = serde_json::from_value(input).expect("an access binding");
        let made = plane.create_access_binding(admin, *namespace, input).await;
        made.expect("a new access binding").id
    }

    async fn person(&self, email: &str) -> PrincipalId {
        let World { plane, admin, .. } = &self.world;
        let input = CreateAccount {
            email: email.parse().expect("an address"),
            name: "Somebody".parse().expect("a name"),
            principal_id: None,
            password: None,
        };
        let made = plane.create_account(admin, input).await;
        made.expect("a new account").account.principal_id
    }

    async fn key(&self, name: &str) -> String {
        let World { plane, admin, .. } = &self.world;
        let input = CreateServiceKey {
            principal_id: admin.principal.clone(),
            name: name.parse().expect("a name"),
            namespace_id: None,
            expires_in: None,
        };
        let made = plane.create_service_key(admin, input).await;
        made.expect("a new key").key.id.to_string()
    }
}

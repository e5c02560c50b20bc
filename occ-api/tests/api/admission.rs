//! The order of admission, through HTTP: of any two conditions that fail, the earlier check refuses, in its own words, and nothing
//! is left behind (seed: Agents; spec/engine 3, 3.1).

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use occ_core::{
    admission::{
        deploy::CHECKS,
        draft::{CREATE, UPDATE},
    },
    driver::{Action, Rejection, ResourceKind, ResourceRef, SettingRejection},
    id::{AgentId, ConfigurationId, CredentialSourceId, NamespaceId, SecretId},
    resource::{Agent, AgentStatus, DesiredRuntimeState, ExecutionMode, HarnessAuth, NamespaceStatus},
    store::{Change, Store as _, Write},
};
use occ_test_support::drivers::{NullCompute, OutsideSecrets, PlainHarness, PlainSandbox, World};
use reqwest::Method;
use serde_json::{Value, json};

use crate::served::{Seen, Served, store};

/// A check, and how its refusal reads: status, code, and a part of the message.
type Line = (&'static str, u16, &'static str, &'static str);

const GENERIC: &str = "You are not authorized to do this.";
const MISSING: &str = "The requested resource was not found.";

/// `configuration_exists` is not among them: the database keeps a Configuration that an Agent names, and the API refuses to
/// delete it. The pure tests of the engine have it.
const DEPLOY: &[Line] = &[
    ("deploy_permission", 403, "FORBIDDEN", GENERIC),
    ("namespace_exists", 404, "NOT_FOUND", MISSING),
    ("agent_exists", 404, "NOT_FOUND", MISSING),
    ("namespace_ready", 409, "NAMESPACE_NOT_READY", "not ready"),
    ("agent_active", 409, "AGENT_DELETING", "being deleted"),
    ("backend_configured", 404, "NOT_FOUND", MISSING),
    ("sandbox_topology", 409, "RESOURCE_CONFLICT", "dedicated Harnesses only"),
    ("configuration_permission", 403, "FORBIDDEN", GENERIC),
    (
        "configuration_document",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "The Configuration Driver",
    ),
    ("harness_selected", 400, "INVALID_REQUEST", "selects no Harness"),
    (
        "harness_available",
        400,
        "INVALID_REQUEST",
        "runs embedded, and the Agent's execution mode is dedicated",
    ),
    ("harness_auth_present", 409, "RESOURCE_CONFLICT", "has no harnessAuth"),
    ("harness_auth_permission", 403, "FORBIDDEN", GENERIC),
    ("secret_bindings_permission", 403, "FORBIDDEN", GENERIC),
    (
        "harness_auth_supported",
        409,
        "CREDENTIAL_GATEWAY_NOT_CONFIGURED",
        "no Credential Gateway",
    ),
    ("compute_topology", 409, "RESOURCE_CONFLICT", "delivers no credential"),
    ("agent_principal", 403, "FORBIDDEN", "The Agent service principal spn_"),
    (
        "harness_auth_secret",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "Bind a Secret that is stored through the selected one",
    ),
    (
        "secret_bindings_secrets",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "The Configuration's secretBindings",
    ),
    ("secrets_resolved", 503, "DEPENDENCY_UNAVAILABLE", "no longer the one"),
    ("sandbox_document", 409, "RESOURCE_CONFLICT", "changes which Harness"),
    ("document_valid", 400, "INVALID_REQUEST", "is broken"),
    (
        "gateway_settings",
        409,
        "RESOURCE_CONFLICT",
        "gateway.tls.enabled must be omitted or false.",
    ),
    (
        "transport_credentials_kept",
        409,
        "RESOURCE_CONFLICT",
        "An operator must restore them",
    ),
    ("transport_credentials_permission", 403, "FORBIDDEN", GENERIC),
];

const CREATE_LINES: &[Line] = &[
    ("create_permission", 403, "FORBIDDEN", GENERIC),
    ("namespace_exists", 404, "NOT_FOUND", MISSING),
    ("namespace_accepts", 409, "RESOURCE_CONFLICT", "The Namespace failed"),
    ("backend_configured", 404, "NOT_FOUND", MISSING),
    ("configuration_permission", 403, "FORBIDDEN", GENERIC),
    ("configuration_exists", 404, "NOT_FOUND", MISSING),
    (
        "harness_auth_namespace",
        400,
        "INVALID_REQUEST",
        "must belong to the Agent's Namespace",
    ),
    ("harness_auth_permission", 403, "FORBIDDEN", GENERIC),
    (
        "harness_auth_source",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "Bind a Secret that is stored through the selected one",
    ),
    ("credential_sources_permission", 403, "FORBIDDEN", GENERIC),
    (
        "credential_sources_gateway",
        409,
        "CREDENTIAL_GATEWAY_NOT_CONFIGURED",
        "no Credential Gateway",
    ),
    ("plugins_supported", 501, "NOT_IMPLEMENTED", "no Plugin Driver"),
    ("secret_bindings_permission", 403, "FORBIDDEN", GENERIC),
    (
        "secret_bindings_secrets",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "The Configuration's secretBindings",
    ),
    ("workspace_defaults", 409, "RESOURCE_CONFLICT", "workspaceDefaultsId"),
    (
        "name_free",
        409,
        "RESOURCE_CONFLICT",
        "The name is taken by another Agent",
    ),
];

const UPDATE_LINES: &[Line] = &[
    ("update_permission", 403, "FORBIDDEN", GENERIC),
    ("namespace_exists", 404, "NOT_FOUND", MISSING),
    ("agent_exists", 404, "NOT_FOUND", MISSING),
    ("agent_active", 409, "AGENT_DELETING", "being deleted"),
    ("backend_configured", 404, "NOT_FOUND", MISSING),
    ("configuration_permission", 403, "FORBIDDEN", GENERIC),
    ("configuration_exists", 404, "NOT_FOUND", MISSING),
    ("current_auth_permission", 403, "FORBIDDEN", GENERIC),
    (
        "harness_auth_namespace",
        400,
        "INVALID_REQUEST",
        "must belong to the Agent's Namespace",
    ),
    ("harness_auth_permission", 403, "FORBIDDEN", GENERIC),
    (
        "harness_auth_source",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "Bind a Secret that is stored through the selected one",
    ),
    ("credential_sources_permission", 403, "FORBIDDEN", GENERIC),
    (
        "credential_sources_gateway",
        409,
        "CREDENTIAL_GATEWAY_NOT_CONFIGURED",
        "no Credential Gateway",
    ),
    ("plugins_supported", 501, "NOT_IMPLEMENTED", "no Plugin Driver"),
    ("secret_bindings_permission", 403, "FORBIDDEN", GENERIC),
    (
        "secret_bindings_secrets",
        503,
        "DEPENDENCY_UNAVAILABLE",
        "The Configuration's secretBindings",
    ),
];

const DEFAULTS: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// One control plane for a whole table; each case has resources of its own.
struct Stage {
    served: Served,
    vault: Arc<OutsideSecrets>,
    number: AtomicU32,
    role: String,
}

impl Stage {
    async fn new() -> Self {
        let vault = Arc::new(OutsideSecrets::named("secret-now"));
        let world = World::builder()
            .store(store().await)
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

    async fn relent(&self) {
        let world = &self.served.world;
        world.iam.relent();
        world.compute.reject_auth(None);
        world.compute.reject_settings(None);
        world.set_namespace(world.namespace, NamespaceStatus::Ready).await;
    }
}

/// One case.
struct Scene<'a> {
    stage: &'a Stage,
    number: u32,
    namespace: NamespaceId,
    agent_id: AgentId,
    agent: Agent,
    /// The Secret that the Agent names, the one that a request names, and the one that the Configuration binds.
    key: SecretId,
    other: SecretId,
    bound: SecretId,
    configuration: ConfigurationId,
    body: Value,
}

impl<'a> Scene<'a> {
    async fn new(stage: &'a Stage) -> Self {
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

    fn world(&self) -> &World {
        &self.stage.served.world
    }

    async fn change(&self, change: impl FnOnce(&mut Agent)) {
        let world = self.world();
        let row = world.store.agent(world.namespace, self.agent.id).await;
        let mut agent = row.expect("a read").expect("an Agent").agent;
        change(&mut agent);
        let change = Change::new().write(Write::UpdateAgent(agent));
        world.store.commit(change).await.expect("a change of the Agent");
    }

    /// As if another driver had stored the value, before the Installation selected the present one.
    async fn disown(&self, id: SecretId) {
        let world = self.world();
        let row = world.store.secret(world.namespace, id).await;
        let mut secret = row.expect("a read").expect("a Secret");
        "secret-of-yesterday".clone_into(&mut secret.driver_id);
        secret.version += 1;
        let change = Change::new().write(Write::UpdateSecret(secret));
        world.store.commit(change).await.expect("a change of the Secret");
    }

    fn deny(&self, action: Action, kind: ResourceKind) {
        let world = self.world();
        world.iam.deny(&world.admin.principal, action, kind);
    }

    fn deny_secret(&self, id: SecretId) {
        let world = self.world();
        let resource = ResourceRef::secret(world.namespace, id);
        world
            .iam
            .deny_exactly(&world.admin.principal, Action::Operate, resource);
    }

    /// Breaks what the later checks look at first, so that of two faults in one place the earlier one shows.
    async fn fail(&mut self, table: &[Line], faults: &BTreeSet<&str>) {
        if faults.contains("transport_credentials_kept") {
            let seen = self.deploy().await;
            assert_eq!(seen.status.as_u16(), 202, "{}", seen.body);
            self.world().compute.lose_credentials(self.agent.id);
        }
        let failing = table.iter().rev().filter(|(name, ..)| faults.contains(name));
        let mut values = json!({});
        for (name, ..) in failing.clone() {
            match *name {
                "harness_selected" => values["harness"] = json!(""),
                "harness_available" => values["harness"] = json!("embedded-only"),
                "sandbox_document" => values["confined"] = json!(true),
                "document_valid" => values["broken"] = json!(true),
                _ => {}
            }
        }
        // While everything is still permitted.
        if values != json!({}) {
            let served = &self.stage.served;
            let path = served.path(&format!("/configurations/{}", self.configuration));
            let seen = served.json(Method::PATCH, &path, &json!({ "values": values })).await;
            assert_eq!(seen.data()["generation"], 2, "{}", seen.body);
        }
        for (name, ..) in failing {
            self.fail_one(name).await;
        }
    }

    #[allow(clippy::too_many_lines)] // One arm a fault.
    async fn fail_one(&mut self, name: &str) {
        match name {
            "deploy_permission" => self.deny(Action::Deploy, ResourceKind::Agent),
            "create_permission" => self.deny(Action::Create, ResourceKind::Agent),
            "update_permission" => self.deny(Action::Update, ResourceKind::Agent),
            "namespace_exists" => self.namespace = NamespaceId::random(),
            "agent_exists" => self.agent_id = AgentId::random(),
            "namespace_ready" => {
                let world = self.world();
                world
                    .set_namespace(world.namespace, NamespaceStatus::Provisioning)
                    .await;
            }
            "namespace_accepts" => {
                let world = self.world();
                world.set_namespace(world.namespace, NamespaceStatus::Failed).await;
            }
            "agent_active" => {
                self.change(|agent| {
                    agent.status = AgentStatus::Deleting;
                    agent.desired_runtime_state = DesiredRuntimeState::Stopped;
                })
                .await;
            }
            "backend_configured" => {
                self.change(|agent| agent.backend_id = Some("chatgpt".parse().expect("an id")))
                    .await;
                self.body["backendId"] = json!("chatgpt");
            }
            "sandbox_topology" => {
                self.change(|agent| agent.execution_mode = ExecutionMode::Embedded)
                    .await;
            }
            "configuration_permission" => self.deny(Action::Read, ResourceKind::Configuration),
            "configuration_exists" => self.body["configurationId"] = json!(ConfigurationId::random()),
            "configuration_document" => {
                let world = self.world();
                let row = world.store.configuration(world.namespace, self.configuration).await;
                let mut row = row.expect("a read").expect("a Configuration");
                row.id = ConfigurationId::random();
                let id = row.id;
                let change = Change::new().write(Write::Configuration(row));
                world.store.commit(change).await.expect("a record without a document");
                self.change(|agent| agent.configuration_id = id).await;
            }
            "harness_auth_present" => self.change(|agent| agent.harness_auth = None).await,
            "harness_auth_namespace" => {
                self.body["harnessAuth"]["source"]["namespaceId"] = json!(NamespaceId::random());
            }
            "harness_auth_permission" => {
                self.deny_secret(if self.is_draft() { self.other } else { self.key });
                self.deny(Action::Operate, ResourceKind::CredentialSource);
            }
            "credential_sources_permission" | "credential_sources_gateway" => {
                self.body["credentialSources"] = json!([{ "sourceId": CredentialSourceId::random() }]);
                if name == "credential_sources_permission" {
                    self.deny(Action::Operate, ResourceKind::CredentialSource);
                }
            }
            "plugins_supported" => self.body["plugins"] = json!({ "calendar@openai": { "enabled": true } }),
            "current_auth_permission" => self.deny_secret(self.key),
            "harness_auth_supported" => {
                let source_id = CredentialSourceId::random();
                self.change(|agent| agent.harness_auth = Some(HarnessAuth::CredentialSource { source_id }))
                    .await;
            }
            "secret_bindings_permission" => self.deny_secret(self.bound),
            "compute_topology" => {
                let rejection = Rejection::Unsupported("This Compute delivers no credential.");
                self.world().compute.reject_auth(Some(rejection));
            }
            "agent_principal" => {
                let principal = &self.agent.service_principal_id;
                self.world().iam.deny(principal, Action::Operate, ResourceKind::Secret);
            }
            "harness_auth_secret" => self.disown(self.key).await,
            "harness_auth_source" => self.disown(self.other).await,
            "secret_bindings_secrets" => self.disown(self.bound).await,
            "secrets_resolved" => self.stage.vault.replace(self.key),
            "gateway_settings" => {
                let rejection = SettingRejection {
                    setting: "gateway.tls.enabled",
                    accepted: "must be omitted or false",
                };
                self.world().compute.reject_settings(Some(rejection));
            }
            // Done before.
            "transport_credentials_kept"
            | "harness_selected"
            | "harness_available"
            | "sandbox_document"
            | "document_valid" => {}
            "transport_credentials_permission" => self.deny(Action::Read, ResourceKind::Agent),
            "workspace_defaults" => self.body["workspaceDefaultsId"] = json!("b".repeat(64)),
            "name_free" => self.body["name"] = json!(self.agent.name),
            other => panic!("no such fault: {other}"),
        }
    }

    /// Whether a request names an authentication.
    fn is_draft(&self) -> bool {
        self.body.get("draft").is_some()
    }

    async fn deploy(&self) -> Seen {
        let path = format!("/namespaces/{}/agents/{}/deploy", self.namespace, self.agent_id);
        self.stage.served.send(Method::POST, &path).await
    }

    async fn create(&self) -> Seen {
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

    async fn update(&self) -> Seen {
        let mut body = self.body.clone();
        if let Some(object) = body.as_object_mut() {
            object.remove("draft");
        }
        let path = format!("/namespaces/{}/agents/{}", self.namespace, self.agent_id);
        self.stage.served.json(Method::PATCH, &path, &body).await
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Operation {
    Deploy,
    Create,
    Update,
}

/// Every pair of a table, and every line alone.
async fn walk(operation: Operation, table: &'static [Line]) {
    let stage = Stage::new().await;
    for (index, (earlier, status, code, words)) in table.iter().enumerate() {
        for (later, ..) in &table[index..] {
            stage.relent().await;
            let mut scene = Scene::new(&stage).await;
            if operation != Operation::Deploy {
                scene.body["draft"] = json!(true);
            }
            scene.fail(table, &BTreeSet::from([*earlier, *later])).await;
            let world = &stage.served.world;
            let before = (
                world
                    .store
                    .revisions(world.namespace, scene.agent.id)
                    .await
                    .expect("a read")
                    .len(),
                world.store.agents(world.namespace).await.expect("a read").len(),
                world
                    .store
                    .agent(world.namespace, scene.agent.id)
                    .await
                    .expect("a read"),
            );
            world.store.take_work();
            world.store.take_audit();
            let seen = match operation {
                Operation::Deploy => scene.deploy().await,
                Operation::Create => scene.create().await,
                Operation::Update => scene.update().await,
            };
            let case = format!("{earlier} and {later}: {}", seen.body);
            assert_eq!((seen.status.as_u16(), seen.code()), (*status, *code), "{case}");
            assert!(seen.message().contains(words), "{case}");
            let after = (
                world
                    .store
                    .revisions(world.namespace, scene.agent.id)
                    .await
                    .expect("a read")
                    .len(),
                world.store.agents(world.namespace).await.expect("a read").len(),
                world
                    .store
                    .agent(world.namespace, scene.agent.id)
                    .await
                    .expect("a read"),
            );
            assert_eq!(before, after, "{case}");
            assert!(world.store.take_work().is_empty(), "{case}");
            // A denial and a deployment into a Namespace that is not ready are recorded, and nothing else is.
            let recorded = usize::from(*status == 403 || *code == "NAMESPACE_NOT_READY");
            assert_eq!(world.store.take_audit().len(), recorded, "{case}");
        }
    }
}

#[tokio::test]
async fn of_two_faults_of_a_deployment_the_earlier_check_refuses() {
    walk(Operation::Deploy, DEPLOY).await;
}

#[tokio::test]
async fn of_two_faults_of_a_creation_the_earlier_check_refuses() {
    walk(Operation::Create, CREATE_LINES).await;
}

#[tokio::test]
async fn of_two_faults_of_a_change_the_earlier_check_refuses() {
    walk(Operation::Update, UPDATE_LINES).await;
}

#[test]
fn the_tables_name_every_check_in_its_order() {
    let lines = |table: &[Line]| table.iter().map(|(name, ..)| *name).collect::<Vec<_>>();
    let checks = CHECKS.iter().map(|(name, _)| *name);
    assert_eq!(
        lines(DEPLOY),
        checks
            .filter(|name| *name != "configuration_exists")
            .collect::<Vec<_>>()
    );
    // The name is the database's to judge, at the commit.
    let names = CREATE.iter().map(|(name, _)| *name).chain(["name_free"]);
    assert_eq!(lines(CREATE_LINES), names.collect::<Vec<_>>());
    assert_eq!(
        lines(UPDATE_LINES),
        UPDATE.iter().map(|(name, _)| *name).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_configuration_that_an_agent_names_cannot_vanish() {
    let served = Served::new().await;
    let agent = served.world.deployable("a").await;
    let path = served.path(&format!("/configurations/{}", agent.configuration_id));
    let seen = served.send(Method::DELETE, &path).await;
    assert_eq!((seen.status.as_u16(), seen.code()), (409, "RESOURCE_CONFLICT"));
    assert!(seen.message().contains(&agent.id.to_string()), "{}", seen.body);
}

#[tokio::test]
async fn the_refusal_of_a_gateway_setting_names_it_and_never_its_value() {
    let served = Served::new().await;
    let world = &served.world;
    let agent = world.deployable("a").await;
    world.compute.reject_settings(Some(SettingRejection {
        setting: "gateway.auth.password",
        accepted: "must be ${OPENCLAW_GATEWAY_PASSWORD}",
    }));
    let path = served.path(&format!("/configurations/{}", agent.configuration_id));
    let body = json!({ "values": { "gateway": { "auth": { "password": "canary-value" } } } });
    served.json(Method::PATCH, &path, &body).await;
    let seen = served
        .send(Method::POST, &served.path(&format!("/agents/{}/deploy", agent.id)))
        .await;
    assert_eq!((seen.status.as_u16(), seen.code()), (409, "RESOURCE_CONFLICT"));
    assert_eq!(
        seen.message(),
        "gateway.auth.password must be ${OPENCLAW_GATEWAY_PASSWORD}."
    );
    assert!(!seen.body.to_string().contains("canary"));
    let revisions = served
        .send(Method::GET, &served.path(&format!("/agents/{}/revisions", agent.id)))
        .await;
    assert_eq!(revisions.data(), &json!([]), "refused before a version exists");
}

#[tokio::test]
async fn after_a_driver_switch_a_binding_can_be_kept_cleared_and_replaced_but_not_named_again() {
    let world = World::builder().store(store().await).build().await;
    let agent = world.deployable("a").await;
    let old = agent.harness_auth;
    let vault: Arc<OutsideSecrets> = Arc::new(OutsideSecrets::named("secret-now"));
    let plane = world.with(Some(vault), NullCompute::default());
    let served = Served::serving(world, plane).await;
    let secrets = served.path("/secrets");
    let seen = served
        .json(
            Method::POST,
            &secrets,
            &json!({ "name": "new", "value": "sk-test-0123456789" }),
        )
        .await;
    let new = json!({ "method": "api_key", "source": seen.data()["ref"] });
    let path = served.path(&format!("/agents/{}", agent.id));
    let body = |auth: Option<Value>| {
        let mut body = json!({ "configurationId": agent.configuration_id });
        if let Some(auth) = auth {
            body["harnessAuth"] = auth;
        }
        body
    };
    let name_it = body(Some(json!(old)));
    let text = "The harnessAuth Secret is stored through another Secret Driver. Bind a Secret that is stored through the selected one.";
    let deploy = served.path(&format!("/agents/{}/deploy", agent.id));

    let kept = served.json(Method::PATCH, &path, &body(None)).await;
    assert_eq!(kept.status.as_u16(), 200, "{}", kept.body);
    for refused in [
        served.json(Method::PATCH, &path, &name_it).await,
        served.send(Method::POST, &deploy).await,
    ] {
        assert_eq!(
            (refused.status.as_u16(), refused.code(), refused.message()),
            (503, "DEPENDENCY_UNAVAILABLE", text)
        );
    }
    let cleared = served.json(Method::PATCH, &path, &body(Some(Value::Null))).await;
    assert_eq!(cleared.data()["harnessAuth"], Value::Null);
    assert_eq!(served.json(Method::PATCH, &path, &name_it).await.status.as_u16(), 503);
    let replaced = served.json(Method::PATCH, &path, &body(Some(new.clone()))).await;
    assert_eq!(replaced.data()["harnessAuth"], new);

    // What the named Configuration binds is checked whole with every change, named anew or not.
    let binding = json!({ "SLACK_BOT_TOKEN": { "source": json!(old)["source"] } });
    let configuration = served
        .world
        .store
        .configuration(served.world.namespace, agent.configuration_id)
        .await
        .expect("a read")
        .expect("a Configuration");
    let mut row = configuration.clone();
    row.secret_bindings = serde_json::from_value(binding).expect("bindings");
    row.generation += 1;
    let change = Change::new().write(Write::UpdateConfiguration(row));
    served.world.store.commit(change).await.expect("a change");
    let seen = served.json(Method::PATCH, &path, &body(None)).await;
    assert_eq!((seen.status.as_u16(), seen.code()), (503, "DEPENDENCY_UNAVAILABLE"));
    assert!(
        seen.message()
            .starts_with("The Configuration's secretBindings name a Secret stored through another Secret"),
        "{}",
        seen.body
    );
    // Naming another Configuration resolves it.
    let other = served.world.configuration(json!({})).await;
    let seen = served
        .json(Method::PATCH, &path, &json!({ "configurationId": other }))
        .await;
    assert_eq!(seen.status.as_u16(), 200, "{}", seen.body);
}

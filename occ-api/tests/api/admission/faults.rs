//! How each check of the tables is made to fail.

use std::collections::BTreeSet;

use occ_core::{
    driver::{Action, Rejection, ResourceKind, SettingRejection},
    id::{AgentId, ConfigurationId, CredentialSourceId, NamespaceId, ServiceAccountId},
    resource::{
        AgentCredentialSource, AgentStatus, DesiredRuntimeState, ExecutionMode, HarnessAuth, NamespaceStatus,
        SourceState, TokenSource,
    },
    store::{Change, Store as _, Write},
};
use reqwest::Method;
use serde_json::json;

use super::{
    scene::{Scene, Sources},
    table::Line,
};

impl Scene<'_> {
    /// Breaks what the later checks look at first, so that of two faults in one place the earlier one shows.
    pub async fn fail(&mut self, table: &[Line], faults: &BTreeSet<&str>) {
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
                self.change(|agent| agent.backend_id = Some("elsewhere".parse().expect("an id")))
                    .await;
                self.body["backendId"] = json!("elsewhere");
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
            "harness_auth_permission" if self.is_mediated() => {
                // Whichever a later check is to miss.
                let named = serde_json::from_value(self.body["harnessAuth"]["sourceId"].clone()).expect("an id");
                self.deny_source(if self.is_draft() { named } else { self.sources.model });
            }
            "harness_auth_permission" if self.is_issued() => {
                let named = serde_json::from_value(self.body["harnessAuth"]["source"]["id"].clone()).expect("an id");
                self.deny_account(if self.is_draft() {
                    named
                } else {
                    self.bound_account().await
                });
            }
            "account_exists" | "account_kept" | "account_issued" | "account_backend" | "account_driver"
            | "account_token" => {
                self.fail_issued(name).await;
            }
            "harness_auth_permission" => {
                self.deny_secret(if self.is_draft() { self.other } else { self.key });
                self.deny(Action::Operate, ResourceKind::CredentialSource);
            }
            "mediated" | "source_listed" | "source_of_models" | "agent_principal_source" => {
                self.fail_mediated(name).await;
            }
            "auth_source_exists" => self.body["harnessAuth"]["sourceId"] = json!(CredentialSourceId::random()),
            "auth_source_of_gateway" | "source_of_gateway" => {
                let source = self.named(name).await;
                self.change_source(source, |source| {
                    "broker-of-yesterday".clone_into(&mut source.gateway_id);
                })
                .await;
            }
            "auth_source_ready" | "source_ready" => {
                let source = self.named(name).await;
                self.change_source(source, |source| source.state = SourceState::Deleting)
                    .await;
            }
            "source_permission" => {
                let Sources {
                    listed, other_listed, ..
                } = self.sources;
                self.deny_source(if self.is_draft() { other_listed } else { listed });
            }
            "source_exists" => {
                let source_id = CredentialSourceId::random();
                if let Some(listed) = self.body["credentialSources"].as_array_mut() {
                    listed.insert(0, json!({ "sourceId": source_id }));
                }
                self.change(|agent| agent.credential_sources.push(AgentCredentialSource { source_id }))
                    .await;
            }
            "credential_sources_permission" | "credential_sources_gateway" => {
                self.body["credentialSources"] = json!([{ "sourceId": CredentialSourceId::random() }]);
                if name == "credential_sources_permission" {
                    self.deny(Action::Operate, ResourceKind::CredentialSource);
                }
            }
            "plugins_supported" => {
                let selection = json!({ "calendar@openai": { "enabled": true } });
                // Named by a draft, or saved in one before a deployment.
                self.body["plugins"] = selection.clone();
                self.change(|agent| agent.plugins = serde_json::from_value(selection).expect("a selection"))
                    .await;
            }
            "current_auth_permission" if self.is_mediated() => self.deny_source(self.sources.listed),
            "current_auth_permission" if self.is_issued() => self.deny_account(self.account),
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
            "secrets_resolved" => {
                let own = !self.is_mediated() && !self.is_issued();
                self.stage.vault.replace(if own { self.key } else { self.bound });
            }
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

    async fn fail_mediated(&mut self, name: &str) {
        match name {
            "mediated" => {
                let auth = self.world().api_key(self.key);
                self.change(|agent| agent.harness_auth = Some(auth)).await;
            }
            "source_listed" => {
                self.change(|agent| {
                    let model = agent.harness_auth.and_then(|auth| auth.credential_source());
                    agent
                        .credential_sources
                        .retain(|source| Some(source.source_id) != model);
                })
                .await;
            }
            "source_of_models" => {
                let source_id = self.sources.listed;
                self.change(|agent| agent.harness_auth = Some(HarnessAuth::CredentialSource { source_id }))
                    .await;
            }
            _ => {
                let principal = &self.agent.service_principal_id;
                let world = self.world();
                world
                    .iam
                    .deny(principal, Action::Operate, ResourceKind::CredentialSource);
            }
        }
    }

    async fn fail_issued(&mut self, name: &str) {
        let account = if self.is_draft() {
            self.other_account
        } else {
            self.account
        };
        match name {
            "account_exists" => {
                let id = ServiceAccountId::random();
                self.body["harnessAuth"]["source"]["id"] = json!(id);
                let namespace_id = self.namespace;
                if !self.is_draft() {
                    let source = TokenSource::ServiceAccount { namespace_id, id };
                    self.change(|agent| agent.harness_auth = Some(HarnessAuth::CodexPat { source }))
                        .await;
                }
            }
            "account_kept" => self.change_account(account, |account| account.deleting = true).await,
            "account_issued" => self.change_account(account, |account| account.credential = None).await,
            "account_backend" => self.change(|agent| agent.backend_id = None).await,
            "account_driver" => {
                self.change_account(account, |account| {
                    let binding = account.binding.as_mut().expect("an issued token");
                    "accounts-of-yesterday".clone_into(&mut binding.driver_id);
                })
                .await;
            }
            _ => {
                let account = self.saved_account(account).await;
                let (token, _) = account.issued().expect("an issued token");
                self.disown(token).await;
            }
        }
    }

    /// The source that a fault is about.
    async fn named(&self, fault: &str) -> CredentialSourceId {
        match fault {
            _ if !self.is_draft() => self.model().await,
            fault if fault.starts_with("auth_") => self.sources.other_model,
            _ => self.sources.other_listed,
        }
    }
}

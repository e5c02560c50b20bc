//! What the quickstart makes, in the order in which a user makes it. Everything is found again by a second run.

use std::time::Duration;

use occ_core::{
    control::{ConfigurationSummary, RevisionView, SecretView},
    driver::GatewayEndpoint,
    iam::{AccessBinding, Role},
    id::{AgentId, ConfigurationId, NamespaceId, RevisionId, SecretId},
    resource::{Agent, Configuration, Namespace, NamespaceStatus},
};
use serde_json::{Value, json};

use super::{model::Model, say};
use crate::{
    client::Client,
    exit::{Done, Failure},
    paths, wait,
};

/// The Agent's name.
pub(super) const AGENT: &str = "quickstart";
const NAMESPACE: &str = "default";
const SECRET: &str = "quickstart-model-key";

/// How long a Namespace or a stop may take.
const SETTLE: Duration = Duration::from_mins(2);

/// The resources that a deployment needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draft {
    pub namespace: NamespaceId,
    pub agent: AgentId,
}

/// A deployed Agent.
pub(super) struct Deployed {
    pub draft: Draft,
    pub revision: RevisionId,
    pub number: u64,
    pub gateway: GatewayEndpoint,
}

/// The steps, over the API.
pub(super) struct Scenario {
    client: Client,
    model: Model,
}

impl Scenario {
    pub(super) const fn new(client: Client, model: Model) -> Self {
        Self { client, model }
    }

    pub(super) const fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn say_model(&self) {
        if self.model.is_stand_in() {
            say(&format!(
                "no OPENAI_API_KEY: a stand-in on {} plays the model provider; it speaks the real protocol and repeats what it hears",
                self.model.base_url
            ));
        } else {
            say(&format!("model {} at {}", self.model.name, self.model.base_url));
        }
    }

    /// The Namespace `default`, once Compute has provided it.
    pub(super) async fn namespace_ready(&self) -> Done<NamespaceId> {
        wait::until(SETTLE, "the Namespace is still being provided", async |progress| {
            let namespaces: Vec<Namespace> = self.client.get("/namespaces").await?;
            let found = namespaces
                .into_iter()
                .find(|namespace| namespace.name.as_str() == NAMESPACE);
            let namespace = found.ok_or_else(|| Failure::refused(format!("there is no Namespace {NAMESPACE}")))?;
            match namespace.status {
                NamespaceStatus::Ready => Ok(Some(namespace.id)),
                NamespaceStatus::Provisioning => {
                    progress.show(format!("Namespace {NAMESPACE} is being provided"));
                    Ok(None)
                }
                NamespaceStatus::Failed | NamespaceStatus::Deleting => Err(Failure::refused(format!(
                    "the Namespace {NAMESPACE} cannot be used: it failed or is being deleted"
                ))),
            }
        })
        .await
    }

    /// The Secret, the Configuration, the Agent and its grant: made by the first run, brought up to date by the next.
    pub(super) async fn draft(&self) -> Done<Draft> {
        let namespace = self.namespace_ready().await?;
        let secret = self.secret(namespace).await?;
        let agents: Vec<Agent> = self.client.get(&paths::agents(namespace)).await?;
        let agent = match agents.into_iter().find(|agent| agent.name.as_str() == AGENT) {
            Some(agent) => {
                self.update_configuration(namespace, agent.configuration_id).await?;
                agent
            }
            None => self.create_agent(namespace, secret).await?,
        };
        self.grant(namespace, &agent, secret).await?;
        Ok(Draft {
            namespace,
            agent: agent.id,
        })
    }

    async fn secret(&self, namespace: NamespaceId) -> Done<SecretId> {
        let value = self
            .model
            .key
            .expose_str()
            .ok_or_else(|| Failure::startup("the model's key is not UTF-8 text"))?;
        let path = format!("{}/secrets", paths::namespace(namespace));
        let secrets: Vec<SecretView> = self.client.get(&path).await?;
        if let Some(secret) = secrets.into_iter().find(|secret| secret.name.as_str() == SECRET) {
            let _: SecretView = self
                .client
                .patch(&format!("{path}/{}", secret.id), &json!({ "value": value }))
                .await?;
            return Ok(secret.id);
        }
        say("creating the Secret, the Configuration and the Agent");
        let secret: SecretView = self
            .client
            .post(&path, &json!({ "name": SECRET, "value": value }))
            .await?;
        Ok(secret.id)
    }

    async fn update_configuration(&self, namespace: NamespaceId, id: ConfigurationId) -> Done {
        let path = format!("{}/configurations/{id}", paths::namespace(namespace));
        let _: Configuration = self.client.patch(&path, &json!({ "values": self.document() })).await?;
        Ok(())
    }

    async fn create_agent(&self, namespace: NamespaceId, secret: SecretId) -> Done<Agent> {
        let path = format!("{}/configurations", paths::namespace(namespace));
        // A run that was cut off between the two may have left its Configuration behind, of which no Agent knows.
        let known: Vec<ConfigurationSummary> = self.client.get(&path).await?;
        let configuration = if let Some(left) = known.first() {
            self.update_configuration(namespace, left.id).await?;
            left.id
        } else {
            let body = json!({ "kind": "agent", "values": self.document() });
            self.client.post::<Configuration>(&path, &body).await?.id
        };
        let body = json!({
            "name": AGENT,
            "configurationId": configuration,
            "executionMode": "embedded",
            "harnessAuth": {
                "method": "api_key",
                "source": { "kind": "secret", "namespaceId": namespace, "id": secret },
            },
            "initialWorkspaceFiles": {
                "AGENTS.md": "You are the quickstart Agent of OCC. Answer in one or two sentences.\n",
            },
        });
        Ok(self.client.post(&paths::agents(namespace), &body).await?)
    }

    /// The Agent has a principal of its own, and nothing is granted to it by itself: it may operate this one Secret.
    async fn grant(&self, namespace: NamespaceId, agent: &Agent, secret: SecretId) -> Done {
        let iam = format!("{}/iam", paths::namespace(namespace));
        let principal = &agent.service_principal_id;
        let bindings: Vec<AccessBinding> = self.client.get(&format!("{iam}/access-bindings")).await?;
        let granted = bindings.iter().any(|binding| {
            binding.subject == occ_core::iam::Subject::Identity(principal.clone())
                && binding
                    .resource
                    .as_ref()
                    .is_some_and(|resource| resource.id == secret.to_string())
        });
        if granted {
            return Ok(());
        }
        let role = json!({ "permissions": [{ "action": "operate", "kind": "secret" }] });
        let role: Role = self.client.post(&format!("{iam}/roles"), &role).await?;
        let binding = json!({
            "principalId": principal,
            "roleId": role.id,
            "resource": { "kind": "secret", "id": secret.to_string() },
        });
        let _: AccessBinding = self.client.post(&format!("{iam}/access-bindings"), &binding).await?;
        Ok(())
    }

    pub(super) async fn deploy(&self, draft: &Draft) -> Done<RevisionView> {
        let path = format!("{}/deploy", paths::agent(draft.namespace, draft.agent));
        Ok(self.client.act(&path).await?)
    }

    pub(super) async fn gateway(&self, draft: &Draft) -> Done<GatewayEndpoint> {
        Ok(self
            .client
            .get(&format!("{}/gateway", paths::agent(draft.namespace, draft.agent)))
            .await?)
    }

    pub(super) async fn stop(&self, deployed: &Deployed) -> Done {
        self.stop_agent(deployed.draft).await
    }

    /// Stops the Agent if there is one, whatever state it is in.
    pub(super) async fn stop_whatever_runs(&self) -> Done {
        let namespaces: Vec<Namespace> = self.client.get("/namespaces").await?;
        for namespace in namespaces {
            let agents: Vec<Agent> = self.client.get(&paths::agents(namespace.id)).await?;
            for agent in agents.iter().filter(|agent| agent.name.as_str() == AGENT) {
                self.stop_agent(Draft {
                    namespace: namespace.id,
                    agent: agent.id,
                })
                .await?;
            }
        }
        Ok(())
    }

    async fn stop_agent(&self, draft: Draft) -> Done {
        let path = paths::agent(draft.namespace, draft.agent);
        let (_, stop): (Agent, _) = self.client.begin(&format!("{path}/stop")).await?;
        match stop {
            Some(stop) => wait::stop(&self.client, &stop, SETTLE).await,
            // It is being deleted, which stops it too.
            None => Ok(()),
        }
    }

    /// The native document: one provider, one model, the gateway's chat endpoint.
    fn document(&self) -> Value {
        let name = &self.model.name;
        let reference = format!("openai/{name}");
        json!({
            "gateway": {
                "mode": "local",
                "auth": {
                    "mode": "password",
                    "password": { "source": "env", "provider": "default", "id": "OPENCLAW_GATEWAY_PASSWORD" },
                },
                "http": { "endpoints": { "chatCompletions": { "enabled": true } } },
            },
            "agents": {
                "defaults": {
                    "model": reference,
                    "skipBootstrap": true,
                    "models": { reference.as_str(): { "agentRuntime": { "id": "openclaw" } } },
                },
            },
            "models": {
                "providers": {
                    "openai": {
                        "baseUrl": self.model.base_url,
                        "api": "openai-responses",
                        "models": [{ "id": name, "name": name }],
                    },
                },
            },
        })
    }
}

//! The catalogue of plugins, as the selected Plugin Driver has it (spec/engine 2.1, discovery). Nothing of it is stored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Answer, Caller, ControlPlane,
    operation::{Operation, Scope, look},
};
use crate::{
    admission::Refusal,
    driver::{
        Action, CatalogPlugin, DriverKind, PluginDetails, PluginDriver, PolicyCapabilities, ResourceKind, ResourceRef,
    },
    id::{AgentId, NamespaceId},
    reason::ApiCode,
    resource::PluginId,
};

/// What an Agent can select, and which policies it can give it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginCatalogView {
    /// Which policies can be carried out.
    pub policies: PolicyCapabilities,
    /// The plugins, in the driver's order.
    pub plugins: Vec<CatalogPlugin>,
}

/// Which plugin is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NamedPlugin {
    /// Its catalogue id.
    pub plugin_id: PluginId,
}

impl ControlPlane {
    /// The catalogue, for an Agent that is to be created or for one that is there. Needs what that creation or change needs.
    pub async fn plugin_catalog(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: Option<AgentId>,
    ) -> Answer<PluginCatalogView> {
        let op = self.operation(caller, "openclaw.agents.plugins.list", Scope::Namespace(namespace));
        op.answer(async {
            let driver = self.plugin_driver(&op, namespace, agent).await?;
            let plugins = look(driver.list_catalog(&self.context()))
                .await
                .map_err(|error| Refusal::driver(DriverKind::Plugin, &error))?;
            Ok(PluginCatalogView {
                policies: driver.policy_capabilities(),
                plugins,
            })
        })
        .await
    }

    /// One plugin with its tools. Needs what the catalogue needs.
    pub async fn plugin_details(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: Option<AgentId>,
        named: &NamedPlugin,
    ) -> Answer<PluginDetails> {
        let op = self.operation(caller, "openclaw.agents.plugins.read", Scope::Namespace(namespace));
        op.answer(async {
            let driver = self.plugin_driver(&op, namespace, agent).await?;
            let reader = driver.details().ok_or(Refusal::new(ApiCode::NotImplemented))?;
            look(reader.plugin(&self.context(), &named.plugin_id))
                .await
                .map_err(|error| Refusal::driver(DriverKind::Plugin, &error))?
                .ok_or_else(Refusal::not_found)
        })
        .await
    }

    /// The selected driver, once the caller is known to be permitted; 501 without one.
    async fn plugin_driver(
        &self,
        op: &Operation<'_>,
        namespace: NamespaceId,
        agent: Option<AgentId>,
    ) -> Answer<&dyn PluginDriver> {
        match agent {
            None => {
                let collection = ResourceRef::collection(ResourceKind::Agent, namespace);
                op.require(Action::Create, collection).await?;
                self.live_namespace(namespace).await?;
            }
            Some(agent) => {
                op.require(Action::Update, ResourceRef::agent(namespace, agent)).await?;
                self.agent_row(namespace, agent).await?;
            }
        }
        self.drivers.plugin.as_deref().ok_or(Refusal::fixed(
            ApiCode::NotImplemented,
            "The Installation has no Plugin Driver.",
        ))
    }
}

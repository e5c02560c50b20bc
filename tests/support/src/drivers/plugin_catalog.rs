//! A Plugin Driver with a catalogue in memory. It stands for a vendor's marketplace, which cannot run in a test.

use async_trait::async_trait;
use occ_core::{
    driver::{
        CatalogPlugin, CatalogTool, DriverIdentity, DriverKind, EffectResult, OperationContext, PluginDetails,
        PluginDetailsReader, PluginDriver, PolicyCapabilities,
    },
    resource::{Approval, PluginId, Reviewer},
};

use super::script::Script;

/// Has one plugin, `calendar@curated`, with one tool; asks people before every action or not at all.
pub struct PluginCatalog {
    identity: DriverIdentity,
    with_details: bool,
    /// Answers of a look into the catalogue; ordinarily its plugin.
    pub list: Script<(), Vec<CatalogPlugin>>,
}

impl PluginCatalog {
    /// With this id.
    pub fn named(id: &str) -> Self {
        Self {
            identity: super::identity(DriverKind::Plugin, id, "occ/catalog"),
            with_details: true,
            list: Script::default(),
        }
    }

    /// The same, which cannot say more of a plugin than the catalogue does.
    #[must_use]
    pub fn without_details(mut self) -> Self {
        self.with_details = false;
        self
    }
}

/// The plugin of the catalogue.
fn calendar() -> CatalogPlugin {
    CatalogPlugin {
        id: id("calendar@curated"),
        name: "Calendar".to_owned(),
        description: Some("Reads and writes appointments.".to_owned()),
    }
}

fn id(text: &str) -> PluginId {
    text.parse().expect("a plugin's id")
}

#[async_trait]
impl PluginDriver for PluginCatalog {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    fn policy_capabilities(&self) -> PolicyCapabilities {
        PolicyCapabilities {
            approvals: vec![Approval::ProviderDefault, Approval::AllActions, Approval::None],
            reviewers: vec![Reviewer::Human],
            tools: true,
            approvers: true,
            driver_policy: None,
        }
    }

    async fn list_catalog(&self, cx: &OperationContext) -> EffectResult<Vec<CatalogPlugin>> {
        self.list.play(cx, (), vec![calendar()]).await
    }

    fn details(&self) -> Option<&dyn PluginDetailsReader> {
        self.with_details.then_some(self)
    }
}

#[async_trait]
impl PluginDetailsReader for PluginCatalog {
    async fn plugin(&self, _: &OperationContext, id: &PluginId) -> EffectResult<Option<PluginDetails>> {
        let plugin = calendar();
        let tools = vec![CatalogTool {
            id: "create-event".to_owned(),
            name: "Create an event".to_owned(),
            writes: true,
        }];
        Ok((plugin.id == *id).then_some(PluginDetails { plugin, tools }))
    }
}

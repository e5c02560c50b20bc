//! The Plugin contract: which plugins there are, and which policies for them can be carried out (spec/contracts 12.4).
//!
//! A draft is judged by its structure and by [`PluginDriver::validate_policies`] alone. That a plugin exists, and who it is to the
//! runtime, is looked at when a version starts (seed: Plugin selections).

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DriverIdentity, EffectResult, OperationContext};
use crate::resource::{Approval, Approver, Document, PluginId, Plugins, Reviewer};

/// A plugin of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogPlugin {
    /// Its qualified id, which selections name.
    pub id: PluginId,
    /// What it is called.
    pub name: String,
    /// What it is for, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A plugin with its tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginDetails {
    /// The plugin.
    #[serde(flatten)]
    pub plugin: CatalogPlugin,
    /// Its tools, by their ids.
    pub tools: Vec<CatalogTool>,
}

/// A tool of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogTool {
    /// Its id, which policies name.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// Whether it changes something.
    pub writes: bool,
}

/// Which policies a driver can carry out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyCapabilities {
    /// When tools may be made to ask.
    pub approvals: Vec<Approval>,
    /// Who may be asked.
    pub reviewers: Vec<Reviewer>,
    /// Whether single tools can have a policy of their own.
    pub tools: bool,
    /// Whether it can be said who approves.
    pub approvers: bool,
    /// JSON Schema of `driverPolicy`; none when there is no such policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_policy: Option<Document>,
}

/// A policy that the driver cannot carry out: where it is, and what is accepted. Holds no value of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRejection {
    /// The plugin; none for what holds for all.
    pub plugin: Option<PluginId>,
    /// A JSON pointer below the plugin's selection, in fixed words, such as `/toolDefaults/approval`.
    pub pointer: &'static str,
    /// What is accepted, as a sentence.
    pub accepted: &'static str,
}

/// Knows a catalogue of plugins.
#[async_trait]
pub trait PluginDriver: Send + Sync {
    /// Who this instance is. A version freezes its id and implementation.
    fn identity(&self) -> &DriverIdentity;

    /// Which policies it can carry out; pure.
    fn policy_capabilities(&self) -> PolicyCapabilities;

    /// Whether it can carry out these policies; pure. Asked for every draft and deployment that selects a plugin.
    fn validate_policies(&self, plugins: &Plugins, approvers: Option<&[Approver]>) -> Result<(), PolicyRejection> {
        self.policy_capabilities().check(plugins, approvers)
    }

    /// The catalogue, in the order in which people should see it.
    async fn list_catalog(&self, cx: &OperationContext) -> EffectResult<Vec<CatalogPlugin>>;

    /// One plugin with its tools, when the driver can say.
    fn details(&self) -> Option<&dyn PluginDetailsReader> {
        None
    }
}

/// Details of single plugins.
#[async_trait]
pub trait PluginDetailsReader: Send + Sync {
    /// The plugin; nothing when the catalogue has none of this id.
    async fn plugin(&self, cx: &OperationContext, id: &PluginId) -> EffectResult<Option<PluginDetails>>;
}

impl PolicyCapabilities {
    /// Whether these policies are among what can be carried out.
    pub fn check(&self, plugins: &Plugins, approvers: Option<&[Approver]>) -> Result<(), PolicyRejection> {
        let named = |approvers: Option<&[Approver]>| approvers.is_some() && !self.approvers;
        if named(approvers) {
            return Err(PolicyRejection {
                plugin: None,
                pointer: "/pluginApprovers",
                accepted: "The selected Plugin Driver cannot be told who approves.",
            });
        }
        for (id, plugin) in plugins {
            let reject = |pointer, accepted| {
                Err(PolicyRejection {
                    plugin: Some(id.clone()),
                    pointer,
                    accepted,
                })
            };
            let tools = || plugin.tools.iter().flat_map(|tools| tools.values());
            if !self.tools && plugin.tools.is_some() {
                return reject("/tools", "The selected Plugin Driver has no policies of single tools.");
            }
            let told = named(plugin.approvers.as_deref()) || tools().any(|tool| named(tool.approvers.as_deref()));
            if told {
                return reject("/approvers", "The selected Plugin Driver cannot be told who approves.");
            }
            if self.driver_policy.is_none() && plugin.driver_policy.is_some() {
                return reject("/driverPolicy", "The selected Plugin Driver has no policy of its own.");
            }
            let defaults = plugin.tool_defaults.as_ref();
            let approval = |approval: Option<Approval>| approval.is_none_or(|a| self.approvals.contains(&a));
            let reviewer = |reviewer: Option<Reviewer>| reviewer.is_none_or(|r| self.reviewers.contains(&r));
            if !defaults.is_none_or(|policy| approval(policy.approval)) {
                return reject(
                    "/toolDefaults/approval",
                    "The selected Plugin Driver has no such approval.",
                );
            }
            if !defaults.is_none_or(|policy| reviewer(policy.reviewer)) {
                return reject(
                    "/toolDefaults/reviewer",
                    "The selected Plugin Driver has no such reviewer.",
                );
            }
            if !tools().all(|policy| approval(policy.approval) && reviewer(policy.reviewer)) {
                return reject("/tools", "The selected Plugin Driver has no such approval or reviewer.");
            }
        }
        Ok(())
    }
}

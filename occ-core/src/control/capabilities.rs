//! What an Installation offers: it follows from the selected drivers (spec/engine 1.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    driver::PolicyCapabilities,
    installation::Drivers,
    resource::{Installation, PluginDriverIdentity},
};

/// The Installation, and what its drivers offer to whoever makes Agents (spec/engine 1.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallationView {
    /// The Installation.
    #[serde(flatten)]
    pub installation: Installation,
    /// What its drivers offer.
    #[serde(default, skip_serializing_if = "InstallationCapabilities::is_empty")]
    pub capabilities: InstallationCapabilities,
}

/// What the selected drivers offer. What none of them does is not there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallationCapabilities {
    /// Agents can select plugins, with these policies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_policies: Option<PluginPoliciesView>,
}

/// Which policies plugins can have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginPoliciesView {
    /// The Plugin Driver.
    pub driver: PluginDriverIdentity,
    /// What it can carry out.
    #[serde(flatten)]
    pub policies: PolicyCapabilities,
}

impl InstallationCapabilities {
    pub(super) fn of(drivers: &Drivers) -> Self {
        let plugins = drivers.plugin.as_deref();
        Self {
            plugin_policies: plugins.map(|driver| PluginPoliciesView {
                driver: PluginDriverIdentity {
                    id: driver.identity().id.clone(),
                    implementation: driver.identity().implementation.clone(),
                },
                policies: driver.policy_capabilities(),
            }),
        }
    }

    fn is_empty(&self) -> bool {
        self.plugin_policies.is_none()
    }
}

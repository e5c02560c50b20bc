//! Plugin selections: their structure, which is all that a draft checks (seed: Plugin selections; spec/engine 1.13).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

/// A plugin's qualified catalogue id: `[A-Za-z0-9._~:@-]{1,253}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct PluginId(#[schemars(regex(pattern = r"^[A-Za-z0-9._~:@-]{1,253}$"))] String);

impl<'de> Deserialize<'de> for PluginId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'~' | b':' | b'@' | b'-');
        if (1..=253).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text))
        } else {
            Err(de::Error::custom("not the id of a plugin"))
        }
    }
}

/// When a tool asks before it acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// As the provider has it.
    ProviderDefault,
    /// Before every action.
    AllActions,
    /// Before an action that writes.
    WriteActions,
    /// Never.
    None,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reviewer {
    /// A person.
    Human,
    /// A model.
    Auto,
}

/// A person who may approve, in a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Approver {
    /// The channel.
    #[schemars(length(min = 1, max = 200))]
    pub channel: String,
    /// The person there.
    #[schemars(length(min = 1, max = 200))]
    pub id: String,
}

/// What is said of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolPolicy {
    /// Whether it may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// When it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Who is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<Reviewer>,
    /// Who may approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Vec<Approver>>,
}

/// One selected plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginSelection {
    /// Whether it is enabled.
    pub enabled: bool,
    /// Who may approve for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Vec<Approver>>,
    /// What holds for its tools that say nothing themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_defaults: Option<ToolPolicy>,
    /// What only the Plugin Driver understands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_policy: Option<super::Document>,
    /// What holds for single tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeMap<String, ToolPolicy>>,
}

/// The plugins of an Agent, whole.
pub type Plugins = BTreeMap<PluginId, PluginSelection>;

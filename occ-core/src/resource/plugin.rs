//! Plugin selections: their structure, which is all that a draft checks (seed: Plugin selections; spec/engine 1.13).

use std::{collections::BTreeMap, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

/// A plugin's qualified catalogue id: `[A-Za-z0-9._~:@-]{1,253}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct PluginId(#[schemars(regex(pattern = r"^[A-Za-z0-9._~:@-]{1,253}$"))] String);

impl PluginId {
    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text is not the id of a plugin. Never holds the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a plugin")]
pub struct InvalidPluginId;

impl FromStr for PluginId {
    type Err = InvalidPluginId;
    fn from_str(text: &str) -> Result<Self, InvalidPluginId> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'~' | b':' | b'@' | b'-');
        if (1..=253).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidPluginId)
        }
    }
}

impl<'de> Deserialize<'de> for PluginId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

impl ToolPolicy {
    fn is_empty(&self) -> bool {
        self.enabled.is_none() && self.approval.is_none() && self.reviewer.is_none() && self.approvers.is_none()
    }
}

impl PluginSelection {
    /// What is wrong with its structure, beyond its form: a JSON pointer below it, and what is accepted.
    pub fn fault(&self) -> Option<(String, &'static str)> {
        const EMPTY: &str = "A part of a plugin's policy says something, or is left out.";
        const TOOL: &str = "The id of a tool has 1 to 1024 characters, without white space and control characters.";
        if self.tool_defaults.as_ref().is_some_and(ToolPolicy::is_empty) {
            return Some(("/toolDefaults".to_owned(), EMPTY));
        }
        if self.driver_policy.as_ref().is_some_and(super::Document::is_empty) {
            return Some(("/driverPolicy".to_owned(), EMPTY));
        }
        let Some(tools) = &self.tools else { return None };
        if tools.is_empty() {
            return Some(("/tools".to_owned(), EMPTY));
        }
        let named = |id: &str| {
            let forbidden = |c: char| c.is_whitespace() || c.is_control();
            (1..=1024).contains(&id.chars().count()) && !id.contains(forbidden)
        };
        tools.iter().find_map(|(id, policy)| {
            let at = || format!("/tools/{}", id.replace('~', "~0").replace('/', "~1"));
            if !named(id) {
                Some(("/tools".to_owned(), TOOL))
            } else if policy.is_empty() {
                Some((at(), EMPTY))
            } else {
                None
            }
        })
    }
}

/// The plugins of an Agent, whole.
pub type Plugins = BTreeMap<PluginId, PluginSelection>;

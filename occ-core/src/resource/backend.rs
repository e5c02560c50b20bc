//! Backends: services that an Installation configures and Agents may be associated with (seed: Backend association).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BackendId;

/// What sort of service a Backend is. Experimental.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// A `ChatGPT` workspace, whose accounts Agents may use.
    Chatgpt,
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A Backend, as the Installation configures it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backend {
    /// What Agents refer to.
    pub id: BackendId,
    /// What sort of service it is.
    #[serde(rename = "type")]
    pub kind: BackendKind,
}

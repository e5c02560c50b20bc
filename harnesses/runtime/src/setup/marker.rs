//! The durable record in a workspace that its initial files were applied.

use occ_core::{
    id::{AgentId, NamespaceId},
    resource::WorkspaceSetup,
};
use serde::{Deserialize, Serialize};

use crate::spec::Workspace;

/// What the marker says. A text with any other member is not one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Marker {
    id: String,
    namespace_id: NamespaceId,
    agent_id: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    defaults_id: Option<String>,
}

impl Marker {
    /// Its name in the workspace.
    pub const FILE: &'static str = ".oce-workspace-setup.json";

    /// The marker of this setup.
    pub fn of(workspace: &Workspace, setup: &WorkspaceSetup) -> Self {
        Self {
            id: setup.id.to_string(),
            namespace_id: workspace.namespace_id,
            agent_id: workspace.agent_id,
            defaults_id: setup.defaults_id.clone(),
        }
    }

    /// Reads a marker.
    pub fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// The marker as a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a marker has string keys and no failing value")
    }
}

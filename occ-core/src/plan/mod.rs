//! The narrow waist: what a Harness wants to run, in words that any Compute understands.
//!
//! A Harness plans; a Compute realises. The plan names no host path, no port number and no secret byte: those are
//! [`Text`] segments and [`EnvValue::Secret`] references, which the Compute fills from its [`Layout`] and which the
//! supervisor receives at launch. So N Harnesses and M Computes need N + M implementations.

mod component;
mod text;

pub use component::{Component, EnvValue, PlannedFile, Probe, Readiness, Role, SecretSlot, StopPolicy, WorkspaceInit};
pub use text::{Directory, Layout, Segment, Text, Unresolved};

use serde::{Deserialize, Serialize};

/// A whole workload: one component (gateway with its built-in Harness) or two (gateway and Harness).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadPlan {
    /// The components, the gateway first.
    pub components: Vec<Component>,
}

impl WorkloadPlan {
    /// The component that serves the Agent's gateway.
    pub fn gateway(&self) -> Option<&Component> {
        self.components
            .iter()
            .find(|c| matches!(c.role, Role::Gateway | Role::Combined))
    }
}

//! Deployment status: what the saved rows say of a deployment (seed: Deployment status; spec/engine 9).
//!
//! Pure: no runtime is asked, and no clock is read. The store has judged the lease by its own clock already.

mod derive;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use derive::derive;

use crate::{
    id::{AgentId, NamespaceId, RevisionId},
    reason::{Failure, Pending},
    time::Timestamp,
    work::{FailureData, Warning},
};

/// How far a deployment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeploymentStatus {
    /// No live claim.
    Queued,
    /// A live worker claim.
    Running,
    /// The version was selected by its own work, or was selected already.
    Succeeded,
    /// Terminal failure, or completion without activation.
    Failed,
}

impl DeploymentStatus {
    /// Whether it can still change.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// A deployment, as `GET .../deployments/:deploymentId` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deployment {
    /// The version's id.
    pub deployment_id: RevisionId,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// The owning Agent.
    pub agent_id: AgentId,
    /// How far it is.
    pub status: DeploymentStatus,
    /// Why it failed.
    pub error: Option<DeploymentError>,
    /// Plugins that the version runs without.
    pub warnings: Vec<Warning>,
    /// What it is doing; null once it is over.
    pub progress: Option<Progress>,
    /// What becomes of a runtime that is left over.
    pub cleanup: Option<Cleanup>,
}

/// Why a deployment failed: a fixed code, its fixed message, and allowlisted facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeploymentError {
    /// The code.
    pub code: Failure,
    /// Its message.
    pub message: Cow<'static, str>,
    /// Allowlisted facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<FailureData>,
}

/// What a deployment that is not over is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// What the latest attempt recorded; null before one did.
    pub last_attempt: Option<Attempt>,
    /// The earliest moment at which a worker may take it up; null while one has it.
    pub next_attempt_at: Option<Timestamp>,
}

/// Why a deployment waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// The code.
    pub code: Pending,
    /// Its message; for a refused candidate it names the refusal.
    pub message: Cow<'static, str>,
    /// When it was first recorded.
    pub at: Timestamp,
}

/// What becomes of a runtime that is left over from a deployment that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cleanup {
    /// How far it is.
    pub status: CleanupStatus,
    /// When queued work that cleans it up is due; null while none is: the next deployment, stop or deletion does it.
    pub next_attempt_at: Option<Timestamp>,
}

/// How far a cleanup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CleanupStatus {
    /// Compute may still hold something of it.
    Pending,
}

//! The Harness contract: turns an admitted revision into a plan (spec/contracts 10).

use super::{ComputeProfile, DriverIdentity, GatewaySettings};
use crate::{
    plan::WorkloadPlan,
    resource::{Document, ExecutionMode, HarnessAuthMethod, Snapshot},
};

/// What a native document selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HarnessSelection {
    /// The Harness's id, such as `openclaw` or `codex`.
    pub harness: String,
}

/// The native document is at fault: 400 with this text, which holds no value of the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DocumentProblem {
    /// A JSON pointer to the setting; its keys are the document's, its values are not repeated.
    pub pointer: String,
    /// What is wrong and what is accepted.
    pub message: &'static str,
}

/// What a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    /// The admitted revision.
    pub snapshot: &'a Snapshot,
    /// What the workload will find.
    pub compute: ComputeProfile,
}

/// Runs agents. Every method is pure.
pub trait Harness: Send + Sync {
    /// Who this instance is. Its `id` is the Harness's id in revisions.
    fn identity(&self) -> &DriverIdentity;

    /// The descriptor's version; pinned by revisions.
    fn version(&self) -> &str;

    /// The modes that it can run in.
    fn modes(&self) -> &[ExecutionMode];

    /// Which Harness the document selects; not necessarily this one.
    fn select(&self, document: &Document) -> Result<HarnessSelection, DocumentProblem>;

    /// Whether this Harness can run the document with this authentication: no literal credential where a reference belongs, no
    /// setting that it cannot honour.
    fn validate(
        &self,
        document: &Document,
        mode: ExecutionMode,
        auth: HarnessAuthMethod,
    ) -> Result<(), DocumentProblem>;

    /// What can be said of a document when it is saved, before its topology and authentication are known: no literal
    /// credential where a reference belongs (spec/engine 1.5).
    fn check_saved(&self, _document: &Document) -> Result<(), DocumentProblem> {
        Ok(())
    }

    /// SHA-256, in hexadecimal, of the stock workspace files of the runtime that it plans for; `None` when it does not know
    /// them. A new Agent whose `workspaceDefaultsId` is another one is refused (seed: Agents, "Workspace files").
    fn workspace_defaults(&self) -> Option<&str> {
        None
    }

    /// The gateway settings in neutral words, for the Compute to judge.
    fn gateway_settings(&self, document: &Document) -> Result<GatewaySettings, DocumentProblem>;

    /// The plan. Deterministic: the same input gives the same plan.
    fn plan(&self, input: PlanInput<'_>) -> Result<WorkloadPlan, DocumentProblem>;
}

//! Files of an Agent's live workspace (seed: Live file access; spec/engine 12).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Answer, Caller, ControlPlane,
    commit::Tries,
    operation::{Operation, Scope, effect, look},
    runtime::Runtime,
};
use crate::{
    admission::{DetailCode, Refusal},
    audit::{AuditOutcome, Authorization},
    driver::{Action, DriverKind, EffectError, Fault, FaultKind, LiveWorkspace, ResourceRef},
    id::{AgentId, NamespaceId},
    reason::ApiCode,
    resource::{Agent, AgentStatus, DesiredRuntimeState, InvalidWorkspaceFile, WorkspaceFileName, WorkspaceFiles},
    store::Change,
};

/// A file of a live workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceFileView {
    /// Its name.
    pub name: WorkspaceFileName,
    /// Its content.
    pub content: String,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WrittenFile {
    /// Its name.
    pub name: WorkspaceFileName,
    /// Its size in UTF-8 bytes.
    pub size: usize,
}

const AWAY: &str = "Workspace access is unavailable.";

impl ControlPlane {
    /// A file of the selected version's live workspace. Needs `read` of the Agent.
    pub async fn workspace_file(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
        name: WorkspaceFileName,
    ) -> Answer<WorkspaceFileView> {
        let op = self.operation(
            caller,
            "openclaw.agents.workspace.files.read",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            op.require(Action::Read, ResourceRef::agent(namespace, agent)).await?;
            let row = self.agent_row(namespace, agent).await?.agent;
            let (runtime, workspace) = self.live_workspace(&row).await?;
            let cx = self.context();
            let content = look(workspace.read(&cx, &runtime.target, name)).await;
            let content = content.map_err(|error| {
                tracing::warn!(%error, "a workspace file could not be read");
                Refusal::unavailable(AWAY)
            })?;
            let content = content.ok_or_else(Refusal::not_found)?;
            // What a gateway hands out is no better than what a caller sends.
            WorkspaceFiles::check(&content).map_err(|_| Refusal::unavailable(AWAY))?;
            Ok(WorkspaceFileView { name, content })
        })
        .await
    }

    /// Creates or replaces a file of the selected version's live workspace. Needs `operate` of the Agent.
    pub async fn write_workspace_file(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
        name: WorkspaceFileName,
        content: &str,
    ) -> Answer<WrittenFile> {
        let op = self.operation(
            caller,
            "openclaw.agents.workspace.files.write",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            let (message, code) = match WorkspaceFiles::check(content) {
                Ok(()) => ("", None),
                Err(InvalidWorkspaceFile::TooLong) => {
                    ("A workspace file must fit within 16 KiB.", Some(DetailCode::TooLong))
                }
                Err(InvalidWorkspaceFile::Nul) => {
                    ("A workspace file must not contain NUL.", Some(DetailCode::InvalidValue))
                }
            };
            if let Some(code) = code {
                return Err(Refusal::invalid(message).at("/content", code));
            }
            let allowed = op
                .require(Action::Operate, ResourceRef::agent(namespace, agent))
                .await?;
            let row = self.agent_row(namespace, agent).await?.agent;
            if row.status == AgentStatus::Deleting {
                return Err(Refusal::new(ApiCode::AgentDeleting));
            }
            if row.desired_runtime_state != DesiredRuntimeState::Running {
                return Err(Refusal::conflict(
                    "The Agent is stopping. Deploy it to change its workspace.",
                ));
            }
            let (runtime, workspace) = self.live_workspace(&row).await?;
            let cx = self.context();
            let file = File { row: &row, name };
            match effect(workspace.write(&cx, &runtime.target, name, content)).await {
                Ok(()) => {
                    let size = content.len();
                    self.written(&op, &allowed, &file, Ok(size)).await?;
                    Ok(WrittenFile { name, size })
                }
                Err(error) => {
                    tracing::warn!(%error, "a workspace file could not be written");
                    let (reason, refusal) = match error {
                        EffectError::UnknownOutcome => ("UNKNOWN_OUTCOME", Refusal::new(ApiCode::UnknownOutcome)),
                        EffectError::Fault(Fault {
                            kind: FaultKind::Missing,
                            ..
                        }) => ("FILE_MISSING", Refusal::not_found()),
                        _ => ("DEPENDENCY_UNAVAILABLE", Refusal::unavailable(AWAY)),
                    };
                    self.written(&op, &allowed, &file, Err(reason)).await?;
                    Err(refusal)
                }
            }
        })
        .await
    }

    /// Records what became of a write. One that cannot be recorded is answered as one whose outcome is not known.
    async fn written(
        &self,
        op: &Operation<'_>,
        allowed: &Authorization,
        file: &File<'_>,
        outcome: Result<usize, &'static str>,
    ) -> Answer<()> {
        let resource = ResourceRef::agent(file.row.namespace_id, file.row.id);
        let mut event = op.event(resource, allowed).with("file", file.name.as_str());
        event = match outcome {
            Ok(size) => event.with("size", size),
            Err(reason) => event.because(reason),
        };
        if outcome.is_err() {
            event.outcome = AuditOutcome::Failure;
        }
        let recorded = Tries::new(&*self.store).commit_alone(Change::new().audit(event)).await;
        recorded.map_err(|_| Refusal::new(ApiCode::UnknownOutcome))
    }

    /// The selected version and the way into its workspace.
    async fn live_workspace(&self, agent: &Agent) -> Answer<(Runtime, &dyn LiveWorkspace)> {
        let none = || Refusal::unavailable("No version of the Agent is selected yet.");
        let active = agent.active_revision_id.ok_or_else(none)?;
        let runtime = self.runtime_of(agent.namespace_id, agent.id, active).await?;
        let workspace = self.drivers.compute.live_workspace();
        let workspace = workspace.ok_or(Refusal::driver_away(DriverKind::Compute));
        Ok((runtime, workspace?))
    }
}

/// A file of an Agent.
struct File<'a> {
    row: &'a Agent,
    name: WorkspaceFileName,
}

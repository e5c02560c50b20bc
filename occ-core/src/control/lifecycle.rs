//! Stop and deletion of Agents (seed: Stop, Deletion; spec/engine 3.2).

use std::{borrow::Cow, collections::BTreeSet};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    Answer, Caller, ControlPlane,
    operation::{Operation, Scope},
    retry::FailedDeletion,
};
use crate::{
    admission::Refusal,
    audit::{AuditEvent, Authorization},
    driver::{Action, ResourceKind, ResourceRef},
    iam::ExactResource,
    id::{AgentId, NamespaceId},
    reason::{ApiCode, Failure},
    resource::{Agent, AgentStatus, DesiredRuntimeState},
    status::DeploymentStatus,
    store::{AgentRow, BindingsOf, Change, Expect, WorkState, Write},
    work::{NewWork, Target},
};

/// An accepted stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopRequest {
    /// The Agent, with its new desired state.
    pub agent: Agent,
    /// Names the stop for [`ControlPlane::stop_status`]; none when the Agent is being deleted, which stops it too.
    pub operation: Option<Uuid>,
}

/// How far a stop is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopView {
    /// Which stop.
    pub operation_id: Uuid,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// The Agent.
    pub agent_id: AgentId,
    /// Queued, running, succeeded or failed, as a deployment's.
    pub status: DeploymentStatus,
    /// Why it failed.
    pub error: Option<StopError>,
}

/// Why a stop failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StopError {
    /// The code.
    pub code: Failure,
    /// Its message.
    pub message: Cow<'static, str>,
}

impl ControlPlane {
    /// [`request_stop`](Self::request_stop), for callers who do not follow the stop.
    pub async fn stop_agent(&self, caller: &Caller, namespace: NamespaceId, id: AgentId) -> Answer<Agent> {
        Ok(self.request_stop(caller, namespace, id).await?.agent)
    }

    /// Sets the desired state to stopped and queues the stop; each request is work of its own, and repeats are harmless. An
    /// Agent that is being deleted is returned as it is.
    pub async fn request_stop(&self, caller: &Caller, namespace: NamespaceId, id: AgentId) -> Answer<StopRequest> {
        let op = self.operation(caller, "openclaw.agents.stop", Scope::Namespace(namespace));
        op.answer(async {
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Operate, ResourceRef::agent(namespace, id)).await?;
                let AgentRow { mut agent, version, .. } = self.agent_row(namespace, id).await?;
                if agent.status == AgentStatus::Deleting {
                    return Ok(StopRequest { agent, operation: None });
                }
                agent.desired_runtime_state = DesiredRuntimeState::Stopped;
                let operation = crate::randomness::uuid();
                let target = Target::AgentStopped {
                    namespace,
                    agent: id,
                    operation,
                };
                let change = Change::new()
                    .expect(Expect::Agent(id, version))
                    .write(state(&agent))
                    .write(Write::Enqueue(op.work(target)))
                    .audit(op.event(ResourceRef::agent(namespace, id), &allowed));
                if tries.commit(change).await? {
                    let operation = Some(operation);
                    return Ok(StopRequest { agent, operation });
                }
            }
        })
        .await
    }

    /// How far a requested stop is. It is over when nothing of the Agent runs that its Compute knows of; the Agent's pointer
    /// alone does not say so: a version that was never selected may run as well. Needs read on the Agent.
    pub async fn stop_status(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
        operation: Uuid,
    ) -> Answer<StopView> {
        let op = self.operation(caller, "openclaw.agents.read", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::agent(namespace, agent)).await?;
            self.agent_row(namespace, agent).await?;
            let target = Target::AgentStopped {
                namespace,
                agent,
                operation,
            };
            let state = self.store.work_state(&target.key()).await?;
            let state = state.ok_or_else(|| Refusal::new(ApiCode::NotFound))?;
            let (status, error) = match state {
                WorkState::Queued { .. } => (DeploymentStatus::Queued, None),
                WorkState::Running { .. } => (DeploymentStatus::Running, None),
                WorkState::Succeeded { .. } => (DeploymentStatus::Succeeded, None),
                WorkState::Failed { failure, .. } => (DeploymentStatus::Failed, Some(failure)),
            };
            Ok(StopView {
                operation_id: operation,
                namespace_id: namespace,
                agent_id: agent,
                status,
                error: error.map(|code| StopError {
                    code,
                    message: code.message().into(),
                }),
            })
        })
        .await
    }

    /// Begins the deletion of an Agent, or repeats a failed one. While one is queued or running it changes nothing.
    pub async fn delete_agent(&self, caller: &Caller, namespace: NamespaceId, id: AgentId) -> Answer<Agent> {
        let op = self.operation(caller, "openclaw.agents.delete", Scope::Namespace(namespace));
        op.answer(async {
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Delete, ResourceRef::agent(namespace, id)).await?;
                let AgentRow { mut agent, version, .. } = self.agent_row(namespace, id).await?;
                let work = op.work(Target::AgentDeleted { namespace, agent: id });
                let next = if agent.status == AgentStatus::Deleting {
                    match self.retry_agent(&op, &allowed, &work).await? {
                        Some(event) => Change::new().write(Write::Requeue(work)).audit(event),
                        None => return Ok(agent),
                    }
                } else {
                    agent.desired_runtime_state = DesiredRuntimeState::Stopped;
                    agent.status = AgentStatus::Deleting;
                    let event = self
                        .removal_event(op.event(ResourceRef::agent(namespace, id), &allowed), &agent)
                        .await?;
                    Change::new()
                        .write(Write::DropWorkspaceSetup(id))
                        .write(Write::Enqueue(work))
                        .audit(event)
                };
                // The write of the row also fences two callers that repeat a deletion at once.
                let mut change = next.expect(Expect::Agent(id, version));
                change.writes.insert(0, state(&agent));
                if tries.commit(change).await? {
                    return Ok(agent);
                }
            }
        })
        .await
    }

    /// The record of a repeated deletion; `None` while one is under way.
    async fn retry_agent(
        &self,
        op: &Operation<'_>,
        allowed: &Authorization,
        work: &NewWork,
    ) -> Answer<Option<AuditEvent>> {
        let Some(WorkState::Failed {
            actor: initiator,
            attempts,
            failure,
            ..
        }) = self.store.work_state(&work.target.key()).await?
        else {
            return Ok(None);
        };
        let failed = FailedDeletion {
            initiator,
            attempts,
            failure,
        };
        failed.admit(op, allowed).await?;
        let mut event = failed.describe(op.event(work.target.resource(), allowed));
        "openclaw.agents.delete.retry".clone_into(&mut event.action);
        Ok(Some(event))
    }

    /// Names the access bindings that the completed deletion removes: those of the Agent's principal, and those on the Agent.
    async fn removal_event(&self, event: AuditEvent, agent: &Agent) -> Answer<AuditEvent> {
        let exact = ExactResource {
            kind: ResourceKind::Agent,
            id: agent.id.to_string(),
        };
        let mut removed = BTreeSet::new();
        for of in [
            BindingsOf::Principal(&agent.service_principal_id),
            BindingsOf::Resource(&exact),
        ] {
            let bindings = self.store.access_bindings(Some(agent.namespace_id), of).await?;
            removed.extend(bindings.into_iter().map(|binding| binding.id));
        }
        let event = event.with("servicePrincipalId", agent.service_principal_id.as_str());
        Ok(if removed.is_empty() {
            event
        } else {
            event.with("accessBindingIds", Vec::from_iter(removed))
        })
    }
}

/// What the owner asks of the Agent now. Its settings are not of it: they need not even be readable.
const fn state(agent: &Agent) -> Write {
    Write::AgentState {
        id: agent.id,
        desired: agent.desired_runtime_state,
        status: agent.status,
    }
}

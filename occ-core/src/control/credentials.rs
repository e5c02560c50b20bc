//! Credentials that an operation generated beside a deletion of their Agent.

use super::{Answer, ControlPlane, runtime::agent_ref};
use crate::resource::{Agent, AgentStatus};

/// What an operation takes back when a deletion came first: that may have looked before the credentials were there, and nobody
/// looks after it.
pub(super) struct Provisioned<'a> {
    plane: &'a ControlPlane,
    agent: Option<Agent>,
}

impl<'a> Provisioned<'a> {
    pub(super) const fn new(plane: &'a ControlPlane) -> Self {
        Self { plane, agent: None }
    }

    /// Credentials of this Agent are about to be generated.
    pub(super) fn of(&mut self, agent: &Agent) {
        self.agent = Some(agent.clone());
    }

    /// Before the operation answers. After a refusal the Agent may be on its way out; while it is there, its credentials stay.
    pub(super) async fn kept<T>(self, answer: Answer<T>) -> Answer<T> {
        let (Some(agent), Err(_)) = (&self.agent, &answer) else {
            return answer;
        };
        let Ok(now) = self.plane.store.agent(agent.namespace_id, agent.id).await else {
            return answer;
        };
        let stays = now.is_some_and(|row| row.agent.status == AgentStatus::Active);
        if !stays
            && let Some(credentials) = self.plane.drivers.compute.runtime_credentials()
            && let Err(cause) = credentials.delete(&self.plane.context(), &agent_ref(agent)).await
        {
            tracing::error!(agent = %agent.id, %cause, "credentials of a deleted Agent are left");
        }
        answer
    }
}

//! Credentials that an operation generated beside a deletion of their Agent.

use std::time::Duration;

use tracing::Instrument as _;

use super::{
    Answer, ControlPlane,
    operation::{DRIVER_TIMEOUT, effect},
    runtime::agent_ref,
};
use crate::resource::{Agent, AgentStatus};

/// The first pause after a store or a driver that does not answer; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

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
        let (Some(agent), Err(_)) = (self.agent, &answer) else {
            return answer;
        };
        // What refused the operation, such as a store that is away, may be in the way of this as well. It goes on when the caller
        // has waited long enough.
        let taken_back = tokio::spawn(take_back(self.plane.clone(), agent).in_current_span());
        let _ = tokio::time::timeout(DRIVER_TIMEOUT, taken_back).await;
        answer
    }
}

/// Looks whether the Agent stays, and deletes its credentials when it does not, until both are done.
async fn take_back(plane: ControlPlane, agent: Agent) {
    let Some(credentials) = plane.drivers.compute.runtime_credentials() else {
        return;
    };
    let mut pause = FIRST_PAUSE;
    loop {
        match plane.store.agent(agent.namespace_id, agent.id).await {
            Ok(Some(row)) if row.agent.status == AgentStatus::Active => return,
            Ok(_) => match effect(credentials.delete(&plane.context(), &agent_ref(&agent))).await {
                Ok(()) => return,
                Err(cause) => {
                    tracing::error!(agent = %agent.id, %cause, "credentials of a deleted Agent are left so far");
                }
            },
            Err(cause) => tracing::warn!(agent = %agent.id, %cause, "whether credentials must go is not known so far"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

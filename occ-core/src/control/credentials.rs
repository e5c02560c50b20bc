//! Transport credentials that an operation has the Compute generate.

use uuid::Uuid;

use super::{
    Answer, ControlPlane,
    commit::{Tries, Uncommitted},
    operation::{effect, look},
    runtime::{agent_ref, credentials_refusal},
};
use crate::{
    admission::Refusal,
    audit::AuditEvent,
    driver::{DriverKind, EffectError, OperationContext},
    id::AgentId,
    store::{AgentRow, Change, Expect, Provisioning},
};

/// What an operation generates, recorded before the Compute is asked: a deletion that comes first waits until it is over.
pub(super) struct Generated<'a> {
    plane: &'a ControlPlane,
    operation: Uuid,
    agent: Option<AgentId>,
    /// Whether something that was cut off may still come.
    uncertain: bool,
}

impl<'a> Generated<'a> {
    pub(super) fn new(plane: &'a ControlPlane) -> Self {
        Self {
            plane,
            operation: crate::randomness::uuid(),
            agent: None,
            uncertain: false,
        }
    }

    /// Generates the Agent's credentials without ever overwriting, and looks that they exist (spec/contracts 4.5). That it begins is in the
    /// audit, whatever becomes of it. `false` when something changed before, and the operation should look again.
    pub(super) async fn provide(
        &mut self,
        cx: &OperationContext,
        row: &AgentRow,
        begins: AuditEvent,
        tries: &mut Tries<'_>,
    ) -> Answer<bool> {
        let Some(credentials) = self.plane.drivers.compute.runtime_credentials() else {
            return Ok(true);
        };
        let store = &*self.plane.store;
        let provisioning = Provisioning::of(store, row.agent.id).await?;
        let begun = provisioning.begun(self.operation, store.now().await?);
        let recorded = Change::new()
            .expect(Expect::Agent(row.agent.id, row.version))
            .state(vec![begun])
            .audit(begins.with("phase", "begun"));
        match tries.commit(recorded).await {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(Uncommitted::Certain(refusal)) => return Err(refusal),
            // A record of what then never begins does no harm.
            Err(Uncommitted::Unknown(_)) => {
                return Err(Refusal::unavailable("The database is unavailable; nothing was done."));
            }
        }
        self.agent = Some(row.agent.id);
        let agent = agent_ref(&row.agent);
        let made = effect(credentials.provision(cx, &agent)).await;
        self.uncertain |= made == Err(EffectError::UnknownOutcome);
        made.map_err(|error| credentials_refusal(&error))?;
        match look(credentials.exist(cx, &agent)).await {
            Ok(true) => Ok(true),
            Ok(false) => Err(Refusal::driver_away(DriverKind::Compute)),
            Err(error) => Err(credentials_refusal(&error)),
        }
    }

    /// Once the operation asks for nothing more. What cannot be taken down now keeps a deletion waiting for as long as it may still come.
    pub(super) async fn over(self) {
        let Some(agent) = self.agent.filter(|_| !self.uncertain) else {
            return;
        };
        let store = &*self.plane.store;
        let mut tries = Tries::new(store);
        let ended = async {
            loop {
                let Some(ended) = Provisioning::of(store, agent).await?.ended(self.operation) else {
                    return Ok::<_, Refusal>(());
                };
                if tries.commit(Change::new().state(vec![ended])).await? {
                    return Ok(());
                }
            }
        };
        if let Err(refusal) = ended.await {
            tracing::warn!(%agent, code = refusal.code().code(), "that credentials are generated could not be taken down");
        }
    }
}

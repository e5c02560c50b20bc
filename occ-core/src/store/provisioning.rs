//! Transport credentials that are being generated, as they are recorded before the Compute is asked (spec/engine 5.5).
//!
//! Whatever cuts a generation off, the deletion of the Agent finds it here, and does not look for credentials before none can come any more.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Store, StoreError, StoreResult};
use crate::{driver::StateWrite, id::AgentId, time::Timestamp};

/// Whose records these are; no driver has such a kind.
const OWNER: &str = "engine/provisioning";
/// For how long what was begun and is not known to have ended may still take effect: 30 seconds of the call, 30 that a Compute has to end
/// what was cut off, and the time between the record and the call.
const LATE: Duration = Duration::from_secs(70);

/// What is recorded of one Agent.
pub(crate) struct Provisioning {
    agent: AgentId,
    under_way: Vec<Effect>,
    /// Of the record, if there is one.
    version: Option<u64>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Effect {
    operation: Uuid,
    since: Timestamp,
}

impl Provisioning {
    pub(crate) async fn of(store: &dyn Store, agent: AgentId) -> StoreResult<Self> {
        let record = store.read(OWNER, &agent.to_string()).await;
        let record = record.map_err(|_| StoreError::Unavailable)?;
        let under_way = record.as_ref().map(|entry| serde_json::from_slice(&entry.value));
        let unreadable = |_| StoreError::Corrupt("record of credentials that are being generated");
        Ok(Self {
            agent,
            under_way: under_way.transpose().map_err(unreadable)?.unwrap_or_default(),
            version: record.map(|entry| entry.version),
        })
    }

    /// Whether credentials may still come that nobody has seen.
    pub(crate) fn is_under_way(&self, now: Timestamp) -> bool {
        self.under_way.iter().any(|effect| now.since(effect.since) < LATE)
    }

    /// The record when this operation is about to ask the Compute. What lies too far back is forgotten.
    pub(crate) fn begun(mut self, operation: Uuid, now: Timestamp) -> StateWrite {
        self.under_way
            .retain(|effect| effect.operation != operation && now.since(effect.since) < LATE);
        self.under_way.push(Effect { operation, since: now });
        self.write()
    }

    /// The record once it is known that this operation asks the Compute no more; nothing when there is none of it.
    pub(crate) fn ended(mut self, operation: Uuid) -> Option<StateWrite> {
        let before = self.under_way.len();
        self.under_way.retain(|effect| effect.operation != operation);
        (self.under_way.len() < before).then(|| self.write())
    }

    /// The record once its Agent is gone; nothing when there is none.
    pub(crate) fn over(mut self) -> Option<StateWrite> {
        self.version?;
        self.under_way.clear();
        Some(self.write())
    }

    fn write(self) -> StateWrite {
        let value = (!self.under_way.is_empty()).then(|| serde_json::json!(self.under_way).to_string().into_bytes());
        StateWrite {
            driver: OWNER.to_owned(),
            key: self.agent.to_string(),
            expected: self.version,
            value,
        }
    }
}

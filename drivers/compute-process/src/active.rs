//! Which version is on the Agent's route.

use occ_core::{driver::RevisionRef, id::RevisionId};
use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    naming::AgentPaths,
    ownership, storage,
};

const ACTIVE_MAX_BYTES: u64 = 4096;

/// The version on the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Active {
    pub(crate) revision_id: RevisionId,
    pub(crate) number: u64,
}

/// The version on the route, if there is one.
pub(crate) fn read(agent: &AgentPaths) -> Result<Option<Active>> {
    match storage::read(&agent.active(), ACTIVE_MAX_BYTES)? {
        None => Ok(None),
        Some(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|_| Error::Foreign),
    }
}

/// Puts the version on the route.
pub(crate) fn select(agent: &AgentPaths, target: &RevisionRef) -> Result<()> {
    let active = Active {
        revision_id: target.id,
        number: target.number,
    };
    if read(agent)? == Some(active) {
        Ok(())
    } else {
        storage::write(&agent.active(), &ownership::encode(&active)?)
    }
}

/// Takes the version off the route, if it is on it.
pub(crate) fn withdraw(agent: &AgentPaths, target: RevisionId) -> Result<()> {
    if read(agent)?.is_some_and(|active| active.revision_id == target) {
        storage::remove_file(&agent.active())?;
        storage::sync_parent(&agent.active())?;
    }
    Ok(())
}

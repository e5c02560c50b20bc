//! The marks that every object carries. What lacks them is not touched.

use std::path::Path;

use occ_core::{
    driver::{AgentRef, DriverIdentity, RevisionRef},
    id::{AgentId, NamespaceId, RevisionId},
    resource::PrincipalId,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    error::{Error, Result},
    naming, storage,
};

const MARKER_MAX_BYTES: u64 = 16 * 1024;

/// Which driver made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Owner {
    driver_id: String,
    implementation: String,
}

impl Owner {
    pub(crate) fn new(identity: &DriverIdentity) -> Self {
        Self {
            driver_id: identity.id.clone(),
            implementation: identity.implementation.clone(),
        }
    }
}

/// The mark of a Namespace's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NamespaceMarker {
    owner: Owner,
    namespace_id: NamespaceId,
}

impl NamespaceMarker {
    pub(crate) fn new(owner: &Owner, namespace_id: NamespaceId) -> Self {
        Self {
            owner: owner.clone(),
            namespace_id,
        }
    }
}

/// The mark of an Agent's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AgentMarker {
    owner: Owner,
    namespace_id: NamespaceId,
    agent_id: AgentId,
    service_principal_id: PrincipalId,
}

impl AgentMarker {
    pub(crate) fn new(owner: &Owner, agent: &AgentRef) -> Self {
        Self {
            owner: owner.clone(),
            namespace_id: agent.namespace_id,
            agent_id: agent.id,
            service_principal_id: agent.service_principal_id.clone(),
        }
    }
}

/// The mark of a version's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RevisionMarker {
    owner: Owner,
    namespace_id: NamespaceId,
    agent_id: AgentId,
    pub(crate) revision_id: RevisionId,
    pub(crate) number: u64,
    /// SHA-256 of the snapshot that was admitted: the same id with another one is not this version.
    pub(crate) digest: String,
}

impl RevisionMarker {
    pub(crate) fn new(owner: &Owner, target: &RevisionRef, digest: &str) -> Self {
        Self {
            owner: owner.clone(),
            namespace_id: target.agent.namespace_id,
            agent_id: target.agent.id,
            revision_id: target.id,
            number: target.number,
            digest: digest.to_owned(),
        }
    }

    /// Whether it marks `target`, whose digest the caller may not know.
    pub(crate) fn marks(&self, owner: &Owner, target: &RevisionRef) -> bool {
        *self == Self::new(owner, target, &self.digest)
    }
}

/// Whether a directory is there, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Absent,
    Own,
}

/// Reads a marker. An unreadable one is foreign: this driver writes markers whole or not at all.
pub(crate) fn read_marker<M: DeserializeOwned>(path: &Path) -> Result<Option<M>> {
    match storage::read(path, MARKER_MAX_BYTES)? {
        None => Ok(None),
        Some(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|_| Error::Foreign),
    }
}

/// Looks at the directory that should carry `wanted`. Anything else in its place is refused.
pub(crate) fn look<M: DeserializeOwned + PartialEq>(dir: &Path, marker: &Path, wanted: &M) -> Result<Presence> {
    match std::fs::symlink_metadata(dir) {
        Err(error) if storage::absent(&error) => Ok(Presence::Absent),
        Err(error) => Err(Error::storage("look at a directory")(error)),
        Ok(found) if !found.is_dir() => Err(Error::Foreign),
        Ok(_) => match read_marker::<M>(marker)? {
            Some(found) if found == *wanted => Ok(Presence::Own),
            _ => Err(Error::Foreign),
        },
    }
}

/// Makes the directory with its marker, or finds it. A directory never has its name without its marker: it is built beside
/// the name and renamed, so that a crash leaves nothing that looks foreign.
pub(crate) fn claim<M>(dir: &Path, marker: &Path, wanted: &M) -> Result<()>
where
    M: Serialize + DeserializeOwned + PartialEq,
{
    if look(dir, marker, wanted)? == Presence::Own {
        return Ok(());
    }
    let unfinished = naming::unfinished(dir);
    storage::remove_tree(&unfinished)?;
    storage::private_dir(&unfinished)?;
    let name = marker.file_name().unwrap_or_default();
    storage::write(&unfinished.join(name), &encode(wanted)?)?;
    std::fs::rename(&unfinished, dir).map_err(Error::storage("name a directory"))?;
    storage::sync_parent(dir)
}

/// Takes the directory's name away, then its content: a crash in between leaves nothing under the name.
pub(crate) fn discard(dir: &Path) -> Result<()> {
    let discarded = naming::discarded(dir);
    storage::remove_tree(&discarded)?;
    storage::remove_tree(&naming::unfinished(dir))?;
    match std::fs::rename(dir, &discarded) {
        Ok(()) => storage::sync_parent(dir)?,
        Err(error) if storage::absent(&error) => return Ok(()),
        Err(error) => return Err(Error::storage("take a directory's name away")(error)),
    }
    storage::remove_tree(&discarded)
}

pub(crate) fn encode(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(value)
        .map_err(|_| occ_core::driver::Fault::new("encode a record", occ_core::driver::FaultKind::Corrupt).into())
}

//! What really runs.

use std::{
    fs::{File, TryLockError},
    path::Path,
};

use occ_core::id::RevisionId;
use occ_runtime::{identity::ProcessIdentity, orphans, status::Status};

use crate::{
    error::{Error, Result},
    naming::{self, AgentPaths, RevisionPaths, RunPaths},
    ownership::{self, RevisionMarker},
    storage,
};

/// Who holds a run's lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Run {
    /// Nobody, and no process is left of an earlier run.
    Over,
    /// The supervisor is gone; its keeper is killing what is left.
    Ending,
    /// Supervisor and keeper are gone, and these of their processes are left.
    Orphaned(Vec<ProcessIdentity>),
    /// A supervisor that has not said yet who it is or what it runs, or a launch that was begun by somebody who is gone.
    Unknown(Option<ProcessIdentity>),
    /// A living supervisor, and what it says.
    Supervised(Box<Status>),
}

/// What runs of the Agent: its lock is one for all versions.
pub(crate) fn serving(agent: &AgentPaths) -> Result<Run> {
    let ids = revisions(agent)?;
    observe(&agent.lock(), |identity| {
        ids.into_iter()
            .find_map(|id| supervised(id, &agent.revision(id).serving(agent), identity))
    })
}

/// What runs of the version's check.
pub(crate) fn checking(id: RevisionId, revision: &RevisionPaths) -> Result<Run> {
    let run = revision.checking();
    observe(&run.lock, |identity| supervised(id, &run, identity))
}

fn observe(lock: &Path, find: impl FnOnce(&ProcessIdentity) -> Option<Status>) -> Result<Run> {
    // While a launcher lives, nobody tries the lock that its supervisor is about to take. When it is gone, its supervisor has
    // the lock or never will.
    if !locked(&naming::launch_lock(lock))? && !locked(lock)? {
        let tree = naming::tree_lock(lock);
        if locked(&tree)? {
            return Ok(Run::Ending);
        }
        let left = orphans::find(&tree);
        return Ok(if left.is_empty() {
            Run::Over
        } else {
            Run::Orphaned(left)
        });
    }
    // Until the new holder has written itself, the file names an earlier one.
    let identity = ProcessIdentity::read(lock).filter(ProcessIdentity::is_alive);
    Ok(match identity.as_ref().and_then(find) {
        Some(status) => Run::Supervised(Box::new(status)),
        None => Run::Unknown(identity),
    })
}

fn supervised(id: RevisionId, run: &RunPaths, identity: &ProcessIdentity) -> Option<Status> {
    Status::read(&run.status).filter(|status| status.supervisor == *identity && status.revision_id == id)
}

/// The versions that the Agent has directories of.
pub(crate) fn revisions(agent: &AgentPaths) -> Result<Vec<RevisionId>> {
    Ok(storage::names(&agent.revisions())?
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect())
}

/// The version's number, from its marker.
pub(crate) fn number(revision: &RevisionPaths) -> Result<Option<u64>> {
    Ok(ownership::read_marker::<RevisionMarker>(&revision.marker())?.map(|marker| marker.number))
}

/// Whether another process holds the lock. Takes it for a moment if not, so only under the Agent's guard.
fn locked(path: &Path) -> Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if storage::absent(&error) => return Ok(false),
        Err(error) => return Err(Error::storage("open a lock")(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(Error::storage("try a lock")(error)),
    }
}

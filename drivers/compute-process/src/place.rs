//! An Agent's directory, entered: it carries this driver's marks, and no other operation is in it.

use std::path::PathBuf;

use occ_core::{
    driver::{AgentRef, Fault, FaultKind, OperationContext, RevisionContext, RevisionRef},
    id::NamespaceId,
};

use crate::{
    active,
    error::{Error, Result},
    guard::Guard,
    naming::{AgentPaths, NamespacePaths, RevisionPaths, Root},
    observe,
    ownership::{self, AgentMarker, NamespaceMarker, Owner, Presence, RevisionMarker},
    settings::Settings,
    storage,
};

/// What every operation of one driver instance shares.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) owner: Owner,
    pub(crate) root: Root,
    pub(crate) settings: Settings,
    /// The supervisor's program.
    pub(crate) supervisor: PathBuf,
}

impl Instance {
    /// Makes the Namespace's directory, or finds it.
    pub(crate) fn claim_namespace(&self, id: NamespaceId) -> Result<NamespacePaths> {
        let paths = self.root.namespace(id);
        if self.find_namespace(id)?.is_none() {
            storage::private_dirs(self.root.dir())?;
            let _guard = Guard::enter(self.root.dir())?;
            ownership::claim(&paths.dir, &paths.marker(), &NamespaceMarker::new(&self.owner, id))?;
        }
        storage::private_dir(&paths.agents())?;
        Ok(paths)
    }

    /// The Namespace's directory, if it exists.
    pub(crate) fn find_namespace(&self, id: NamespaceId) -> Result<Option<NamespacePaths>> {
        let paths = self.root.namespace(id);
        match ownership::look(&paths.dir, &paths.marker(), &NamespaceMarker::new(&self.owner, id))? {
            Presence::Absent => Ok(None),
            Presence::Own => Ok(Some(paths)),
        }
    }

    /// The Agent's paths, if its directory exists and is this driver's. For reading: takes no part in the order of operations.
    pub(crate) fn look(&self, agent: &AgentRef) -> Result<Option<AgentPaths>> {
        let Some(namespace) = self.find_namespace(agent.namespace_id)? else {
            return Ok(None);
        };
        let paths = namespace.agent(agent.id);
        match ownership::look(&paths.dir, &paths.marker(), &AgentMarker::new(&self.owner, agent))? {
            Presence::Absent => Ok(None),
            Presence::Own => Ok(Some(paths)),
        }
    }
}

/// An Agent's directory that this operation has for itself.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) agent: AgentPaths,
    _guard: Guard,
}

impl Place {
    /// Makes the Agent's directory, or finds it, and enters it.
    pub(crate) fn claim(instance: &Instance, cx: &OperationContext, agent: &AgentRef) -> Result<Self> {
        let place = match Self::find(instance, cx, agent)? {
            Some(place) => place,
            None => Self::make(instance, cx, agent)?,
        };
        let paths = &place.agent;
        for dir in [
            paths.workspace(),
            paths.state(),
            paths.home(),
            paths.temporary(),
            paths.credentials(),
            paths.revisions(),
        ] {
            storage::private_dir(&dir)?;
        }
        Ok(place)
    }

    fn make(instance: &Instance, cx: &OperationContext, agent: &AgentRef) -> Result<Self> {
        let namespace = instance.claim_namespace(agent.namespace_id)?;
        let paths = namespace.agent(agent.id);
        {
            let _guard = Guard::enter(&namespace.dir)?;
            unlapsed(cx)?;
            ownership::claim(&paths.dir, &paths.marker(), &AgentMarker::new(&instance.owner, agent))?;
        }
        // Somebody who deletes it again meanwhile is fenced by the engine, so this is the end of it.
        Self::find(instance, cx, agent)?.ok_or(Fault::new("enter the Agent's directory", FaultKind::Conflict).into())
    }

    /// Enters the Agent's directory, if it exists.
    pub(crate) fn find(instance: &Instance, cx: &OperationContext, agent: &AgentRef) -> Result<Option<Self>> {
        let Some(paths) = instance.look(agent)? else {
            return Ok(None);
        };
        let Some(guard) = Guard::enter(&paths.dir)? else {
            return Ok(None);
        };
        // The wait may have been longer than the lease, and the marks are to be those of the directory that was entered.
        unlapsed(cx)?;
        Ok(instance.look(agent)?.map(|agent| Self { agent, _guard: guard }))
    }

    /// Makes the version's directory, or finds it.
    pub(crate) fn claim_revision(&self, instance: &Instance, context: &RevisionContext) -> Result<RevisionPaths> {
        let paths = self.agent.revision(context.target.id);
        let marker = RevisionMarker::new(&instance.owner, &context.target, &context.revision.digest);
        if ownership::look(&paths.dir, &paths.marker(), &marker)? == Presence::Absent {
            // Two versions of one number cannot both be the Agent's.
            for id in observe::revisions(&self.agent)? {
                if observe::number(&self.agent.revision(id))? == Some(context.target.number) {
                    return Err(Error::Foreign);
                }
            }
            ownership::claim(&paths.dir, &paths.marker(), &marker)?;
        }
        storage::private_dir(&paths.files())?;
        storage::private_dir(&paths.logs())?;
        Ok(paths)
    }

    /// Puts the version on the route, and leaves. A closure that names only a part of the place would leave before.
    pub(crate) fn select(self, target: &RevisionRef) -> Result<()> {
        active::select(&self.agent, target)
    }

    /// The version's directory, if it exists.
    pub(crate) fn find_revision(&self, instance: &Instance, target: &RevisionRef) -> Result<Option<RevisionPaths>> {
        find_revision(&self.agent, instance, target)
    }
}

/// The version's directory, if it exists and is this driver's.
pub(crate) fn find_revision(
    agent: &AgentPaths,
    instance: &Instance,
    target: &RevisionRef,
) -> Result<Option<RevisionPaths>> {
    let paths = agent.revision(target.id);
    match std::fs::symlink_metadata(&paths.dir) {
        Err(error) if storage::absent(&error) => return Ok(None),
        Err(error) => return Err(Error::storage("look at a directory")(error)),
        Ok(_) => {}
    }
    match ownership::read_marker::<RevisionMarker>(&paths.marker())? {
        Some(marker) if marker.marks(&instance.owner, target) => Ok(Some(paths)),
        _ => Err(Error::Foreign),
    }
}

/// Refuses to go on under a lapsed lease.
pub(crate) fn unlapsed(cx: &OperationContext) -> Result<()> {
    if cx.cancellation().is_cancelled() {
        Err(Error::Cancelled)
    } else {
        Ok(())
    }
}

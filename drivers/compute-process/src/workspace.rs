//! Files of an Agent's live workspace: read and replaced as a whole, also while the gateway runs.

use occ_core::{
    driver::{AgentRef, Fault, FaultKind, OperationContext},
    resource::{WORKSPACE_FILE_MAX_BYTES, WorkspaceFileName},
};

use crate::{
    error::Result,
    place::{Instance, Place},
    storage,
};

/// The file's text; nothing when there is none.
pub(crate) fn read(instance: &Instance, agent: &AgentRef, name: WorkspaceFileName) -> Result<Option<String>> {
    let Some(paths) = instance.look(agent)? else {
        return Ok(None);
    };
    let path = paths.workspace().join(name.as_str());
    let Some(bytes) = storage::read(&path, WORKSPACE_FILE_MAX_BYTES as u64)? else {
        return Ok(None);
    };
    let text = String::from_utf8(bytes).map_err(|_| Fault::new("read a workspace file", FaultKind::Corrupt))?;
    Ok(Some(text))
}

/// Creates or replaces the file: whoever reads it meanwhile sees the old text or the new.
pub(crate) fn write(
    instance: &Instance,
    cx: &OperationContext,
    agent: &AgentRef,
    name: WorkspaceFileName,
    content: &str,
) -> Result<()> {
    let place = Place::find(instance, cx, agent)?;
    let place = place.ok_or(Fault::new("find the workspace", FaultKind::Unavailable))?;
    storage::write(&place.agent.workspace().join(name.as_str()), content.as_bytes())
}

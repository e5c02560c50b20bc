//! Forgetting staged workspace files once they were applied.

use occ_core::driver::{AgentRef, OperationContext};
use occ_runtime::spec::LaunchSpec;
use uuid::Uuid;

use crate::{
    error::Result,
    naming, observe, ownership,
    place::{Instance, Place},
    storage,
};

/// Removes the setup's contents from every spec of the Agent. A supervisor read its spec when it started and needs it no more.
pub(crate) fn discard(instance: &Instance, cx: &OperationContext, agent: &AgentRef, setup: Uuid) -> Result<()> {
    let Some(place) = Place::find(instance, cx, agent)? else {
        return Ok(());
    };
    for id in observe::revisions(&place.agent)? {
        let revision = place.agent.revision(id);
        for run in [revision.serving(&place.agent), revision.checking()] {
            storage::remove_file(&naming::unfinished(&run.spec))?;
            let Ok(mut spec) = LaunchSpec::read(&run.spec) else {
                continue;
            };
            let staged = spec.workspace.as_mut().and_then(|workspace| workspace.setup.as_mut());
            if let Some(staged) = staged.filter(|staged| staged.id == setup && staged.files.is_some()) {
                staged.files = None;
                storage::write(&run.spec, &ownership::encode(&spec)?)?;
            }
        }
    }
    Ok(())
}

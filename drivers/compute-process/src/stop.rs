//! Ending a version's processes: told once, observed after, killed only when even the supervisor does not end.

use std::time::Duration;

use occ_core::{
    driver::{AgentRef, Fault, FaultKind, OperationContext, RevisionRef, Stop},
    id::RevisionId,
    time::Timestamp,
};
use occ_runtime::{
    identity::{NotSignalled, ProcessIdentity, Signal},
    spec::LaunchSpec,
};
use serde::{Deserialize, Serialize};

use crate::{
    active, cgroup,
    error::Result,
    naming::{AgentPaths, RunPaths},
    observe::{self, Run},
    ownership,
    place::{Instance, Place, unlapsed},
    storage,
};

/// The supervisor kills its component's tree when the grace is over, and then ends; it gets this much longer.
const MARGIN: Duration = Duration::from_secs(15);
/// The grace of a run whose spec cannot be read: that of the gateways that we know (330 s), and more.
const UNKNOWN_GRACE: Duration = Duration::from_mins(10);
const RECORD_MAX_BYTES: u64 = 4096;

/// Who was told to end, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Told {
    supervisor: ProcessIdentity,
    at: Timestamp,
}

/// Tells a supervisor to end, once; kills it when it was told so long ago that it should have ended. Its component dies with
/// it. Only ever reaches the process of this identity: a process that got its number is not signalled.
pub(crate) fn tell(cx: &OperationContext, run: &RunPaths, supervisor: &ProcessIdentity) -> Result<()> {
    unlapsed(cx)?;
    let told = storage::read(&run.stopping, RECORD_MAX_BYTES)?;
    let told = told.and_then(|bytes| serde_json::from_slice::<Told>(&bytes).ok());
    match told.filter(|told| told.supervisor == *supervisor) {
        Some(told) if cx.now().since(told.at) > grace(run) + MARGIN => signal(supervisor, Signal::Kill),
        Some(_) => Ok(()),
        None => {
            signal(supervisor, Signal::Terminate)?;
            // The signal is what counts: without its record it is repeated, which does no harm.
            let told = Told {
                supervisor: supervisor.clone(),
                at: cx.now(),
            };
            let _ = ownership::encode(&told).and_then(|bytes| storage::write(&run.stopping, &bytes));
            Ok(())
        }
    }
}

fn grace(run: &RunPaths) -> Duration {
    LaunchSpec::read(&run.spec).map_or(UNKNOWN_GRACE, |spec| Duration::from_millis(spec.stop_grace_ms))
}

fn signal(process: &ProcessIdentity, signal: Signal) -> Result<()> {
    match process.signal(signal) {
        Ok(()) | Err(NotSignalled::Ended) => Ok(()),
        Err(NotSignalled::Refused) => Err(Fault::new("signal a process of the version", FaultKind::Denied).into()),
    }
}

/// One step of a version's stop: off the route first, then told to end, and over when no process of it is left.
pub(crate) fn stop(instance: &Instance, cx: &OperationContext, target: &RevisionRef) -> Result<Stop> {
    match Place::find(instance, cx, &target.agent)? {
        None => Ok(Stop::Stopped),
        Some(place) => stop_in(instance, cx, target, &place),
    }
}

/// The same, with the version's artifacts removed at the end.
pub(crate) fn retire(instance: &Instance, cx: &OperationContext, target: &RevisionRef) -> Result<Stop> {
    let Some(place) = Place::find(instance, cx, &target.agent)? else {
        return Ok(Stop::Stopped);
    };
    if stop_in(instance, cx, target, &place)? == Stop::Draining {
        return Ok(Stop::Draining);
    }
    ownership::discard(&place.agent.revision(target.id).dir)?;
    Ok(Stop::Stopped)
}

fn stop_in(instance: &Instance, cx: &OperationContext, target: &RevisionRef, place: &Place) -> Result<Stop> {
    let agent = &place.agent;
    let Some(revision) = place.find_revision(instance, target)? else {
        return Ok(Stop::Stopped);
    };
    active::withdraw(agent, target.id)?;
    let serving = match observe::serving(agent)? {
        // Another version's gateway is not this one's to stop.
        Run::Supervised(status) if status.revision_id != target.id => Run::Over,
        Run::Unknown(Some(_)) if !newest(agent, target)? => Run::Unknown(None),
        run => run,
    };
    let serving = drains(cx, &revision.serving(agent), serving)?;
    let checking = drains(cx, &revision.checking(), observe::checking(target.id, &revision)?)?;
    Ok(if serving || checking {
        Stop::Draining
    } else {
        Stop::Stopped
    })
}

/// Tells whatever runs to end; whether anything does.
fn drains(cx: &OperationContext, paths: &RunPaths, run: Run) -> Result<bool> {
    match run {
        Run::Over => {
            if let Some(group) = LaunchSpec::read(&paths.spec).ok().and_then(|spec| spec.limits.cgroup) {
                cgroup::remove(&group);
            }
            return Ok(false);
        }
        Run::Ending | Run::Unknown(None) => {}
        // Nobody is left who could let them drain.
        Run::Orphaned(left) => {
            for process in &left {
                signal(process, Signal::Kill)?;
            }
        }
        Run::Unknown(Some(supervisor)) => tell(cx, paths, &supervisor)?,
        Run::Supervised(status) => tell(cx, paths, &status.supervisor)?,
    }
    Ok(true)
}

/// Whether no other version can own a supervisor that does not say whose it is.
fn newest(agent: &AgentPaths, target: &RevisionRef) -> Result<bool> {
    if active::read(agent)?.is_some() {
        return Ok(false);
    }
    for id in observe::revisions(agent)? {
        if observe::number(&agent.revision(id))?.is_some_and(|number| number > target.number) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// One step of an Agent's removal: every run ended, then everything of it gone.
pub(crate) fn delete_agent(instance: &Instance, cx: &OperationContext, agent: &AgentRef) -> Result<Stop> {
    let Some(place) = Place::find(instance, cx, agent)? else {
        // What an earlier call was cut off in has lost its name and is ours: it lies beside the Agent's own.
        if let Some(namespace) = instance.find_namespace(agent.namespace_id)? {
            ownership::discard(&namespace.agent(agent.id).dir)?;
        }
        return Ok(Stop::Stopped);
    };
    let serving = observe::serving(&place.agent)?;
    let owner = match &serving {
        Run::Supervised(status) => status.revision_id,
        // Any name does for the record of what is going to vanish.
        _ => RevisionId::random(),
    };
    let mut draining = drains(cx, &place.agent.revision(owner).serving(&place.agent), serving)?;
    for id in observe::revisions(&place.agent)? {
        let revision = place.agent.revision(id);
        draining |= drains(cx, &revision.checking(), observe::checking(id, &revision)?)?;
    }
    if draining {
        return Ok(Stop::Draining);
    }
    ownership::discard(&place.agent.dir)?;
    Ok(Stop::Stopped)
}

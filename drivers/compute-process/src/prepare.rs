//! Bringing a version to where it can take over, and putting it on the route.
//!
//! A version is in one of three positions. *Alone*: nothing of the Agent runs, and the version is started. *Beside*: an earlier
//! version serves; it is left alone while a run of its own checks the new version (ADR 0007). *Itself*: its own supervisor runs
//! and is observed. Each call takes at most one step and never waits for a workload.

use std::time::Duration;

use occ_core::{
    driver::{EffectError, OperationContext, Readiness, RevisionContext, RevisionObservation, RevisionRef},
    reason::{Pending, Preparation, RuntimeFailure},
    time::Timestamp,
};
use occ_runtime::status::{State, Status};

use crate::{
    active,
    error::Result,
    gateway,
    naming::RevisionPaths,
    observe::{self, Run},
    place::{Instance, Place},
    stage::{self, Staged},
    stop,
};

/// A check is believed this long: as long as a deployment may take by default (spec/contracts 5.1).
const CHECK_VALID: Duration = Duration::from_mins(15);
/// A version that is on the route and failed to start, as after a reboot without a network, is tried again after this time.
const RETRY_SELECTED: Duration = Duration::from_mins(5);

/// What a call does after it looked.
#[derive(Debug)]
pub(crate) enum Next {
    /// Says what it saw.
    Say(Said),
    /// Launches a run and says that it is on its way. The place stays entered until it is done.
    Launch(Place, Staged),
    /// Asks the gateway itself at this URL, then puts the version on the route.
    Confirm(Place, String),
}

/// What was seen of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Ready,
    Pending(Pending, Option<Box<RuntimeFailure>>),
    Held(Box<RuntimeFailure>, Option<Box<Preparation>>),
}

impl Said {
    /// The result for the engine.
    pub(crate) fn of(self, target: &RevisionRef) -> std::result::Result<RevisionObservation, EffectError> {
        match self {
            Self::Ready => Ok(RevisionObservation::ready(target)),
            Self::Pending(reason, evidence) => {
                Ok(RevisionObservation::of(target, Readiness::Pending { reason, evidence }))
            }
            Self::Held(failure, preparation) => Err(EffectError::Held(failure, preparation)),
        }
    }

    fn pending(reason: Pending) -> Self {
        Self::Pending(reason, None)
    }

    /// What the status says; `reason` is the word for a version that is on its way.
    fn status(status: &Status, reason: Pending) -> Self {
        match &status.state {
            State::Ready => Self::Ready,
            State::Held { failure, preparation } => {
                Self::Held(Box::new(failure.clone()), preparation.clone().map(Box::new))
            }
            _ => {
                let reason = match status.pending() {
                    Some(Pending::RevisionIncomplete) | None => reason,
                    Some(special) => special,
                };
                Self::Pending(reason, status.evidence().map(Box::new))
            }
        }
    }
}

/// One step of preparation.
pub(crate) fn prepare(instance: &Instance, cx: &OperationContext, context: &RevisionContext) -> Result<Next> {
    let pending = || Ok(Next::Say(Said::pending(Pending::RevisionIncomplete)));
    stage::component(&context.plan)?;
    let target = &context.target;
    let place = Place::claim(instance, cx, &target.agent)?;
    let revision = place.claim_revision(instance, context)?;
    let active = active::read(&place.agent)?;
    if active.is_some_and(|active| active.number > target.number) {
        return pending();
    }
    match observe::serving(&place.agent)? {
        // What is left of a killed run is ended by the new one's keeper before anything starts.
        Run::Over | Run::Orphaned(_) => alone(instance, cx, context, place, &revision),
        Run::Ending | Run::Unknown(_) => pending(),
        Run::Supervised(status) if status.revision_id == target.id => {
            let on_route = active.is_some_and(|active| active.revision_id == target.id);
            if on_route && matches!(status.state, State::Held { .. }) && older(cx, status.since, RETRY_SELECTED) {
                stop::tell(cx, &revision.serving(&place.agent), &status.supervisor)?;
                return pending();
            }
            Ok(Next::Say(Said::status(&status, Pending::RevisionIncomplete)))
        }
        Run::Supervised(status) => {
            let other = place.agent.revision(status.revision_id);
            if observe::number(&other)?.is_some_and(|number| number > target.number) {
                return pending();
            }
            let on_route = active.is_some_and(|active| active.revision_id == status.revision_id);
            if on_route || status.ready() {
                return beside(instance, cx, context, place, &revision);
            }
            // It never served: nothing is lost with it, and the Agent has one state directory.
            stop::tell(cx, &other.serving(&place.agent), &status.supervisor)?;
            pending()
        }
    }
}

/// One step of activation. The pointer names the version already.
pub(crate) fn activate(instance: &Instance, cx: &OperationContext, context: &RevisionContext) -> Result<Next> {
    let pending = || Ok(Next::Say(Said::pending(Pending::RevisionFinalizationIncomplete)));
    stage::component(&context.plan)?;
    let target = &context.target;
    let place = Place::claim(instance, cx, &target.agent)?;
    let revision = place.claim_revision(instance, context)?;
    if active::read(&place.agent)?.is_some_and(|active| active.number > target.number) {
        return pending();
    }
    match observe::serving(&place.agent)? {
        // What is left of a killed run is ended by the new one's keeper before anything starts.
        Run::Over | Run::Orphaned(_) => alone(instance, cx, context, place, &revision),
        Run::Ending | Run::Unknown(_) => pending(),
        Run::Supervised(status) if status.revision_id == target.id => {
            match Said::status(&status, Pending::RevisionFinalizationIncomplete) {
                Said::Ready => match gateway::readiness_url(instance, &place.agent, target)? {
                    Some(url) => Ok(Next::Confirm(place, url)),
                    None => pending(),
                },
                other => Ok(Next::Say(other)),
            }
        }
        Run::Supervised(status) => {
            let other = place.agent.revision(status.revision_id);
            if observe::number(&other)?.is_none_or(|number| number < target.number) {
                stop::tell(cx, &other.serving(&place.agent), &status.supervisor)?;
            }
            pending()
        }
    }
}

/// Nothing of the Agent runs: the version is started, without a second check if one just passed.
fn alone(
    instance: &Instance,
    cx: &OperationContext,
    context: &RevisionContext,
    place: Place,
    revision: &RevisionPaths,
) -> Result<Next> {
    let checked = match current_check(instance, context, &place, revision)? {
        Some(status) => status.state == State::Checked && !older(cx, status.at, CHECK_VALID),
        None => false,
    };
    let staged = stage::serving(instance, &place.agent, revision, context, checked)?;
    Ok(Next::Launch(place, staged))
}

/// A predecessor serves: the version is checked beside it.
fn beside(
    instance: &Instance,
    cx: &OperationContext,
    context: &RevisionContext,
    place: Place,
    revision: &RevisionPaths,
) -> Result<Next> {
    let pending = || Ok(Next::Say(Said::pending(Pending::RevisionIncomplete)));
    match observe::checking(context.target.id, revision)? {
        Run::Ending | Run::Unknown(_) => return pending(),
        Run::Supervised(status) => {
            return Ok(Next::Say(match status.state {
                // It is about to end, and is believed when it has.
                State::Checked => Said::pending(Pending::RevisionIncomplete),
                _ => Said::status(&status, Pending::RevisionIncomplete),
            }));
        }
        Run::Over | Run::Orphaned(_) => {}
    }
    if let Some(status) = current_check(instance, context, &place, revision)? {
        match &status.state {
            State::Checked if !older(cx, status.at, CHECK_VALID) => return Ok(Next::Say(Said::Ready)),
            State::Held { .. } => return Ok(Next::Say(Said::status(&status, Pending::RevisionIncomplete))),
            // It was cut off, or is too old to be believed.
            _ => {}
        }
    }
    let staged = stage::checking(instance, &place.agent, revision, context)?;
    Ok(Next::Launch(place, staged))
}

/// What the last check found, if it was made with what would be checked now.
fn current_check(
    instance: &Instance,
    context: &RevisionContext,
    place: &Place,
    revision: &RevisionPaths,
) -> Result<Option<Status>> {
    if !stage::check_is_current(instance, &place.agent, revision, context)? {
        return Ok(None);
    }
    Ok(Status::read(&revision.checking().status).filter(|status| status.revision_id == context.target.id))
}

fn older(cx: &OperationContext, since: Timestamp, age: Duration) -> bool {
    cx.now().since(since) > age
}

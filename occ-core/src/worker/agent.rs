//! Passes that stop and delete an Agent (spec/engine 5.4 and 5.5).

use super::{
    authority,
    pass::{Outcome, Pass, Step, WriteBox, agent_ref, done, effect_failed, failed, finish, revision_ref},
};
use crate::{
    audit::AuditEvent,
    driver::Stop,
    reason::{Failure, Pending, Success},
    resource::{Agent, AgentStatus, DesiredRuntimeState},
    store::{Expect, RevisionHead, Write},
};

/// Asks for the actor's authority; `Err` is the step to take now.
pub(super) fn authorized(pass: &Pass) -> Result<(), Step> {
    match &pass.progress.authority {
        None => Err(Step::Authorize(authority::target(pass))),
        Some(Err(error)) => Err(finish(effect_failed(error))),
        Some(Ok(authority)) => match authority.refusal() {
            None => Ok(()),
            Some(failure) => Err(finish(Outcome::Failed {
                failure,
                audit: authority.denial(pass).into_iter().collect(),
            })),
        },
    }
}

/// Binds the Agent where the Compute wants it; `Err` is the step to take now.
fn bound(pass: &Pass, agent: &Agent) -> Result<(), Step> {
    match &pass.progress.bound {
        _ if !pass.compute.binds => Ok(()),
        None => Err(Step::Bind(agent_ref(agent))),
        Some(Err(error)) => Err(finish(effect_failed(error))),
        Some(Ok(())) => Ok(()),
    }
}

pub(super) fn stop(pass: &Pass) -> Step {
    stop_step(pass).unwrap_or_else(|step| step)
}

fn stop_step(pass: &Pass) -> Result<Step, Step> {
    let Some(agent) = pass.read.agent.as_ref().map(|row| &row.agent) else {
        return Err(finish(failed(Failure::InvalidAgentOwner)));
    };
    authorized(pass)?;
    if agent.desired_runtime_state != DesiredRuntimeState::Stopped {
        return Err(finish(done(Success::StopSuperseded)));
    }
    if agent.active_revision_id.is_some() && pass.read.active.is_none() {
        return Err(finish(failed(Failure::InvalidActiveRevision)));
    }
    let active = pass.read.active.as_ref();
    // What another Compute runs, this one cannot stop: fail closed instead of reporting a stop that did not happen.
    if active.is_some_and(|active| !active.may_be_of(&pass.compute.identity)) {
        return Err(finish(failed(Failure::ComputeDriverMismatch)));
    }
    bound(pass, agent)?;
    for revision in stop_order(pass, active) {
        match pass.progress.stops.get(&revision.id).map(|record| &record.result) {
            None => return Err(Step::Stop(revision_ref(agent, revision))),
            Some(Ok(Stop::Stopped)) => {}
            Some(Ok(Stop::Draining)) => return Err(finish(Outcome::Draining(Pending::AgentStopYielded))),
            Some(Err(error)) => return Err(finish(effect_failed(error))),
        }
    }
    // Nor whether it is this Compute's, when that cannot be read: it was stopped if it is, and that is all that is known.
    if pass.read.live.iter().chain(active).any(|head| head.compute.is_none()) {
        return Err(finish(failed(Failure::InvalidAdmittedRevision)));
    }
    if !pass.progress.reread_prepared {
        return Err(Step::Reread);
    }
    let Some(active) = active else {
        return Ok(finish(done(Success::AgentAlreadyStopped)));
    };
    Ok(finish(Outcome::Done {
        success: Success::AgentStopped,
        warnings: Vec::new(),
        expect: vec![Expect::AgentRuntime {
            agent: agent.id,
            active: Some(active.id),
            desired: DesiredRuntimeState::Stopped,
        }],
        writes: vec![WriteBox(Write::ActiveRevision(agent.id, None))],
        audit: vec![AuditEvent::mutation(
            pass.claim.actor.clone(),
            "openclaw.agents.lifecycle.stop",
            pass.claim.target.resource(),
        )],
    }))
}

/// The selected version first, then every other of this Compute: failed candidates and interrupted retirements are among them.
/// Whatever was admitted after the stop is among them too: while the Agent should not run, none of it should, and the database's
/// clock, which may have been set back in between, does not tell which came first.
fn stop_order<'a>(pass: &'a Pass, active: Option<&'a RevisionHead>) -> impl Iterator<Item = &'a RevisionHead> {
    let others = pass.read.live.iter().filter(move |revision| {
        Some(revision.id) != active.map(|active| active.id) && revision.may_be_of(&pass.compute.identity)
    });
    active.into_iter().chain(others)
}

pub(super) fn delete(pass: &Pass) -> Step {
    delete_step(pass).unwrap_or_else(|step| step)
}

fn delete_step(pass: &Pass) -> Result<Step, Step> {
    let Some(agent) = pass.read.agent.as_ref().map(|row| &row.agent) else {
        return Err(finish(failed(Failure::InvalidAgentOwner)));
    };
    if agent.status != AgentStatus::Deleting || agent.desired_runtime_state != DesiredRuntimeState::Stopped {
        return Err(finish(failed(Failure::InvalidAgentState)));
    }
    authorized(pass)?;
    let live = || pass.read.live.iter();
    if !live().all(|revision| revision.may_be_of(&pass.compute.identity)) {
        return Err(finish(failed(Failure::ComputeDriverMismatch)));
    }
    // Nothing says that this Compute holds all of it, and what another one holds would be forgotten.
    if live().any(|revision| revision.compute.is_none()) {
        return Err(finish(failed(Failure::InvalidAdmittedRevision)));
    }
    bound(pass, agent)?;
    for revision in live() {
        match pass.progress.retired.get(&revision.id) {
            None => return Err(Step::Retire(revision_ref(agent, revision))),
            Some(Ok(Stop::Stopped)) => {}
            Some(Ok(Stop::Draining)) => return Err(finish(Outcome::Draining(Pending::AgentStopYielded))),
            Some(Err(error)) => return Err(finish(effect_failed(error))),
        }
    }
    match &pass.progress.credentials_deleted {
        None => return Err(Step::DeleteCredentials(agent_ref(agent))),
        Some(Err(error)) => return Err(finish(effect_failed(error))),
        Some(Ok(false)) => return Err(finish(Outcome::Draining(Pending::ProvisioningEffectPending))),
        Some(Ok(true)) => {}
    }
    match &pass.progress.agent_deleted {
        None => return Err(Step::DeleteAgent(agent_ref(agent))),
        Some(Ok(Stop::Draining)) => return Err(finish(Outcome::Draining(Pending::AgentStopYielded))),
        Some(Err(error)) => return Err(finish(effect_failed(error))),
        Some(Ok(Stop::Stopped)) => {}
    }
    Ok(finish(Outcome::Done {
        success: Success::AgentDeleted,
        warnings: Vec::new(),
        expect: Vec::new(),
        writes: vec![WriteBox(Write::RemoveAgent(agent.id))],
        audit: vec![AuditEvent::mutation(
            pass.claim.actor.clone(),
            "openclaw.agents.lifecycle.delete",
            pass.claim.target.resource(),
        )],
    }))
}

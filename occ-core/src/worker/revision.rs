//! Passes over a version: its deployment and its maintenance (spec/engine 5.1 and 5.2, in that order).

use std::collections::BTreeSet;

use super::{
    authority,
    pass::{Outcome, Pass, Step, WriteBox, agent_ref, done, effect_failed, failed, finish, revision_ref},
    refusal::{self, Refusal},
    sources,
};
use crate::{
    audit::AuditEvent,
    driver::{
        ActivationOrder, EffectError, EffectResult, PluginWarning, PluginWarningCode, Readiness, RevisionObservation,
        Stop,
    },
    reason::{Failure, Pending, Success},
    resource::{Agent, DesiredRuntimeState, ExecutionMode, NamespaceStatus},
    store::{Expect, RevisionHead, SavedField, WorkState, Write},
    work::{Target, Warning},
};

/// The parts of a pass that exist once its owners were found.
pub(super) struct Facts<'a> {
    pub pass: &'a Pass,
    pub agent: &'a Agent,
    pub revision: &'a RevisionHead,
    pub active: Option<&'a RevisionHead>,
}

impl Facts<'_> {
    fn maintenance(&self) -> bool {
        matches!(self.pass.claim.target, Target::Maintenance { .. })
    }

    /// Whether the pointer names this version.
    pub fn is_active(&self) -> bool {
        self.agent.active_revision_id == Some(self.revision.id)
    }

    /// Older versions that Compute may still hold something of, the oldest first. One that does not say whose it is is treated as this
    /// Compute's, which finds nothing of it when it is not.
    fn earlier(&self) -> impl Iterator<Item = &RevisionHead> {
        self.pass
            .read
            .live
            .iter()
            .filter(|head| head.revision < self.revision.revision)
            .filter(|head| head.may_be_of(&self.pass.compute.identity))
    }

    fn newer(&self) -> impl Iterator<Item = &RevisionHead> {
        self.pass
            .read
            .live
            .iter()
            .filter(|head| head.revision > self.revision.revision)
    }

    /// Whether a newer version took this one's place (checks 10 and 14).
    pub fn superseded(&self) -> bool {
        let newer = self.pass.compute.exclusive && self.newer().next().is_some();
        newer
            || self
                .active
                .is_some_and(|active| active.revision > self.revision.revision)
    }

    fn wanted(&self) -> bool {
        self.agent.desired_runtime_state == DesiredRuntimeState::Running
    }
}

pub(super) fn decide(pass: &Pass) -> Step {
    match facts(pass) {
        Err(failure) => finish(failed(failure)),
        Ok(facts) => match checked(&facts) {
            Ok(step) => step,
            Err(refusal) => refusal::refuse(&facts, &refusal),
        },
    }
}

/// Checks 1 to 6: owners, identities, the pointer.
fn facts(pass: &Pass) -> Result<Facts<'_>, Failure> {
    let read = &pass.read;
    let (Some(namespace), Some(agent), Some(revision)) = (&read.namespace, &read.agent, &read.head) else {
        return Err(Failure::InvalidRevisionOwner);
    };
    if namespace.namespace.status != NamespaceStatus::Ready {
        return Err(Failure::NamespaceNotReady);
    }
    let agent = &agent.agent;
    if agent.namespace_id != namespace.namespace.id || revision.agent_id != agent.id {
        return Err(Failure::InvalidRevisionOwner);
    }
    if agent.active_revision_id.is_some() && read.active.is_none() {
        return Err(Failure::InvalidActiveRevision);
    }
    Ok(Facts {
        pass,
        agent,
        revision,
        active: read.active.as_ref(),
    })
}

fn checked(facts: &Facts<'_>) -> Result<Step, Refusal> {
    let pass = facts.pass;
    if let Some(refusal) = refusal::standing(facts) {
        return Err(refusal);
    }
    // What does not decode is not what was admitted either.
    let revision = pass.read.revision.as_ref().map(|row| &row.revision);
    let revision = revision.ok_or_else(|| Refusal::of(unreadable(facts.revision, pass.read.unreadable)))?;
    if !pass.compute.intact || revision.snapshot.service_principal_id != facts.agent.service_principal_id {
        return Err(Refusal::of(Failure::InvalidAdmittedRevision));
    }
    if !pass.compute.harness_approved {
        return Err(Refusal::of(Failure::HarnessDescriptorMismatch));
    }
    if revision.snapshot.compute != pass.compute.identity {
        return Err(Refusal::of(Failure::ComputeDriverMismatch));
    }
    if facts.maintenance() && (!facts.is_active() || !facts.wanted()) {
        return Ok(finish(done(Success::RevisionMaintenanceSuperseded)));
    }
    if facts.maintenance() && !pass.read.deployment.as_ref().is_none_or(is_looked_after) {
        return Ok(finish(done(Success::RevisionSuperseded)));
    }
    match &pass.progress.authority {
        None => {
            return Ok(Step::Authorize(authority::deployment(
                &pass.claim.actor,
                facts.agent,
                revision,
                &pass.read.sources,
            )));
        }
        Some(Err(error)) => {
            // Without an answer the refusal is neither confirmed nor lifted; the stop that it waits for goes on.
            return refusal::waiting(facts).map_or_else(|| Ok(finish(effect_failed(error))), |r| Err(Refusal::of(r)));
        }
        Some(Ok(authority)) => {
            if let Some(failure) = authority.refusal() {
                return Err(Refusal {
                    failure,
                    denial: authority.denial(pass).map(Box::new),
                });
            }
        }
    }
    if !pass.compute.backend_configured {
        return Err(Refusal::of(Failure::BackendUnavailable));
    }
    sources::account(facts, &revision.snapshot)?;
    if let Some(refusal) = refusal::lifted(facts) {
        return Err(refusal);
    }
    if !facts.wanted() {
        return Ok(stopped(facts));
    }
    if pass.compute.exclusive && facts.newer().next().is_some() {
        return Ok(finish(superseded(facts)));
    }
    sources::frozen(facts, &revision.snapshot)?;
    if pass.read.setup.as_ref().is_some_and(|setup| !setup.completed()) && !pass.compute.workspace_setup {
        return Err(Refusal::of(Failure::WorkspaceSetupUnsupported));
    }
    if pass.compute.binds {
        match &pass.progress.bound {
            None => return Ok(Step::Bind(agent_ref(facts.agent))),
            // A selected version is unfinished work, not a failed one.
            Some(Err(EffectError::Fault(_) | EffectError::UnknownOutcome)) if facts.is_active() => {
                return Ok(finish(Outcome::Pending {
                    reason: Pending::ComputeBindingIncomplete,
                    evidence: None,
                }));
            }
            Some(Err(error)) => return Ok(finish(effect_failed(error))),
            Some(Ok(())) => {}
        }
    }
    if facts.is_active() {
        return Ok(finalize(facts));
    }
    if facts
        .active
        .is_some_and(|active| active.revision >= facts.revision.revision)
    {
        return Ok(finish(superseded(facts)));
    }
    prepare(facts)
}

/// What a version fails with whose settings do not decode: by the field, as long as the rest of them does.
fn unreadable(head: &RevisionHead, field: Option<SavedField>) -> Failure {
    match field.filter(|_| head.compute.is_some()) {
        Some(SavedField::HarnessAuth) => Failure::InvalidHarnessAuth,
        Some(SavedField::SecretBindings) => Failure::InvalidSecretBindings,
        _ => Failure::InvalidAdmittedRevision,
    }
}

/// Whether the version of a finished deployment is looked after (check 5). One that failed by itself is never revived; one whose
/// attempts were used up while it was selected serves, and only its deployment is over.
fn is_looked_after(deployment: &WorkState) -> bool {
    match deployment {
        WorkState::Failed { failure, .. } => continues(*failure),
        WorkState::Succeeded { code, .. } => {
            matches!(code, Success::RevisionActivated | Success::RevisionAlreadyActive)
        }
        WorkState::Queued { .. } | WorkState::Running { .. } => true,
    }
}

/// Failures that say that nobody finished the work, and nothing of the version.
pub(super) const fn continues(failure: Failure) -> bool {
    matches!(
        failure,
        Failure::LeaseExpired
            | Failure::MaxAttemptsExhausted
            | Failure::DependencyUnavailable
            | Failure::ActiveRevisionChanged
    )
}

/// Steps 5.2 a to g: predecessors, preparation, the pointer, activation.
fn prepare(facts: &Facts<'_>) -> Result<Step, Refusal> {
    let pass = facts.pass;
    let target = revision_ref(facts.agent, facts.revision);
    if pass.compute.exclusive {
        for head in facts.earlier() {
            match pass.progress.stops.get(&head.id).map(|record| &record.result) {
                None => return Ok(Step::Stop(revision_ref(facts.agent, head))),
                Some(Ok(Stop::Stopped)) => {}
                Some(Ok(Stop::Draining)) => return Ok(finish(Outcome::Draining(Pending::PredecessorStopYielded))),
                Some(Err(error)) => return Ok(finish(effect_failed(error))),
            }
        }
    }
    let Some(prepared) = &pass.progress.prepared else {
        return Ok(Step::Prepare);
    };
    if let Err(step) = ready(facts, prepared)? {
        return Ok(step);
    }
    if !pass.progress.reread_prepared {
        return Ok(Step::Reread);
    }
    match pass.compute.order {
        ActivationOrder::BeforeCommit => {
            let Some(activated) = &pass.progress.activated else {
                return Ok(Step::Activate);
            };
            if let Err(step) = ready(facts, activated)? {
                return Ok(step);
            }
        }
        ActivationOrder::AfterCommit => {
            let first_dedicated = facts.active.is_none() && target.mode == ExecutionMode::Dedicated;
            match &pass.progress.deactivated {
                None if first_dedicated => return Ok(Step::Deactivate(target)),
                Some(Err(error)) => return Ok(finish(effect_failed(error))),
                _ => {}
            }
        }
    }
    match &pass.progress.pointer {
        None => Ok(Step::MovePointer {
            agent: facts.agent.id,
            from: facts.agent.active_revision_id,
            to: facts.revision.id,
        }),
        // It moved, or nobody knows: the facts are read again before anything else. A pointer that names this version leads to
        // `finalize`, also in the last attempt.
        Some(Ok(true) | Err(_)) if !pass.progress.reread_published => Ok(Step::Reread),
        Some(Err(error)) => Ok(finish(effect_failed(error))),
        // It was moved away again meanwhile.
        Some(Ok(_)) => Ok(finish(Outcome::Retry {
            reason: Pending::ActiveRevisionChanged,
            exhausted: Failure::ActiveRevisionChanged,
        })),
    }
}

/// `Ok(Ok(()))` when the observation is a ready one of this version; else how the pass ends or goes on.
fn ready(facts: &Facts<'_>, result: &EffectResult<RevisionObservation>) -> Result<Result<(), Step>, Refusal> {
    match result {
        Err(error) => match effect_failed(error) {
            Outcome::Failed { failure, .. } => Err(Refusal::of(failure)),
            outcome => Ok(Err(finish(outcome))),
        },
        Ok(observation) if !observation.is_of(&revision_ref(facts.agent, facts.revision)) => {
            Err(Refusal::of(Failure::InvalidDriverObservation))
        }
        Ok(observation) => match &observation.readiness {
            Readiness::Ready { warnings } if !admitted(facts, warnings) => {
                Err(Refusal::of(Failure::InvalidDriverObservation))
            }
            Readiness::Ready { .. } => Ok(Ok(())),
            Readiness::Pending { reason, evidence } => Ok(Err(finish(Outcome::Pending {
                reason: *reason,
                evidence: evidence.as_deref().cloned(),
            }))),
        },
    }
}

/// Whether each warning is of a plugin that the version was admitted with, and no plugin has two (spec/engine 1.13).
fn admitted(facts: &Facts<'_>, warnings: &[PluginWarning]) -> bool {
    let row = facts.pass.read.revision.as_ref();
    let plugins = row.and_then(|row| row.revision.snapshot.plugins.as_ref());
    let plugins = plugins.map(|frozen| &frozen.plugins);
    let known = |id: &str| plugins.is_some_and(|plugins| plugins.keys().any(|key| key.as_str() == id));
    let mut seen = BTreeSet::new();
    warnings
        .iter()
        .all(|warning| known(&warning.plugin_id) && seen.insert(&warning.plugin_id))
}

/// The pointer names this version: prepare again if this pass has not, activate, retire the earlier ones, complete (5.2 g and h).
fn finalize(facts: &Facts<'_>) -> Step {
    let pass = facts.pass;
    // Whatever was answered: only what is not selected is moved to.
    let published_now = pass.progress.pointer.is_some();
    let Some(prepared) = &pass.progress.prepared else {
        return Step::Prepare;
    };
    if let Some(step) = unfinished(facts, prepared) {
        return step;
    }
    let Some(activated) = &pass.progress.activated else {
        return Step::Activate;
    };
    if let Some(step) = unfinished(facts, activated) {
        return step;
    }
    let mut writes = Vec::new();
    for head in facts.earlier() {
        match pass.progress.retired.get(&head.id) {
            None => return Step::Retire(revision_ref(facts.agent, head)),
            Some(Ok(Stop::Stopped)) => writes.extend(retired(head)),
            // The version serves: what drains is no part of its getting ready, and must not be forgotten.
            Some(Ok(Stop::Draining)) => return finish(Outcome::Draining(Pending::RevisionFinalizationIncomplete)),
            Some(Err(_)) => {
                return finish(Outcome::Pending {
                    reason: Pending::RevisionFinalizationIncomplete,
                    evidence: None,
                });
            }
        }
    }
    if let Some(setup) = pass.read.setup.as_ref().filter(|setup| !setup.completed()) {
        match &pass.progress.discarded {
            None => return Step::DiscardSetup(agent_ref(facts.agent), setup.id),
            Some(Err(_)) => {
                return finish(Outcome::Pending {
                    reason: Pending::RevisionFinalizationIncomplete,
                    evidence: None,
                });
            }
            Some(Ok(())) => writes.push(WriteBox(Write::CompleteWorkspaceSetup(facts.agent.id))),
        }
    }
    let event = AuditEvent::mutation(
        pass.claim.actor.clone(),
        "openclaw.agents.lifecycle.activate",
        pass.claim.target.resource(),
    );
    finish(Outcome::Done {
        success: if published_now {
            Success::RevisionActivated
        } else {
            Success::RevisionAlreadyActive
        },
        warnings: warnings(activated),
        expect: vec![Expect::AgentRuntime {
            agent: facts.agent.id,
            active: Some(facts.revision.id),
            desired: DesiredRuntimeState::Running,
        }],
        writes,
        audit: if facts.maintenance() { Vec::new() } else { vec![event] },
    })
}

/// That nothing is left of a version. Of one that does not say whose it is nobody knows, so it is retired and yet not forgotten.
fn retired(head: &RevisionHead) -> Option<WriteBox> {
    head.compute.as_ref()?;
    Some(WriteBox(Write::RevisionRetired(head.id)))
}

fn warnings(activated: &EffectResult<RevisionObservation>) -> Vec<Warning> {
    let Ok(RevisionObservation {
        readiness: Readiness::Ready { warnings },
        ..
    }) = activated
    else {
        return Vec::new();
    };
    let code = |code| match code {
        PluginWarningCode::InstallFailed => "PLUGIN_INSTALL_FAILED",
        PluginWarningCode::AuthRequired => "PLUGIN_AUTH_REQUIRED",
    };
    warnings
        .iter()
        .map(|warning| Warning {
            code: code(warning.code).to_owned(),
            plugin_id: warning.plugin_id.clone(),
        })
        .collect()
}

/// After the pointer moved, an unclassified error is unfinished work, not a failure: the version is selected (5.2).
fn unfinished(facts: &Facts<'_>, result: &EffectResult<RevisionObservation>) -> Option<Step> {
    match ready(facts, result) {
        Ok(Ok(())) => None,
        Ok(Err(_)) if matches!(result, Err(EffectError::Fault(_) | EffectError::UnknownOutcome)) => {
            Some(finish(Outcome::Pending {
                reason: Pending::RevisionFinalizationIncomplete,
                evidence: None,
            }))
        }
        Ok(Err(step)) => Some(step),
        // The failed version stays selected: its workload is the only one that is left (seed).
        Err(refusal) => Some(finish(failed(refusal.failure))),
    }
}

/// The Agent should not run: stop this version, and if it was published, what it left of its predecessors (check 9).
fn stopped(facts: &Facts<'_>) -> Step {
    let target = revision_ref(facts.agent, facts.revision);
    match facts.pass.progress.stops.get(&target.id).map(|record| &record.result) {
        None => Step::Stop(target),
        Some(Ok(Stop::Stopped)) => {
            let mut gone = Vec::new();
            for head in facts.earlier().filter(|_| facts.is_active()) {
                match facts.pass.progress.retired.get(&head.id) {
                    None => return Step::Retire(revision_ref(facts.agent, head)),
                    Some(Ok(Stop::Stopped)) => gone.extend(retired(head)),
                    Some(Ok(Stop::Draining)) => return finish(Outcome::Draining(Pending::AgentStopYielded)),
                    Some(Err(error)) => return finish(effect_failed(error)),
                }
            }
            let mut outcome = done(Success::RevisionStopped);
            if let Outcome::Done { writes, .. } = &mut outcome {
                *writes = gone;
            }
            finish(outcome)
        }
        Some(Ok(Stop::Draining)) => finish(Outcome::Draining(Pending::AgentStopYielded)),
        Some(Err(error)) => finish(effect_failed(error)),
    }
}

pub(super) fn superseded(facts: &Facts<'_>) -> Outcome {
    let event = AuditEvent::mutation(
        facts.pass.claim.actor.clone(),
        "openclaw.agents.lifecycle.supersede",
        facts.pass.claim.target.resource(),
    );
    match done(if facts.maintenance() {
        Success::RevisionMaintenanceSuperseded
    } else {
        Success::RevisionSuperseded
    }) {
        Outcome::Done {
            success,
            warnings,
            expect,
            writes,
            ..
        } => Outcome::Done {
            success,
            warnings,
            expect,
            writes,
            audit: vec![event],
        },
        other => other,
    }
}

//! Refused candidates: stopped first, recorded as refused after (seed; spec/engine 6).

use super::{
    pass::{Outcome, Step, failed, finish, revision_ref},
    revision::{self, Facts},
};
use crate::{
    audit::AuditEvent,
    driver::{ActivationOrder, Stop},
    reason::Failure,
    work::Target,
};

/// A permanent refusal of a version.
pub(super) struct Refusal {
    /// Why.
    pub failure: Failure,
    /// The denial's audit event, when it was one.
    pub denial: Option<Box<AuditEvent>>,
}

impl Refusal {
    pub(super) const fn of(failure: Failure) -> Self {
        Self { failure, denial: None }
    }
}

/// Whether a later pass decides the refusal anew. The others stand until the stop is done.
const fn lifts(failure: Failure) -> bool {
    matches!(
        failure,
        Failure::AuthorizationDenied
            | Failure::ActorRevoked
            | Failure::InvalidAgentPrincipal
            | Failure::BackendUnavailable
            | Failure::ServiceAccountBackendMismatch
    )
}

/// The refusal of an earlier pass whose stop is not done.
pub(super) fn waiting(facts: &Facts<'_>) -> Option<Failure> {
    let own_work = matches!(facts.pass.claim.target, Target::Revision { .. });
    let last = facts.pass.claim.last_attempt.as_ref()?;
    last.refusal.filter(|_| own_work && !facts.is_active())
}

/// The waiting refusal, when no later pass decides it anew: nothing else is looked at before the candidate is stopped.
pub(super) fn standing(facts: &Facts<'_>) -> Option<Refusal> {
    waiting(facts).filter(|refusal| !lifts(*refusal)).map(Refusal::of)
}

/// What becomes of a refusal that lifted: too late, the candidate is stopped all the same, and so is one whose place a newer
/// version took.
pub(super) fn lifted(facts: &Facts<'_>) -> Option<Refusal> {
    let refusal = waiting(facts)?;
    if facts.superseded() {
        Some(Refusal::of(refusal))
    } else {
        facts
            .pass
            .late
            .then(|| Refusal::of(Failure::ConvergenceDeadlineExceeded))
    }
}

/// Whether the candidate could be running unselected, so that it must not be left alone.
fn must_stop(facts: &Facts<'_>) -> bool {
    let own_work = matches!(facts.pass.claim.target, Target::Revision { .. });
    let first = facts.agent.active_revision_id.is_none();
    let ours = facts.revision.may_be_of(&facts.pass.compute.identity);
    let due = first || facts.pass.compute.exclusive || may_be_routed_to(facts) || waiting(facts).is_some();
    own_work && ours && !facts.is_active() && due
}

/// Whether this pass, or one before, may have caused something of the version to run.
fn may_run(facts: &Facts<'_>) -> bool {
    facts.pass.progress.prepared.is_some() || facts.pass.claim.last_attempt.is_some()
}

/// Whether its route may lead to the version, although the pointer does not name it.
fn may_be_routed_to(facts: &Facts<'_>) -> bool {
    let before = facts.pass.compute.order == ActivationOrder::BeforeCommit;
    before && (facts.pass.progress.activated.is_some() || facts.pass.claim.last_attempt.is_some())
}

/// Ends the pass with the refusal, after the candidate's stop where one is due.
pub(super) fn refuse(facts: &Facts<'_>, refusal: &Refusal) -> Step {
    let ended = || {
        // A newer version took its place while it waited for the stop (seed).
        if waiting(facts).is_some() && facts.superseded() {
            return finish(revision::superseded(facts));
        }
        let mut outcome = failed(refusal.failure);
        if let Outcome::Failed { audit, .. } = &mut outcome {
            audit.extend(refusal.denial.as_deref().cloned());
        }
        finish(outcome)
    };
    if !must_stop(facts) {
        return ended();
    }
    let target = revision_ref(facts.agent, facts.revision);
    let before = facts
        .pass
        .claim
        .last_attempt
        .as_ref()
        .map_or(0, |last| last.failed_stops);
    let wait = |failed_stops, took| {
        finish(Outcome::RefusedStop {
            refusal: refusal.failure,
            failed_stops,
            took,
        })
    };
    match facts.pass.progress.stops.get(&target.id) {
        // Stored first: whoever dies during the stop spends no attempt then, and takes no refusal along.
        None if may_run(facts) && waiting(facts).is_none() => finish(Outcome::Refused(refusal.failure)),
        None => Step::Stop(target),
        Some(record) => match record.result {
            Ok(Stop::Stopped) => ended(),
            // Draining is progress: the recheck does not grow with it.
            Ok(Stop::Draining) => wait(before, record.took),
            Err(_) => wait(before.saturating_add(1), record.took),
        },
    }
}

//! Refused candidates: stopped first, recorded as refused after (seed; spec/engine 6).

use super::{
    pass::{Outcome, Step, failed, finish, revision_ref},
    revision::Facts,
};
use crate::{audit::AuditEvent, driver::Stop, reason::Failure, work::Target};

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

/// An earlier pass refused the candidate and its stop is not done: go on with the stop, unless the refusal lifted in time.
pub(super) fn standing(facts: &Facts<'_>) -> Option<Step> {
    let refusal = facts.pass.claim.last_attempt.as_ref()?.refusal?;
    if !lifts(refusal) {
        return Some(refuse(facts, &Refusal::of(refusal)));
    }
    // It lifted, but too late: the candidate is stopped all the same.
    facts
        .pass
        .late
        .then(|| refuse(facts, &Refusal::of(Failure::ConvergenceDeadlineExceeded)))
}

/// Whether the candidate could be running unselected, so that it must not be left alone.
fn must_stop(facts: &Facts<'_>) -> bool {
    let own_work = matches!(facts.pass.claim.target, Target::Revision { .. });
    let first = facts.agent.active_revision_id.is_none();
    let ours = facts.revision.snapshot.compute == facts.pass.compute.identity;
    own_work && ours && !facts.is_active() && (first || facts.pass.compute.exclusive)
}

/// Ends the pass with the refusal, after the candidate's stop where one is due.
pub(super) fn refuse(facts: &Facts<'_>, refusal: &Refusal) -> Step {
    let ended = || {
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
        None => Step::Stop(target),
        Some(record) => match record.result {
            Ok(Stop::Stopped) => ended(),
            // Draining is progress: the recheck does not grow with it.
            Ok(Stop::Draining) => wait(before, record.took),
            Err(_) => wait(before.saturating_add(1), record.took),
        },
    }
}

//! Ends a pass: its outcome, with what belongs to it, becomes one change under the claim.

use tokio::time::Instant;

use super::{
    Outcome, Pass,
    interpreter::{STORE_PAUSE, Shared},
    lease::Heartbeat,
    settle::{Consequences, consequences, settle},
    telemetry,
};
use crate::{
    randomness,
    reason::{Failure, Pending},
    store::{Change, CommitError, Expect, PassRead, Write},
    work::{Claim, Transition},
};

/// Settles the claim with the outcome's writes, in one change.
pub(super) async fn publish(
    shared: &Shared,
    outcome: &Outcome,
    mut pass: Pass,
    started: Instant,
    heartbeat: &Heartbeat,
) {
    let mut transition = settle(outcome, &pass, &shared.policy, randomness::unit());
    let mut change = Change::new().expect(Expect::ClaimHeld(pass.claim.token));
    match outcome {
        Outcome::Done {
            expect, writes, audit, ..
        } => {
            change.expect.extend(expect.iter().cloned());
            change.writes.extend(writes.iter().map(|write| write.0.clone()));
            change.audit.extend(audit.iter().cloned());
        }
        Outcome::Failed { audit, .. } => change.audit.extend(audit.iter().cloned()),
        _ => {}
    }
    let sent = Instant::now();
    let mut committed = commit(shared, settling(change, &transition, &pass), heartbeat).await;
    if committed.is_ok() {
        shared.waiting.saw(shared, &pass, outcome, &transition, sent);
    }
    // Something else moved between the last read and the publication: look again in a new attempt. When there is none, the work
    // ends with what belongs to its end as things are now.
    while something_moved(&committed) {
        transition = shared.policy.retry(
            &pass.claim,
            Pending::ActiveRevisionChanged,
            Failure::ActiveRevisionChanged,
            randomness::unit(),
        );
        if matches!(transition, Transition::Fail { .. }) {
            match reread(shared, &pass.claim, heartbeat).await {
                Ok(read) => pass.read = read,
                Err(error) => {
                    committed = Err(error);
                    break;
                }
            }
        }
        let change = Change::new().expect(Expect::ClaimHeld(pass.claim.token));
        committed = commit(shared, settling(change, &transition, &pass), heartbeat).await;
    }
    let cause = pass.progress.cause().map(ToString::to_string);
    let cause = cause.as_deref().unwrap_or_default();
    let terminal = matches!(transition, Transition::Complete { .. } | Transition::Fail { .. });
    // Why the stop of a refused candidate fails is for operators to see each time (seed).
    let told = terminal || matches!(transition, Transition::Defer { refusal: Some(_), .. });
    let code = transition.code();
    match &committed {
        Ok(()) => telemetry::settled(&pass.claim, &transition, started.elapsed()),
        Err(error) => unpublished(&pass.claim, error, heartbeat),
    }
    let work = pass.claim.target.key();
    let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    match committed {
        Ok(()) if told => {
            tracing::info!(
                work,
                code,
                cause,
                attempt = pass.claim.attempt,
                elapsed_ms,
                "worker.completed"
            );
        }
        Ok(()) => tracing::debug!(
            work,
            code,
            cause,
            attempt = pass.claim.attempt,
            elapsed_ms,
            "worker.deferred"
        ),
        Err(error) => {
            let code = if lost(&error, heartbeat) {
                "CLAIM_LOST"
            } else {
                "RESULT_UNPUBLISHED"
            };
            tracing::warn!(work, code, cause = %error, "worker.error");
        }
    }
}

/// Whether a result was not published because the claim is gone, or may be.
fn lost(error: &CommitError, heartbeat: &Heartbeat) -> bool {
    matches!(error, CommitError::Conflict(Expect::ClaimHeld(_))) || !heartbeat.renewed()
}

/// Counts a result that was not published by what kept it.
pub(super) fn unpublished(claim: &Claim, error: &CommitError, heartbeat: &Heartbeat) {
    if lost(error, heartbeat) {
        telemetry::lease_lost(claim);
    } else {
        telemetry::unpublished(claim);
    }
}

/// The change with the transition and what belongs to it.
fn settling(mut change: Change, transition: &Transition, pass: &Pass) -> Change {
    let Consequences { expect, writes } = consequences(transition, pass);
    change.expect.extend(expect);
    change.writes.extend(writes.into_iter().map(|write| write.0));
    change.write(Write::Settle(pass.claim.token, transition.clone()))
}

/// Whether a change was not committed because of something else than its claim.
fn something_moved(committed: &Result<(), CommitError>) -> bool {
    match committed {
        Err(CommitError::Conflict(expect)) => !matches!(expect, Expect::ClaimHeld(_)),
        Err(CommitError::StateConflict) => true,
        _ => false,
    }
}

/// The facts of now. A store that does not answer while the claim holds leaves the work to its recovery.
async fn reread(shared: &Shared, claim: &Claim, heartbeat: &Heartbeat) -> Result<PassRead, CommitError> {
    loop {
        match shared.store.pass_read(&claim.target).await {
            Ok(read) => return Ok(read),
            Err(_) if heartbeat.renewed() => tokio::time::sleep(STORE_PAUSE).await,
            Err(_) => return Err(CommitError::Unavailable),
        }
    }
}

/// Commits while the claim holds: a store that is away or full for a moment costs no attempt, and no finished effect.
pub(super) async fn commit(shared: &Shared, change: Change, heartbeat: &Heartbeat) -> Result<(), CommitError> {
    loop {
        match shared.store.commit(change.clone()).await {
            Err(CommitError::Unavailable | CommitError::NoSpace) if heartbeat.renewed() => {
                tokio::time::sleep(STORE_PAUSE).await;
            }
            committed => return committed,
        }
    }
}

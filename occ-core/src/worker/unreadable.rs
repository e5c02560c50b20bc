//! Ends a pass that could not read what it is about: nothing of it is decided, and an attempt is spent.

use tokio::time::Instant;

use super::{
    interpreter::Shared,
    lease::Heartbeat,
    pass::WriteBox,
    publish::{commit, unpublished},
    settle::{later_look, namespace_fails},
    telemetry,
};
use crate::{
    driver::Maintenance,
    randomness,
    reason::{Failure, Pending},
    store::{Change, CommitError, Expect, Write},
    work::{Claim, Target, Transition},
};

/// Settles the claim. Its last attempt brings what the end of such work brings, as far as that can be known unread.
pub(super) async fn publish(shared: &Shared, claim: &Claim, started: Instant, heartbeat: &Heartbeat) {
    let transition = shared.policy.retry(
        claim,
        Pending::DependencyUnavailable,
        Failure::InvalidAdmittedRevision,
        randomness::unit(),
    );
    let settle = |change: Change| {
        let change = change.expect(Expect::ClaimHeld(claim.token));
        change.write(Write::Settle(claim.token, transition.clone()))
    };
    let mut committed = commit(shared, settle(consequences(shared, claim, &transition)), heartbeat).await;
    // The Namespace is no longer being provided: nothing follows.
    if let Err(CommitError::Conflict(Expect::NamespaceStatus(..))) = committed {
        committed = commit(shared, settle(Change::new()), heartbeat).await;
    }
    match committed {
        Ok(()) => {
            telemetry::settled(claim, &transition, started.elapsed());
            tracing::warn!(work = claim.target.key(), code = transition.code(), "worker.unreadable");
        }
        Err(error) => {
            unpublished(claim, &error, heartbeat);
            tracing::warn!(work = claim.target.key(), cause = %error, "worker.error");
        }
    }
}

fn consequences(shared: &Shared, claim: &Claim, transition: &Transition) -> Change {
    let mut change = Change::new();
    if !matches!(transition, Transition::Fail { .. }) {
        return change;
    }
    match claim.target {
        Target::NamespaceReady { namespace } => {
            let (expect, WriteBox(write)) = namespace_fails(namespace);
            change = change.expect(expect).write(write);
        }
        // Whether the version is still selected is for the next look to find out.
        Target::Maintenance { .. } => {
            let interval = shared.drivers.compute.maintenance().map(Maintenance::interval);
            let look = later_look(claim, claim.claimed_at, interval);
            change.writes.extend(look.map(|WriteBox(write)| write));
        }
        _ => {}
    }
    change
}

//! Optimistic commits: what a decision rests on is a precondition, and when one no longer holds the operation looks again.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    admission::Refusal,
    reason::ApiCode,
    store::{Change, CommitError, Expect, Store, StoreError, Taken},
};

/// How often an operation looks again before it gives up.
const TRIES: u32 = 8;

/// The tries of one operation.
pub(super) struct Tries<'a> {
    store: &'a dyn Store,
    spent: u32,
    /// Whether what allowed the change is looked at again in its transaction.
    rechecks: bool,
}

/// Why an operation's change was not committed, or is not known to be.
pub(super) enum Uncommitted {
    /// Certainly not: effects outside may be undone.
    Certain(Refusal),
    /// Nobody knows: effects outside stay.
    Unknown(Refusal),
}

/// Before the commit nothing is committed for certain.
impl From<Refusal> for Uncommitted {
    fn from(refusal: Refusal) -> Self {
        Self::Certain(refusal)
    }
}

impl From<StoreError> for Uncommitted {
    fn from(error: StoreError) -> Self {
        Self::Certain(error.into())
    }
}

impl From<Uncommitted> for Refusal {
    fn from(failure: Uncommitted) -> Self {
        match failure {
            Uncommitted::Certain(refusal) | Uncommitted::Unknown(refusal) => refusal,
        }
    }
}

impl<'a> Tries<'a> {
    pub(super) fn new(store: &'a dyn Store) -> Self {
        Self {
            store,
            spent: 0,
            rechecks: false,
        }
    }

    /// For changes that must not be committed once what allowed them is withdrawn. Each try asks anew who allows it.
    pub(super) fn rechecking(store: &'a dyn Store, rechecks: bool) -> Self {
        Self {
            store,
            spent: 0,
            rechecks,
        }
    }

    /// `true` when the change is committed; `false` when something changed meanwhile and the operation should look again.
    pub(super) async fn commit(&mut self, change: Change) -> Result<bool, Uncommitted> {
        let change = if self.rechecks { allowed_still(change) } else { change };
        let refusal = match self.store.commit(change).await {
            Ok(()) => return Ok(true),
            Err(CommitError::Conflict(_) | CommitError::StateConflict) => {
                return self.again().await.map(|()| false).map_err(Uncommitted::Certain);
            }
            Err(CommitError::NameTaken(taken)) => Refusal::conflict(match taken {
                Taken::Namespace => "The name is taken by another Namespace, or was by a deleted one.",
                Taken::Agent => "The name is taken by another Agent of the Namespace.",
                Taken::Secret => "The name is taken by another Secret of the Namespace.",
                Taken::Account => "The email address, the principal or the identity has an account already.",
                Taken::Owned => "The name is taken by another resource of its kind in the Namespace.",
            }),
            Err(CommitError::Refused) => {
                tracing::error!("a change contradicts what is stored");
                Refusal::new(ApiCode::InternalError)
            }
            Err(CommitError::Unavailable) => Refusal::unavailable("The database is unavailable; nothing was done."),
            Err(CommitError::NoSpace) => Refusal::unavailable("The database has no space left; nothing was done."),
            Err(CommitError::UnknownOutcome) => return Err(Uncommitted::Unknown(Refusal::unknown_outcome())),
        };
        Err(Uncommitted::Certain(refusal))
    }

    /// Commits a change that rests on nothing that was read.
    pub(super) async fn commit_alone(mut self, change: Change) -> Result<(), Uncommitted> {
        while !self.commit(change.clone()).await? {}
        Ok(())
    }

    /// Whether looking again would be refused: what was read must do.
    pub(super) const fn is_last(&self) -> bool {
        self.spent + 1 >= TRIES
    }

    /// Waits a moment before the operation looks again; a refusal once that was often enough.
    pub(super) async fn again(&mut self) -> Result<(), Refusal> {
        self.spent += 1;
        if self.spent >= TRIES {
            return Err(Refusal::conflict(
                "The resource kept changing. Read its current state and try again.",
            ));
        }
        // A few milliseconds, so that two callers that collide do not collide again.
        let jitter = crate::randomness::at_most(3 * u64::from(self.spent));
        tokio::time::sleep(Duration::from_millis(jitter)).await;
        Ok(())
    }
}

/// The change, under the access bindings that allowed it (spec/engine 11).
fn allowed_still(change: Change) -> Change {
    let authorizations = change.audit.iter().filter_map(|event| event.authorization.as_ref());
    let allowing = authorizations.filter(|answer| answer.decision.allowed);
    let bindings: BTreeSet<_> = allowing
        .flat_map(|answer| answer.decision.evidence.binding_ids.iter().cloned())
        .collect();
    bindings
        .into_iter()
        .fold(change, |change, binding| change.expect(Expect::AccessBinding(binding)))
}

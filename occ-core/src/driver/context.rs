//! What every effect is given.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{DriverState, EffectError, EffectResult, EmptyState};
use crate::{
    iam::Grants,
    resource::PrincipalId,
    time::{Clock, SystemClock, Timestamp},
};

/// The circumstances of one effect: who calls it a second time, until when it may run, and where it reads the time.
#[derive(Clone)]
pub struct OperationContext {
    operation: Uuid,
    attempt: u32,
    deadline: Option<Timestamp>,
    cancellation: CancellationToken,
    clock: Arc<dyn Clock>,
    state: DriverState,
    policy: Arc<BTreeMap<PrincipalId, Grants>>,
}

impl std::fmt::Debug for OperationContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperationContext")
            .field("operation", &self.operation)
            .field("attempt", &self.attempt)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl Default for OperationContext {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock), DriverState::new(Arc::new(EmptyState)))
    }
}

impl OperationContext {
    /// A context of a first attempt, without deadline.
    pub fn new(clock: Arc<dyn Clock>, state: DriverState) -> Self {
        Self {
            operation: crate::randomness::uuid(),
            attempt: 1,
            deadline: None,
            cancellation: CancellationToken::new(),
            clock,
            state,
            policy: Arc::default(),
        }
    }

    /// The same with the attempt's number, counted from 1.
    #[must_use]
    pub fn with_attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// The same with a deadline.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Timestamp) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The same, cancelled when `cancellation` is: the engine's fires when the claim's lease lapses.
    #[must_use]
    pub fn with_cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// The same with what was read already of the Installation's policy, for these principals.
    #[must_use]
    pub fn with_grants(mut self, grants: impl IntoIterator<Item = (PrincipalId, Grants)>) -> Self {
        self.policy = Arc::new(grants.into_iter().collect());
        self
    }

    /// What bears on a principal in the Installation's policy, if this operation has read it. An IAM Driver that decides by that
    /// policy need not read it again.
    pub fn known_grants(&self, principal: &PrincipalId) -> Option<&Grants> {
        self.policy.get(principal)
    }

    /// Identity of this operation; the same for every effect of one pass.
    pub fn operation(&self) -> Uuid {
        self.operation
    }

    /// Which attempt of the work this is, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Time left until the deadline; `None` without one.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.since(self.now()))
    }

    /// The driver's own records.
    pub fn state(&self) -> &DriverState {
        &self.state
    }

    /// Fires when no further effect may be caused.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Runs `effect` until it ends or the operation is cancelled. A cancelled effect's outcome is not known.
    pub async fn run<T, F>(&self, effect: F) -> EffectResult<T>
    where
        F: Future<Output = EffectResult<T>>,
    {
        self.cancellation
            .run_until_cancelled(effect)
            .await
            .unwrap_or(Err(EffectError::UnknownOutcome))
    }
}

//! Policies that change while a driver reads them.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use occ_core::{
    driver::{EffectResult, Fault, FaultKind},
    iam::{Grants, PolicyReader},
    resource::PrincipalId,
};

/// What a driver finds; `None` when the policy cannot be read.
#[derive(Default)]
pub(super) struct Policy {
    states: Mutex<Vec<Option<Grants>>>,
}

impl Policy {
    pub(super) fn of(grants: Grants) -> Self {
        Self {
            states: Mutex::new(vec![Some(grants)]),
        }
    }

    /// Each reading finds the next of these states, and the first one again after the last.
    pub(super) fn alternating(states: Vec<Grants>) -> Self {
        Self {
            states: Mutex::new(states.into_iter().map(Some).collect()),
        }
    }

    /// What is found from now on.
    pub(super) fn set(&self, grants: Option<Grants>) {
        *self.states.lock().unwrap_or_else(PoisonError::into_inner) = vec![grants];
    }
}

#[async_trait]
impl PolicyReader for Policy {
    async fn grants(&self, _: &PrincipalId) -> EffectResult<Grants> {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let present = states.first().cloned().flatten();
        if !states.is_empty() {
            states.rotate_left(1);
        }
        present.ok_or_else(|| Fault::new("read the policy", FaultKind::Unavailable).into())
    }
}

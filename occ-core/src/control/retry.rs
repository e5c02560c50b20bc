//! Who may repeat a deletion that failed (seed: Deletion; spec/engine 1.4, 3.2).

use super::{Answer, operation::Operation};
use crate::{
    admission::{Record, Refusal},
    audit::{AuditEvent, Authorization},
    driver::AccessRequest,
    reason::{ApiCode, Failure},
    resource::PrincipalId,
};

/// A deletion that ended in failure.
pub(super) struct FailedDeletion {
    /// Who began it, or took it over last.
    pub(super) initiator: PrincipalId,
    /// Attempts that it spent.
    pub(super) attempts: u32,
    /// Why it ended.
    pub(super) failure: Failure,
}

impl FailedDeletion {
    /// The initiator repeats; another permitted caller takes over only once the initiator may no longer delete.
    pub(super) async fn admit(&self, op: &Operation<'_>, allowed: &Authorization) -> Answer<()> {
        if self.initiator == allowed.request.principal {
            return Ok(());
        }
        let question = AccessRequest {
            principal: self.initiator.clone(),
            ..allowed.request.clone()
        };
        let answers = op.decide(vec![question]).await?;
        if answers.iter().all(|answer| !answer.decision.allowed) {
            return Ok(());
        }
        let text = "The deletion was begun by another principal, who may repeat it.";
        let record = Record::RetryOwned {
            caller: allowed.clone(),
            initiator: self.initiator.clone(),
        };
        Err(Refusal::fixed(ApiCode::Forbidden, text).recorded(record))
    }

    /// What is recorded of the repetition.
    pub(super) fn describe(&self, event: AuditEvent) -> AuditEvent {
        let event = event
            .with("previousAttemptCount", self.attempts)
            .with("previousReasonCode", self.failure.code());
        if event.actor == self.initiator {
            return event;
        }
        event
            .with("takeover", true)
            .with("previousActorId", self.initiator.as_str())
    }
}

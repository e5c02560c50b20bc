//! The pass that takes a credential source from a version (spec/engine 1.8 and 4, spec/contracts 11.2).

use std::time::Duration;

use uuid::Uuid;

use super::{
    agent::authorized,
    pass::{Outcome, Pass, Step, WriteBox, done, failed, finish, revision_ref},
};
use crate::{
    audit::AuditEvent,
    control::source_identity,
    driver::{AttachmentCondition, EffectError},
    reason::{Failure, Pending, Success},
    resource::CredentialSource,
    store::{Expect, Write},
};

/// For how long a gateway is asked to let go. Then the work ends, and the withdrawal stays asked for: whoever wants it asks again.
const PATIENCE: Duration = Duration::from_hours(1);

pub(super) fn decide(pass: &Pass, operation: Uuid) -> Step {
    withdraw(pass, operation).unwrap_or_else(|step| step)
}

fn withdraw(pass: &Pass, operation: Uuid) -> Result<Step, Step> {
    let (Some(agent), Some(revision)) = (&pass.read.agent, &pass.read.head) else {
        return Err(finish(failed(Failure::InvalidRevisionOwner)));
    };
    authorized(pass)?;
    let asked = |source: &&CredentialSource| {
        let withdrawal = source.withdrawal(revision.id);
        withdrawal.is_some_and(|withdrawal| withdrawal.is_by(operation))
    };
    // It is gone, or was asked for anew.
    let Some(source) = pass.read.sources.iter().find(asked) else {
        return Err(finish(done(Success::SupersededTarget)));
    };
    if pass.compute.credential_gateway.as_ref() != Some(&source.gateway_id) {
        return Err(finish(failed(Failure::CredentialGatewayMismatch)));
    }
    let Some(shown) = &pass.progress.withdrawn else {
        let target = revision_ref(&agent.agent, revision);
        return Err(Step::Withdraw(target, Box::new(source_identity(source))));
    };
    Ok(finish(match shown {
        Ok(AttachmentCondition::Revoked | AttachmentCondition::Absent) => revoked(pass, source, operation),
        Err(EffectError::Ownership) => failed(Failure::OwnershipConflict),
        Err(EffectError::Terminal(terminal)) => failed(terminal.failure()),
        _ if pass.claim.age() >= PATIENCE => failed(Failure::DependencyUnavailable),
        Ok(_) => waits(Pending::ReconciliationPending),
        Err(_) => waits(Pending::DependencyUnavailable),
    }))
}

fn waits(reason: Pending) -> Outcome {
    let evidence = None;
    Outcome::Pending { reason, evidence }
}

/// There is evidence: the version can use the source no more.
fn revoked(pass: &Pass, source: &CredentialSource, operation: Uuid) -> Outcome {
    let after = source.revoked(operation, pass.read.now);
    let event = AuditEvent::mutation(
        pass.claim.actor.clone(),
        "openclaw.agents.lifecycle.credentials_withdraw",
        pass.claim.target.resource(),
    );
    Outcome::Done {
        success: Success::CredentialsWithdrawn,
        warnings: Vec::new(),
        expect: vec![Expect::Owned(source.id.to_string(), source.version)],
        writes: vec![WriteBox(Write::UpdateOwned((&after).into()))],
        audit: vec![event.with("credentialSourceId", source.id.to_string())],
    }
}

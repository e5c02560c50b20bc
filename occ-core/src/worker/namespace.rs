//! Passes over a Namespace (spec/engine 5.6).

use super::{
    authority,
    pass::{Outcome, Pass, Step, WriteBox, done, effect_failed, failed, finish},
};
use crate::{
    audit::AuditEvent,
    reason::{Failure, Pending, Success},
    resource::NamespaceStatus,
    store::{Expect, NamespaceRow, Write},
    work::Target,
};

pub(super) fn decide(pass: &Pass) -> Step {
    let deleting = matches!(pass.claim.target, Target::NamespaceDeleted { .. });
    let Some(row) = &pass.read.namespace else {
        return finish(done(Success::SupersededTarget));
    };
    let wanted = if deleting {
        NamespaceStatus::Deleting
    } else {
        NamespaceStatus::Provisioning
    };
    if row.namespace.status != wanted {
        return finish(done(Success::SupersededTarget));
    }
    match &pass.progress.authority {
        None => return Step::Authorize(authority::target(pass)),
        Some(Err(error)) => return finish(effect_failed(error)),
        Some(Ok(authority)) => {
            if let Some(failure) = authority.refusal() {
                return finish(Outcome::Failed {
                    failure,
                    audit: authority.denial(pass).into_iter().collect(),
                });
            }
        }
    }
    match &pass.progress.namespace {
        None if deleting => Step::DeleteNamespace,
        None => Step::EnsureNamespace,
        Some(Ok(state)) if state.namespace_id != row.namespace.id => finish(failed(Failure::InvalidDriverObservation)),
        Some(Ok(state)) if state.done => finish(reconciled(pass, row, deleting)),
        Some(Ok(_)) => finish(Outcome::Pending {
            reason: Pending::NamespaceIncomplete,
            evidence: None,
        }),
        Some(Err(error)) => finish(effect_failed(error)),
    }
}

fn reconciled(pass: &Pass, row: &NamespaceRow, deleting: bool) -> Outcome {
    let id = row.namespace.id;
    let (write, action) = if deleting {
        (Write::NamespaceTombstone(id), "openclaw.namespaces.lifecycle.delete")
    } else {
        let write = Write::NamespaceStatus {
            id,
            status: NamespaceStatus::Ready,
            deletion_actor: None,
        };
        (write, "openclaw.namespaces.lifecycle.ensure")
    };
    Outcome::Done {
        success: Success::NamespaceReconciled,
        warnings: Vec::new(),
        expect: vec![Expect::Namespace(id, row.version)],
        writes: vec![WriteBox(write)],
        audit: vec![AuditEvent::mutation(
            pass.claim.actor.clone(),
            action,
            pass.claim.target.resource(),
        )],
    }
}

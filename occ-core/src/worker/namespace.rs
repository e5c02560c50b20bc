//! Passes over a Namespace (spec/engine 5.6).

use super::{
    authority,
    pass::{Outcome, Pass, Step, WriteBox, done, effect_failed, finish},
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
                return finish(end(pass, row, failure, authority.denial(pass)));
            }
        }
    }
    match &pass.progress.namespace {
        None if deleting => Step::DeleteNamespace,
        None => Step::EnsureNamespace,
        Some(Ok(state)) if state.namespace_id != row.namespace.id => {
            finish(end(pass, row, Failure::InvalidDriverObservation, None))
        }
        Some(Ok(state)) if state.done => finish(reconciled(pass, row, deleting)),
        Some(Ok(_)) => finish(Outcome::Pending {
            reason: Pending::NamespaceIncomplete,
            evidence: None,
        }),
        Some(Err(error)) => finish(match effect_failed(error) {
            Outcome::Failed { failure, .. } => end(pass, row, failure, None),
            other => other,
        }),
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

/// A Namespace whose provision ended is failed in the same change; one whose deletion ended stays deleting until it is retried.
pub(super) fn end(pass: &Pass, row: &NamespaceRow, failure: Failure, denial: Option<AuditEvent>) -> Outcome {
    let id = row.namespace.id;
    let provisioning = matches!(pass.claim.target, Target::NamespaceReady { .. });
    let status = Write::NamespaceStatus {
        id,
        status: NamespaceStatus::Failed,
        deletion_actor: None,
    };
    let writes = if provisioning {
        vec![WriteBox(status)]
    } else {
        Vec::new()
    };
    Outcome::Failed {
        failure,
        writes,
        audit: denial.into_iter().collect(),
    }
}

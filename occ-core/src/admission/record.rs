//! What must be in the audit before a refusal is answered (spec/engine 2.3, 14).

use crate::{
    audit::{AuditEvent, AuditKind, AuditOutcome, Authorization},
    driver::ResourceRef,
    resource::PrincipalId,
};

/// The refusals that are recorded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Record {
    /// The caller has not this grant.
    Denied(Authorization),
    /// The caller's key opens another Namespace only.
    OutOfScope(ResourceRef),
    /// The Agent's principal has not this grant; recorded as the caller's own request (seed).
    AgentPrincipal {
        /// The caller's request and its allowing decision.
        caller: Authorization,
        /// What the Agent's principal was denied.
        denied: Box<Authorization>,
    },
    /// A deletion that failed may be repeated by its initiator alone.
    RetryOwned {
        /// The caller's request and its allowing decision.
        caller: Authorization,
        /// Who began the deletion.
        initiator: PrincipalId,
    },
    /// The caller was allowed; the state was not.
    Failed {
        /// The caller's request and its allowing decision.
        caller: Authorization,
        /// Why: a code.
        reason: &'static str,
    },
}

impl Record {
    /// The event: `actor` asked for `action`.
    pub(crate) fn event(self, actor: PrincipalId, action: &str) -> AuditEvent {
        match self {
            Self::Denied(authorization) => AuditEvent::denial(actor, action, authorization),
            Self::OutOfScope(resource) => AuditEvent {
                kind: AuditKind::AuthorizationDenial,
                outcome: AuditOutcome::Denied,
                ..AuditEvent::mutation(actor, action, resource)
            }
            .because("SERVICE_KEY_SCOPE"),
            Self::AgentPrincipal { caller, denied } => {
                let evidence = serde_json::to_value(&denied.decision.evidence).unwrap_or_default();
                AuditEvent::denial(actor, action, caller)
                    .because("AGENT_PRINCIPAL_NOT_AUTHORIZED")
                    .with("servicePrincipalId", denied.request.principal.as_str())
                    .with("action", denied.request.action.as_str())
                    .with(
                        "resource",
                        serde_json::to_value(&denied.request.resource).unwrap_or_default(),
                    )
                    .with("servicePrincipalEvidence", evidence)
            }
            Self::RetryOwned { caller, initiator } => AuditEvent::denial(actor, action, caller)
                .because("DELETION_RETRY_OWNED")
                .with("initiatingActorId", initiator.as_str()),
            Self::Failed { caller, reason } => AuditEvent {
                outcome: AuditOutcome::Failure,
                authorization: Some(caller.clone()),
                ..AuditEvent::mutation(actor, action, caller.request.resource)
            }
            .because(reason),
        }
    }
}

//! Whether the original actor and the Agent's principal may still do what was asked, under the policy of now.

use super::Pass;
use crate::{
    admission::source,
    audit::{AuditEvent, Authorization},
    driver::{AccessRequest, Action, ResourceRef},
    reason::Failure,
    resource::{Agent, AgentRevision, CredentialSource, PrincipalId},
    work::Target,
};

/// What the IAM Driver answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authority {
    /// Everything is granted.
    Granted,
    /// This is not.
    Denied(Box<Authorization>),
    /// The actor's identity no longer exists.
    ActorGone,
    /// The Agent's principal no longer exists.
    PrincipalGone,
}

impl Authority {
    /// The failure that a refusal ends with; `None` when everything is granted.
    pub fn refusal(&self) -> Option<Failure> {
        match self {
            Self::Granted => None,
            Self::Denied(_) => Some(Failure::AuthorizationDenied),
            Self::ActorGone => Some(Failure::ActorRevoked),
            Self::PrincipalGone => Some(Failure::InvalidAgentPrincipal),
        }
    }

    /// The denial's audit event.
    pub fn denial(&self, pass: &Pass) -> Option<AuditEvent> {
        let failure = self.refusal()?;
        let action = match pass.claim.target {
            Target::NamespaceReady { .. } => "openclaw.namespaces.lifecycle.ensure",
            Target::NamespaceDeleted { .. } => "openclaw.namespaces.delete",
            Target::AgentStopped { .. } => "openclaw.agents.stop",
            Target::AgentDeleted { .. } => "openclaw.agents.delete",
            Target::Revision { .. } | Target::Maintenance { .. } => "openclaw.agents.deploy",
            Target::CredentialsWithdrawn { .. } => "openclaw.agents.credential_sources.withdraw",
        };
        let actor = pass.claim.actor.clone();
        let event = match self {
            Self::Denied(authorization) => {
                let mut event = AuditEvent::denial(actor, action, (**authorization).clone());
                event.resource = pass.claim.target.resource();
                event
            }
            _ => AuditEvent {
                kind: crate::audit::AuditKind::AuthorizationDenial,
                outcome: crate::audit::AuditOutcome::Denied,
                ..AuditEvent::mutation(actor, action, pass.claim.target.resource())
            },
        };
        Some(event.because(failure.code()))
    }
}

fn ask(principal: &PrincipalId, action: Action, resource: ResourceRef) -> AccessRequest {
    AccessRequest {
        principal: principal.clone(),
        action,
        resource,
    }
}

/// What a deployment needs: the actor deploys, reads the Configuration and the service account behind a token, and operates every
/// Secret; so does the Agent's principal the Secrets. An issued token is guarded by its account, and by no grant on its Secret (seed).
pub(super) fn deployment(
    actor: &PrincipalId,
    agent: &Agent,
    revision: &AgentRevision,
    sources: &[CredentialSource],
) -> Vec<AccessRequest> {
    let namespace = agent.namespace_id;
    let snapshot = &revision.snapshot;
    let mut requests = vec![
        ask(actor, Action::Deploy, ResourceRef::agent(namespace, agent.id)),
        ask(
            actor,
            Action::Read,
            ResourceRef::configuration(namespace, snapshot.configuration_id),
        ),
    ];
    let account = source::account_of(Some(&snapshot.harness_auth.binding));
    if let Some(account) = account {
        requests.push(ask(
            actor,
            Action::Read,
            ResourceRef::service_account(namespace, account),
        ));
    }
    let secrets = snapshot
        .harness_auth
        .secret
        .iter()
        .filter(|_| account.is_none())
        .chain(snapshot.secret_bindings.values());
    for secret in secrets {
        let resource = ResourceRef::secret(namespace, secret.id);
        requests.push(ask(actor, Action::Operate, resource.clone()));
        requests.push(ask(&agent.service_principal_id, Action::Operate, resource));
    }
    let withdrawn = |id| {
        let mut rows = sources.iter();
        rows.any(|row| row.id == id && row.withdrawal(revision.id).is_some())
    };
    for frozen in &snapshot.credential_sources {
        if !withdrawn(frozen.source_id) {
            let resource = ResourceRef::credential_source(namespace, frozen.source_id);
            requests.push(ask(actor, Action::Operate, resource.clone()));
            requests.push(ask(&agent.service_principal_id, Action::Operate, resource));
        }
    }
    requests
}

/// What any other target needs.
pub(super) fn target(pass: &Pass) -> Vec<AccessRequest> {
    let actor = &pass.claim.actor;
    match pass.claim.target {
        Target::AgentStopped { namespace, agent, .. } | Target::CredentialsWithdrawn { namespace, agent, .. } => {
            vec![ask(actor, Action::Operate, ResourceRef::agent(namespace, agent))]
        }
        Target::AgentDeleted { namespace, agent } => {
            vec![ask(actor, Action::Delete, ResourceRef::agent(namespace, agent))]
        }
        Target::NamespaceDeleted { namespace } => {
            vec![ask(actor, Action::Delete, ResourceRef::namespace(namespace))]
        }
        Target::NamespaceReady { .. } => {
            let adopts = pass
                .read
                .namespace
                .as_ref()
                .is_some_and(|row| row.namespace.existing_namespace.is_some());
            let create = |id| ask(actor, Action::Create, ResourceRef::namespaces(id));
            let administer = |id| ask(actor, Action::Administer, ResourceRef::installation(id));
            let installation = pass.compute.installation;
            installation
                .map(create)
                .into_iter()
                .chain(installation.filter(|_| adopts).map(administer))
                .collect()
        }
        Target::Revision { .. } | Target::Maintenance { .. } => Vec::new(),
    }
}

//! The Compute's optional abilities, as callers reach them (spec/contracts 4.5, 4.8; spec/engine 10).

use super::{
    Answer, Caller, ControlPlane, CredentialStatus, DiagnosticsView, LogsView,
    commit::Tries,
    credentials::Generated,
    operation::{Scope, look},
    redaction::Redaction,
};
use crate::{
    admission::{DetailCode, Refusal, denied},
    driver::{
        Action, AgentRef, DriverKind, EffectError, Fault, FaultKind, GatewayEndpoint, LogQuery, ResourceRef,
        RevisionRef,
    },
    id::{AgentId, NamespaceId, RevisionId},
    reason::ApiCode,
    resource::{Agent, AgentRevision, AgentStatus, DesiredRuntimeState, NamespaceStatus},
    store::{Change, Expect},
};

/// Most checks of one diagnosis (seed).
const CHECKS_MAX: usize = 32;

impl ControlPlane {
    /// Fresh checks of a version. Changes nothing and proves no model reply.
    pub async fn diagnose(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> Answer<DiagnosticsView> {
        let op = self.operation(caller, "openclaw.deployments.diagnose", Scope::Namespace(namespace));
        op.answer(async {
            let target = ResourceRef::agent(namespace, agent);
            let questions = vec![
                op.ask(Action::Operate, target.clone()),
                op.ask(Action::Read, target),
                op.ask(Action::Read, ResourceRef::agent_revision(namespace, id)),
            ];
            op.require_all(questions).await?;
            let revision = self.runtime_of(namespace, agent, id).await?;
            let away = || Refusal::driver_away(DriverKind::Compute);
            let diagnostics = self.drivers.compute.diagnostics().ok_or_else(away)?;
            let observed_at = self.store.now().await?;
            let cx = self.context();
            let checks = look(diagnostics.diagnose(&cx, &revision.target)).await;
            let checks = checks.map_err(|e| Refusal::driver(DriverKind::Compute, &e))?;
            if checks.len() > CHECKS_MAX {
                return Err(away());
            }
            Ok(DiagnosticsView {
                revision_id: id,
                observed_at,
                checks,
            })
        })
        .await
    }

    /// A version's recent log lines, oldest first, redacted. Needs `read` of the Agent, and `read_logs` or `administer`.
    pub async fn runtime_logs(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
        query: LogQuery,
    ) -> Answer<LogsView> {
        let op = self.operation(caller, "openclaw.runtime_logs.read", Scope::Namespace(namespace));
        op.answer(async {
            if !(1..=1000).contains(&query.lines) {
                return Err(Refusal::invalid("lines must be 1 to 1000.").at("/lines", DetailCode::InvalidValue));
            }
            let ask = |action| op.ask(action, ResourceRef::agent(namespace, agent));
            let questions = vec![ask(Action::Read), ask(Action::ReadLogs), ask(Action::Administer)];
            let answers = op.decide(questions).await?;
            let allowed = |index: usize| answers.get(index).is_some_and(|answer| answer.decision.allowed);
            let refusing = usize::from(allowed(0));
            if !allowed(0) || !(allowed(1) || allowed(2)) {
                let answer = answers.into_iter().nth(refusing);
                return Err(answer.map_or(Refusal::driver_away(DriverKind::Iam), denied));
            }
            let revision = self.runtime_of(namespace, agent, id).await?;
            let logs = self
                .drivers
                .compute
                .logs()
                .ok_or(Refusal::new(ApiCode::NotImplemented))?;
            let cx = self.context();
            let lines = look(logs.read(&cx, &revision.target, &query))
                .await
                .map_err(|error| logs_refusal(&error))?;
            let redaction = Redaction::of(self.delivered_values(&cx, &revision).await?);
            let lines = lines.into_iter().map(|line| redaction.apply(&line)).collect();
            Ok(LogsView {
                revision_id: id,
                component: query.component,
                lines,
            })
        })
        .await
    }

    /// Where the selected version's gateway is. Needs `administer` of the Agent. No statement about its health.
    pub async fn gateway_endpoint(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
    ) -> Answer<GatewayEndpoint> {
        let op = self.operation(caller, "openclaw.agents.gateway.read", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Administer, ResourceRef::agent(namespace, agent))
                .await?;
            let row = self.agent_row(namespace, agent).await?.agent;
            if row.status == AgentStatus::Deleting {
                return Err(Refusal::new(ApiCode::AgentDeleting));
            }
            if row.desired_runtime_state == DesiredRuntimeState::Stopped {
                return Err(Refusal::conflict("The Agent is stopped. Deploy it to have a gateway."));
            }
            let none = || Refusal::unavailable("No version of the Agent is selected yet.");
            let active = row.active_revision_id.ok_or_else(none)?;
            let revision = self.runtime_of(namespace, agent, active).await?;
            let access = self
                .drivers
                .compute
                .gateway_access()
                .ok_or(Refusal::new(ApiCode::NotImplemented))?;
            let cx = self.context();
            let endpoint = look(access.endpoint(&cx, &revision.target)).await;
            let endpoint = endpoint.map_err(|e| Refusal::driver(DriverKind::Compute, &e))?;
            endpoint.ok_or(Refusal::unavailable("The selected version has no route."))
        })
        .await
    }

    /// Whether the Agent's generated transport credentials exist. Needs `read` of the Agent.
    pub async fn runtime_credentials(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
    ) -> Answer<CredentialStatus> {
        let op = self.operation(
            caller,
            "openclaw.agents.runtime_credentials.read",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            op.require(Action::Read, ResourceRef::agent(namespace, agent)).await?;
            let row = self.agent_row(namespace, agent).await?.agent;
            let credentials = self
                .drivers
                .compute
                .runtime_credentials()
                .ok_or(Refusal::new(ApiCode::NotImplemented))?;
            let exist = look(credentials.exist(&self.context(), &agent_ref(&row))).await;
            let transport_configured = exist.map_err(|error| credentials_refusal(&error))?;
            Ok(CredentialStatus { transport_configured })
        })
        .await
    }

    /// Creates the Agent's transport credentials before its first version; never overwrites. Needs `read` and `operate`.
    pub async fn provision_runtime_credentials(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
    ) -> Answer<CredentialStatus> {
        let op = self.operation(
            caller,
            "openclaw.agents.runtime_credentials.provision",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            let resource = ResourceRef::agent(namespace, agent);
            let questions = vec![
                op.ask(Action::Operate, resource.clone()),
                op.ask(Action::Read, resource.clone()),
            ];
            let allowed = op.require_all(questions).await?.swap_remove(0);
            let credentials = self
                .drivers
                .compute
                .runtime_credentials()
                .ok_or(Refusal::new(ApiCode::NotImplemented))?;
            let mut tries = Tries::new(&*self.store);
            let mut generated = Generated::new(self);
            let answer = async {
                loop {
                    let status = self.live_namespace(namespace).await?.namespace.status;
                    let row = self.agent_row(namespace, agent).await?;
                    if status != NamespaceStatus::Ready {
                        return Err(Refusal::new(ApiCode::NamespaceNotReady));
                    }
                    if row.agent.status == AgentStatus::Deleting {
                        return Err(Refusal::new(ApiCode::AgentDeleting));
                    }
                    let cx = self.context();
                    let exist = look(credentials.exist(&cx, &agent_ref(&row.agent))).await;
                    if exist.map_err(|error| credentials_refusal(&error))? {
                        return Ok(CredentialStatus {
                            transport_configured: true,
                        });
                    }
                    if !self.store.revisions(namespace, agent).await?.is_empty() {
                        return Err(Refusal::conflict(
                            "The Agent has versions already. An operator must restore its credentials.",
                        ));
                    }
                    let begins = op.event(resource.clone(), &allowed);
                    if !generated.provide(&cx, &row, begins, &mut tries).await? {
                        continue;
                    }
                    let change = Change::new()
                        .expect(Expect::Agent(agent, row.version))
                        .expect(Expect::RevisionCount(agent, 0))
                        .state(cx.state().take_staged())
                        .audit(op.event(resource.clone(), &allowed));
                    if tries.commit(change).await? {
                        return Ok(CredentialStatus {
                            transport_configured: true,
                        });
                    }
                }
            }
            .await;
            generated.over().await;
            answer
        })
        .await
    }

    /// A version for the selected Compute; 503 when it was admitted for another one.
    pub(super) async fn runtime_of(&self, namespace: NamespaceId, agent: AgentId, id: RevisionId) -> Answer<Runtime> {
        let revision = self.saved_revision(namespace, agent, id).await?;
        let row = self.agent_row(namespace, agent).await?.agent;
        let (pinned, selected) = (&revision.snapshot.compute, self.drivers.compute.identity());
        if (&pinned.id, &pinned.implementation) != (&selected.id, &selected.implementation) {
            return Err(Refusal::unavailable(
                "The version belongs to another Compute Driver than the selected one.",
            ));
        }
        let target = RevisionRef {
            agent: agent_ref(&row),
            id: revision.id,
            number: revision.revision,
            mode: revision.snapshot.harness.mode,
        };
        Ok(Runtime { target, revision })
    }
}

/// A version and how a Compute knows it.
pub(super) struct Runtime {
    pub(super) target: RevisionRef,
    pub(super) revision: AgentRevision,
}

/// The Agent as a Compute knows it.
pub(super) fn agent_ref(agent: &Agent) -> AgentRef {
    AgentRef {
        namespace_id: agent.namespace_id,
        id: agent.id,
        name: agent.name.clone(),
        service_principal_id: agent.service_principal_id.clone(),
    }
}

/// A cluster that refuses the control plane itself has a code of its own (seed: failure semantics).
pub(super) fn credentials_refusal(error: &EffectError) -> Refusal {
    match error {
        EffectError::Fault(Fault {
            kind: FaultKind::Denied,
            ..
        }) => Refusal::new(ApiCode::RuntimeCredentialsClusterRbac),
        error => Refusal::driver(DriverKind::Compute, error),
    }
}

fn logs_refusal(error: &EffectError) -> Refusal {
    tracing::warn!(%error, "runtime logs could not be read");
    Refusal::new(match error {
        EffectError::Fault(Fault {
            kind: FaultKind::Timeout,
            ..
        }) => ApiCode::RuntimeLogsTimeout,
        _ => ApiCode::RuntimeLogsUnavailable,
    })
}

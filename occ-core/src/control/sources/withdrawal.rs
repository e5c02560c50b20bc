//! Withdrawal of a credential source from the version that runs (spec/engine 1.8, spec/contracts 11.2). A worker does it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::updated;
use crate::{
    admission::Refusal,
    control::{Answer, Caller, ControlPlane, operation::Scope},
    driver::{Action, ResourceRef},
    id::{AgentId, CredentialSourceId, NamespaceId, RevisionId},
    reason::Failure,
    resource::{CredentialSource, PrincipalId, Withdrawal, WithdrawalState},
    store::{WorkState, Write},
    time::Timestamp,
    work::Target,
};

/// How far the withdrawal of a source from a version is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WithdrawalView {
    /// The version.
    pub revision_id: RevisionId,
    /// How far it is: `revoked` only with evidence.
    pub state: WithdrawalState,
    /// Who asked for it last.
    pub requested_by: PrincipalId,
    /// When.
    pub requested_at: Timestamp,
    /// When it was shown to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Since when attempts have come to what the latest one came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_at: Option<Timestamp>,
    /// Why it is tried no more although it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Failure>,
    /// Whether it is being tried. A pending one that is not can be asked for again.
    pub withdrawal_in_progress: bool,
}

impl WithdrawalView {
    fn of(withdrawal: &Withdrawal, work: Option<&WorkState>) -> Self {
        let mut view = Self {
            revision_id: withdrawal.revision_id,
            state: withdrawal.state,
            requested_by: withdrawal.requested_by.clone(),
            requested_at: withdrawal.requested_at,
            completed_at: withdrawal.completed_at,
            last_attempt_at: None,
            reason: None,
            withdrawal_in_progress: false,
        };
        match work {
            Some(WorkState::Queued { last_attempt, .. } | WorkState::Running { last_attempt }) => {
                view.last_attempt_at = last_attempt.as_ref().map(|attempt| attempt.at);
                view.withdrawal_in_progress = true;
            }
            Some(WorkState::Failed { failure, at, .. }) => {
                view.last_attempt_at = Some(*at);
                view.reason = Some(*failure);
            }
            Some(WorkState::Succeeded { at, .. }) => view.last_attempt_at = Some(*at),
            None => {}
        }
        view
    }
}

/// The work that does it.
const fn target(namespace: NamespaceId, withdrawal: &Withdrawal) -> Target {
    Target::CredentialsWithdrawn {
        namespace,
        agent: withdrawal.agent_id,
        revision: withdrawal.revision_id,
        operation: withdrawal.operation,
    }
}

impl ControlPlane {
    /// Asks for the end of the use of a credential source by the Agent's selected version. The answer confirms that the wish and its
    /// work are committed. A repetition while it is tried, or once it is done, changes nothing.
    pub async fn withdraw_credential_source(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
        id: CredentialSourceId,
    ) -> Answer<WithdrawalView> {
        let op = self.operation(
            caller,
            "openclaw.agents.credential_sources.withdraw",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            let resource = ResourceRef::agent(namespace, agent);
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Operate, resource.clone()).await?;
                let (revision, source) = self.used_source(namespace, agent, id).await?;
                self.gateway_of(&source)?;
                if let Some(before) = source.withdrawal(revision) {
                    let view = self.withdrawal_view(namespace, before).await?;
                    if view.withdrawal_in_progress || before.state == WithdrawalState::Revoked {
                        return Ok(view);
                    }
                }
                let asked = Withdrawal {
                    revision_id: revision,
                    agent_id: agent,
                    state: WithdrawalState::Pending,
                    requested_by: op.principal().clone(),
                    requested_at: self.store.now().await?,
                    operation: crate::randomness::uuid(),
                    completed_at: None,
                };
                let event = op
                    .event(resource.clone(), &allowed)
                    .with("credentialSourceId", id.to_string())
                    .with("revisionId", revision.to_string());
                let change = updated(&source, &source.withdrawn(asked.clone()))
                    .write(Write::Enqueue(op.work(target(namespace, &asked))))
                    .audit(event);
                if tries.commit(change).await? {
                    return Ok(WithdrawalView {
                        withdrawal_in_progress: true,
                        ..WithdrawalView::of(&asked, None)
                    });
                }
            }
        })
        .await
    }

    /// What became of a withdrawal from the Agent's selected version; 404 when none was asked for.
    pub async fn credential_source_withdrawal(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
        id: CredentialSourceId,
    ) -> Answer<WithdrawalView> {
        let op = self.operation(
            caller,
            "openclaw.agents.credential_sources.withdrawal",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            op.require(Action::Read, ResourceRef::agent(namespace, agent)).await?;
            let view = async || {
                let (revision, source) = self.used_source(namespace, agent, id).await?;
                let withdrawal = source.withdrawal(revision).ok_or_else(Refusal::not_found)?;
                self.withdrawal_view(namespace, withdrawal).await
            };
            let first = view().await?;
            // Its work may have ended between the two looks. Then the record says so by now.
            let ended = !first.withdrawal_in_progress && first.reason.is_none();
            if ended && first.state == WithdrawalState::Pending {
                return view().await;
            }
            Ok(first)
        })
        .await
    }

    async fn withdrawal_view(&self, namespace: NamespaceId, withdrawal: &Withdrawal) -> Answer<WithdrawalView> {
        let work = self.store.work_state(&target(namespace, withdrawal).key()).await?;
        Ok(WithdrawalView::of(withdrawal, work.as_ref()))
    }

    /// Whether a worker still tries to do it.
    pub(super) async fn withdrawing(&self, namespace: NamespaceId, withdrawal: &Withdrawal) -> Answer<bool> {
        Ok(self
            .withdrawal_view(namespace, withdrawal)
            .await?
            .withdrawal_in_progress)
    }

    /// The selected version, and a source that it froze.
    async fn used_source(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        id: CredentialSourceId,
    ) -> Answer<(RevisionId, CredentialSource)> {
        let active = self.agent_row(namespace, agent).await?.agent.active_revision_id;
        let active = active.ok_or(Refusal::conflict("The Agent has no selected version."))?;
        let revision = self.saved_revision(namespace, agent, active).await?;
        let mut frozen = revision.snapshot.credential_sources.iter();
        if frozen.all(|source| source.source_id != id) {
            return Err(Refusal::not_found());
        }
        Ok((active, self.source(namespace, id).await?))
    }
}

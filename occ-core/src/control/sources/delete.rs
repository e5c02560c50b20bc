//! Deletion of a source that nothing uses.

use super::{KIND, advanced, source_identity, updated};
use crate::{
    admission::{Refusal, deploy},
    control::{
        Answer, Caller, ControlPlane,
        configurations::refuse_referenced,
        operation::{Scope, effect},
    },
    driver::{Action, DriverKind, ResourceKind, ResourceRef},
    iam::ExactResource,
    id::{CredentialSourceId, NamespaceId},
    reason::ApiCode,
    resource::{Agent, CredentialSource, SourceState, WithdrawalState},
    store::{Change, Expect, SavedField, StoreError, WorkState, Write},
    work::Target,
};

/// Who keeps a source from being deleted.
#[derive(Default)]
struct Users {
    /// The Agents that use it.
    referring: Vec<ResourceRef>,
    /// Whether it is being withdrawn from a version.
    withdrawing: bool,
}

impl Users {
    fn is_empty(&self) -> bool {
        self.referring.is_empty() && !self.withdrawing
    }
}

impl ControlPlane {
    /// Deletes a credential source that no Agent uses, and the gateway's copy of its credentials.
    pub async fn delete_credential_source(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: CredentialSourceId,
    ) -> Answer<()> {
        let op = self.operation(
            caller,
            "openclaw.credential_sources.delete",
            Scope::Namespace(namespace),
        );
        Box::pin(op.answer(async {
            let resource = ResourceRef::credential_source(namespace, id);
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Delete, resource.clone()).await?;
                let source = self.source(namespace, id).await?;
                let gateway = self.gateway_of(&source)?;
                let users = self.source_users(namespace, &source).await?;
                let marked = source.state == SourceState::Deleting;
                if marked && !users.is_empty() {
                    // A deployment came between the look and the mark. Nothing was removed: that happens under the mark alone.
                    let event = op.event(resource.clone(), &allowed).with("phase", "withdrawn");
                    let kept = updated(&source, &advanced(&source, SourceState::Ready));
                    tries.commit(kept.audit(event)).await?;
                    continue;
                }
                refuse_referenced(&op, "The credential source is still referenced by ", users.referring).await?;
                if users.withdrawing {
                    return Err(Refusal::new(ApiCode::CredentialWithdrawalInProgress));
                }
                let unreferenced = Expect::OwnedUnreferenced(id.to_string());
                if !marked {
                    let event = op.event(resource.clone(), &allowed).with("phase", "begun");
                    let mark = updated(&source, &advanced(&source, SourceState::Deleting));
                    tries.commit(mark.expect(unreferenced).audit(event)).await?;
                    continue;
                }
                if source.unsettled(self.store.now().await?) {
                    return Err(Refusal::unavailable(
                        "The registration or a refresh of the credential source may still be under way. Delete it again in a minute.",
                    ));
                }
                effect(gateway.remove(&self.context(), &source_identity(&source)))
                    .await
                    .map_err(|error| Refusal::driver(DriverKind::CredentialGateway, &error))?;
                let allowed = op.still(allowed).await?;
                let exact = ExactResource {
                    kind: ResourceKind::CredentialSource,
                    id: id.to_string(),
                };
                let change = Change::new()
                    .expect(Expect::Owned(id.to_string(), source.version))
                    .expect(unreferenced)
                    .write(Write::DeleteOwned(KIND, id.to_string()));
                let event = op.event(resource.clone(), &allowed);
                let change = self
                    .with_exact_bindings_removed(change, namespace, &exact, event)
                    .await?;
                if tries.commit(change).await? {
                    return Ok(());
                }
            }
        }))
        .await
    }

    /// Who uses a source: an Agent by its draft, by its selected version or by one whose deployment is not over, as long as the source
    /// was not withdrawn from that version.
    async fn source_users(&self, namespace: NamespaceId, source: &CredentialSource) -> Answer<Users> {
        let mut users = Users::default();
        for row in self.store.agents(namespace).await? {
            let agent = &row.agent;
            // Whoever knows no better counts as one who uses it.
            let unknown = [SavedField::HarnessAuth, SavedField::CredentialSources];
            let unknown = unknown.iter().any(|field| row.unreadable.contains(field));
            let drafted = unknown || deploy::source_ids(agent).contains(&source.id);
            if drafted || self.source_runs(agent, source, &mut users.withdrawing).await? {
                users.referring.push(ResourceRef::agent(namespace, agent.id));
            }
        }
        Ok(users)
    }

    /// Whether a version of the Agent uses the source; notes one from which it is being withdrawn.
    async fn source_runs(&self, agent: &Agent, source: &CredentialSource, withdrawing: &mut bool) -> Answer<bool> {
        let namespace = agent.namespace_id;
        let target = Target::AgentDeleted {
            namespace,
            agent: agent.id,
        };
        // What Compute may still hold something of, whatever the history.
        for head in self.store.pass_read(&target).await?.live {
            let revision = match self.store.revision(namespace, agent.id, head.id).await {
                Ok(Some(row)) => row.revision,
                Ok(None) => continue,
                // A version that cannot be read may use anything.
                Err(StoreError::Corrupt(_)) => return Ok(true),
                Err(error) => return Err(error.into()),
            };
            let mut frozen = revision.snapshot.credential_sources.iter();
            let deploys = Target::Revision {
                namespace,
                agent: agent.id,
                revision: revision.id,
            };
            if frozen.all(|frozen| frozen.source_id != source.id)
                || (agent.active_revision_id != Some(revision.id) && self.work_is_over(&deploys).await?)
            {
                continue;
            }
            match source.withdrawal(revision.id) {
                Some(one) if one.state == WithdrawalState::Revoked => {}
                Some(one) if self.withdrawing(namespace, one).await? => *withdrawing = true,
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    async fn work_is_over(&self, target: &Target) -> Answer<bool> {
        let state = self.store.work_state(&target.key()).await?;
        Ok(!matches!(
            state,
            Some(WorkState::Queued { .. } | WorkState::Running { .. })
        ))
    }
}

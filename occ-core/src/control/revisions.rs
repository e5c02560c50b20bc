//! Versions and deployments: reads of what is saved (seed: Agent revisions, Deployment status).

use super::{Answer, Caller, ControlPlane, RevisionView, operation::Scope};
use crate::{
    admission::Refusal,
    driver::{Action, ResourceRef},
    id::{AgentId, NamespaceId, RevisionId},
    resource::AgentRevision,
    status::{self, Deployment},
};

impl ControlPlane {
    /// The versions of an Agent that the caller may read, oldest first. Needs `read` of the Agent.
    pub async fn revisions(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
    ) -> Answer<Vec<RevisionView>> {
        let op = self.operation(caller, "openclaw.agent_revisions.list", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::agent(namespace, agent)).await?;
            self.agent_row(namespace, agent).await?;
            let rows = self.store.revisions(namespace, agent).await?;
            let rows = op
                .readable(rows, |row| ResourceRef::agent_revision(namespace, row.revision.id))
                .await?;
            Ok(rows.into_iter().map(|row| row.revision.into()).collect())
        })
        .await
    }

    /// A version. Needs its own `read` only.
    pub async fn revision(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> Answer<RevisionView> {
        let op = self.operation(caller, "openclaw.agent_revisions.read", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::agent_revision(namespace, id))
                .await?;
            Ok(self.saved_revision(namespace, agent, id).await?.into())
        })
        .await
    }

    /// What became of a deployment, from saved rows alone. Needs the version's own `read` only.
    pub async fn deployment(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> Answer<Deployment> {
        let op = self.operation(caller, "openclaw.deployments.read", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::agent_revision(namespace, id))
                .await?;
            let row = self
                .store
                .deployment(namespace, agent, id)
                .await?
                .ok_or_else(Refusal::not_found)?;
            status::derive(row).ok_or(Refusal::unavailable("The deployment's saved work is missing."))
        })
        .await
    }

    /// A version; 404 when it is not this Agent's of this Namespace.
    pub(super) async fn saved_revision(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> Answer<AgentRevision> {
        let row = self.store.revision(namespace, agent, id).await?;
        row.map(|row| row.revision).ok_or_else(Refusal::not_found)
    }
}

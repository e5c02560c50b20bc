//! Versions and deployments: reads of what is saved (seed: Agent revisions, Deployment status).

use std::time::Duration;

use super::{
    Answer, Caller, ControlPlane, Page, PageQuery, RevisionRead, RevisionView, operation::Scope, page::Cursor,
};
use crate::{
    admission::Refusal,
    driver::{Action, ResourceRef},
    id::{AgentId, NamespaceId, RevisionId},
    resource::AgentRevision,
    status::{self, Deployment},
    store::{SavedRevision, Slice},
};

impl ControlPlane {
    /// The versions of an Agent that the caller may read, in pages, oldest first, as far as their saved settings can be read.
    pub async fn revisions_page(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
        query: &PageQuery,
    ) -> Answer<Page<RevisionRead>> {
        let op = self.operation(caller, "openclaw.agent_revisions.list", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::agent(namespace, agent)).await?;
            self.agent_exists(namespace, agent).await?;
            let read = async |slice: Slice| self.store.saved_revisions(namespace, agent, &slice).await;
            let place = |saved: &SavedRevision| {
                let (id, number) = identity(saved);
                Cursor {
                    order: i64::try_from(number).unwrap_or(i64::MAX),
                    id: id.to_string(),
                }
            };
            let page = op
                .page(query, read, place, |saved| {
                    ResourceRef::agent_revision(namespace, identity(saved).0)
                })
                .await?;
            Ok(page.map(Into::into))
        })
        .await
    }

    /// A version as far as its saved settings can be read. Needs its own `read` only.
    pub async fn saved_version(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> Answer<RevisionRead> {
        let op = self.operation(caller, "openclaw.agent_revisions.read", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::agent_revision(namespace, id))
                .await?;
            let saved = self.store.saved_revision(namespace, agent, id).await?;
            Ok(saved.ok_or_else(Refusal::not_found)?.into())
        })
        .await
    }

    /// The same as [`ControlPlane::deployment`], once it is over or after `wait`, whichever comes first.
    pub async fn awaited_deployment(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
        wait: Duration,
    ) -> Answer<Deployment> {
        let until = tokio::time::Instant::now() + wait;
        let mut news = self.news();
        loop {
            let deployment = self.deployment(caller, namespace, agent, id).await?;
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            if deployment.status.is_terminal() || left.is_zero() {
                return Ok(deployment);
            }
            let _ = tokio::time::timeout(left, news.wait()).await;
        }
    }

    async fn agent_exists(&self, namespace: NamespaceId, agent: AgentId) -> Answer<()> {
        self.agent_row(namespace, agent).await.map(|_| ())
    }

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

fn identity(saved: &SavedRevision) -> (RevisionId, u64) {
    match saved {
        SavedRevision::Whole(revision) => (revision.id, revision.revision),
        SavedRevision::Unreadable { id, revision, .. } => (*id, *revision),
    }
}

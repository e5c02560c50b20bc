//! Credential sources: what a Credential Gateway keeps and mediates (spec/engine 1.8, spec/contracts 11).
//!
//! A source is recorded before the gateway is told of it, and its deletion before the gateway is told of that: whatever cuts an operation
//! off is finished by repeating the deletion.

mod content;
mod delete;
mod refresh;
mod register;
mod withdrawal;

use std::time::Duration;

pub use withdrawal::WithdrawalView;

use super::{
    Answer, Caller, ControlPlane, CredentialSourceStatus, CredentialSourceView, Page, PageQuery,
    operation::{Scope, look},
    page::Cursor,
};
use crate::{
    admission::{Refusal, source},
    driver::{Action, CredentialGateway, DriverKind, ResourceKind, ResourceRef, SourceIdentity},
    id::{CredentialSourceId, NamespaceId},
    reason::ApiCode,
    resource::{CredentialSource, OwnedKind, SourceState},
    store::{Change, Expect, OwnedRow, Slice, Write},
};

const KIND: OwnedKind = OwnedKind::CredentialSource;

/// The gateway is told no later after the record than this; the record counts from before its commit.
const PROMPT: Duration = Duration::from_secs(10);

impl ControlPlane {
    /// A credential source, and how the gateway sees it now; never its credentials.
    pub async fn credential_source(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: CredentialSourceId,
    ) -> Answer<CredentialSourceView> {
        let op = self.operation(caller, "openclaw.credential_sources.read", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::credential_source(namespace, id))
                .await?;
            let source = self.source(namespace, id).await?;
            let mut view = CredentialSourceView::from(&source);
            // What another gateway has is shown as it is recorded.
            if let Ok(gateway) = self.gateway_of(&source) {
                let condition = look(gateway.condition(&self.context(), &source_identity(&source))).await;
                let condition = condition.map_err(|error| Refusal::driver(DriverKind::CredentialGateway, &error))?;
                view.status = Some(CredentialSourceStatus { state: condition });
            }
            Ok(view)
        })
        .await
    }

    /// The credential sources that the caller may read, by creation. Needs `namespace:read`.
    pub async fn credential_sources(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        query: &PageQuery,
    ) -> Answer<Page<CredentialSourceView>> {
        let op = self.operation(caller, "openclaw.credential_sources.list", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::namespace(namespace)).await?;
            self.live_namespace(namespace).await?;
            let read = async |slice: Slice| self.store.all_owned(namespace, KIND, &slice).await;
            let page = op.page(query, read, Cursor::of, |row| {
                row.resource(ResourceKind::CredentialSource)
            });
            let sources = page.await?.decoded(CredentialSource::try_from)?;
            Ok(sources.map(|source| (&source).into()))
        })
        .await
    }

    /// A credential source; 404 when there is none.
    pub(super) async fn source(&self, namespace: NamespaceId, id: CredentialSourceId) -> Answer<CredentialSource> {
        let row = self.store.owned(namespace, KIND, &id.to_string()).await?;
        Ok(row.ok_or_else(Refusal::not_found)?.try_into()?)
    }

    /// The records of these sources, as far as they exist.
    pub(super) async fn named_sources(
        &self,
        namespace: NamespaceId,
        ids: &[CredentialSourceId],
    ) -> Answer<Vec<CredentialSource>> {
        let mut sources = Vec::with_capacity(ids.len());
        for id in ids {
            let row = self.store.owned(namespace, KIND, &id.to_string()).await?;
            sources.extend(row.map(CredentialSource::try_from).transpose()?);
        }
        Ok(sources)
    }

    fn gateway(&self) -> Answer<&dyn CredentialGateway> {
        let gateway = self.drivers.credential_gateway.as_deref();
        gateway.ok_or(Refusal::new(ApiCode::CredentialGatewayNotConfigured))
    }

    /// The selected gateway, when it is the one that has the source; 503 when it is not.
    fn gateway_of(&self, source: &CredentialSource) -> Answer<&dyn CredentialGateway> {
        let gateway = self.drivers.credential_gateway.as_deref();
        let gateway = gateway.filter(|gateway| gateway.identity().id == source.gateway_id);
        gateway.ok_or(Refusal::unavailable(source::SOURCE_OF_OTHER_GATEWAY))
    }
}

/// The source with its next version.
fn advanced(source: &CredentialSource, state: SourceState) -> CredentialSource {
    CredentialSource {
        state,
        registered: source.registered || state == SourceState::Ready,
        version: source.version + 1,
        ..source.clone()
    }
}

/// The change of a source's row, if it is still as it was read.
fn updated(before: &CredentialSource, after: &CredentialSource) -> Change {
    Change::new()
        .expect(Expect::Owned(before.id.to_string(), before.version))
        .write(Write::UpdateOwned(OwnedRow::from(after)))
}

/// The source as its gateway knows it.
pub(crate) fn source_identity(source: &CredentialSource) -> SourceIdentity {
    SourceIdentity {
        id: source.id,
        namespace_id: source.namespace_id,
        name: source.name.clone(),
        kind: source.kind.clone(),
    }
}

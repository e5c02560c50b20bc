//! Registration of a source.
//!
//! A request that names itself gives the source an id that its repetition finds: whatever cut the first attempt off, the repetition goes on
//! with it.

use super::{KIND, advanced, content::check_content, source_identity, updated};
use crate::{
    admission::{Refusal, draft},
    audit::Authorization,
    control::{
        Answer, Caller, ControlPlane, CredentialSourceView, RegisterCredentialSource,
        commit::{Tries, Uncommitted},
        configurations::bound,
        namespaces::ACCEPTING,
        operation::{Operation, Scope, effect},
    },
    driver::{Action, DriverKind, EffectError, ResourceKind, ResourceRef, SourceCondition},
    id::{CredentialSourceId, NamespaceId},
    resource::{CredentialSource, SourceState},
    store::{Change, Expect, Write},
};

impl ControlPlane {
    /// Registers a credential source with the selected gateway, which keeps a copy of the credentials.
    pub async fn register_credential_source(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        input: RegisterCredentialSource,
    ) -> Answer<CredentialSourceView> {
        let op = self.operation(
            caller,
            "openclaw.credential_sources.create",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            let collection = ResourceRef::collection(ResourceKind::CredentialSource, namespace);
            let allowed = op.require(Action::Create, collection).await?;
            let telling = crate::randomness::uuid();
            let id = CredentialSourceId::of(op.request_uuid());
            let mut tries = Tries::new(&*self.store);
            let (source, credentials) = loop {
                if let Some(first) = op.first_answer().await? {
                    return Ok(first);
                }
                draft::accepts(&self.live_namespace(namespace).await?)?;
                let gateway = self.gateway()?;
                check_content(gateway, &input)?;
                let credentials = self.credentials(&op, namespace, &input.secrets).await?;
                let now = self.store.now().await?;
                let begun = CredentialSource {
                    id,
                    namespace_id: namespace,
                    name: input.name.clone(),
                    gateway_id: gateway.identity().id.clone(),
                    kind: input.kind.clone(),
                    config: input.config.clone(),
                    secrets: input
                        .secrets
                        .iter()
                        .map(|(field, from)| (field.clone(), from.id))
                        .collect(),
                    state: SourceState::Registering,
                    registered: false,
                    tellings: Vec::new(),
                    withdrawals: Vec::new(),
                    version: 0,
                    created_at: now,
                };
                let (source, change) = match self.begun_before(namespace, id).await? {
                    Some(before) if before.state != SourceState::Registering => {
                        return op.first_answer().await?.ok_or(Refusal::conflict(
                            "The Idempotency-Key was used for a credential source that is there already, or is being deleted. Use a new one.",
                        ));
                    }
                    Some(before) => {
                        let again = before.telling(telling, now);
                        (again.clone(), updated(&before, &again))
                    }
                    None => {
                        let first = begun.telling(telling, now);
                        (first.clone(), Change::new().write(Write::Owned((&first).into())))
                    }
                };
                let event = op.event(ResourceRef::credential_source(namespace, source.id), &allowed);
                let change = bound(change, &credentials.secrets)
                    .expect(Expect::NamespaceStatus(namespace, ACCEPTING))
                    .audit(event.with("phase", "begun"));
                match tries.commit(change).await {
                    Ok(true) => break (source, credentials),
                    Ok(false) => {}
                    // The same request is under way beside this one.
                    Err(Uncommitted::Certain(_)) if self.begun_before(namespace, id).await?.is_some() => tries.again().await?,
                    Err(failure) => return Err(failure.into()),
                }
            };
            let resource = ResourceRef::credential_source(namespace, source.id);
            match self.told(&source, &credentials).await {
                Ok(SourceCondition::Ready | SourceCondition::Pending) => {
                    let mut ready = advanced(&source, SourceState::Ready);
                    ready.tellings.retain(|one| one.operation != telling);
                    let view = CredentialSourceView::from(&ready);
                    let change = updated(&source, &ready).audit(op.event(resource, &allowed));
                    if tries.commit(op.answering(change, &view)?).await? {
                        return Ok(view);
                    }
                    let changed = Refusal::conflict("The credential source changed while it was registered.");
                    op.first_answer().await?.ok_or(changed)
                }
                Ok(SourceCondition::Failed | SourceCondition::Absent) => {
                    self.unregister(&op, &source, resource, &allowed).await?;
                    Err(Refusal::conflict("The Credential Gateway did not accept the source."))
                }
                Err(EffectError::UnknownOutcome) => {
                    let left = advanced(&source, SourceState::Deleting);
                    let event = op.event(resource, &allowed).with("phase", "unknown");
                    tries.commit(updated(&source, &left).audit(event)).await?;
                    Err(Refusal::unknown_outcome())
                }
                Err(error) => {
                    self.unregister(&op, &source, resource, &allowed).await?;
                    Err(Refusal::driver(DriverKind::CredentialGateway, &error))
                }
            }
        })
        .await
    }

    /// What an earlier attempt of the same request made. Only a request that names itself has earlier attempts.
    async fn begun_before(&self, namespace: NamespaceId, id: CredentialSourceId) -> Answer<Option<CredentialSource>> {
        let row = self.store.owned(namespace, KIND, &id.to_string()).await?;
        Ok(row.map(CredentialSource::try_from).transpose()?)
    }

    /// Removes what a registration that failed may have left, and the record; the record stays, as being deleted, when the gateway does not
    /// answer.
    async fn unregister(
        &self,
        op: &Operation<'_>,
        source: &CredentialSource,
        resource: ResourceRef,
        allowed: &Authorization,
    ) -> Answer<()> {
        let gateway = self.gateway_of(source)?;
        let event = op.event(resource, allowed).with("phase", "failed");
        let change = match effect(gateway.remove(&self.context(), &source_identity(source))).await {
            Ok(()) => Change::new()
                .expect(Expect::Owned(source.id.to_string(), source.version))
                .write(Write::DeleteOwned(KIND, source.id.to_string())),
            Err(error) => {
                tracing::warn!(id = %source.id, %error, "a credential source that was not accepted is left");
                updated(source, &advanced(source, SourceState::Deleting))
            }
        };
        Tries::new(&*self.store).commit(change.audit(event)).await?;
        Ok(())
    }
}

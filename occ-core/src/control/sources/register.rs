//! Registration of a source.
//!
//! A request that names itself gives the source an id that its repetition finds: whatever cut the first attempt off, the repetition goes on
//! with it.

use tokio::time::Instant;
use uuid::Uuid;

use super::{KIND, PROMPT, advanced, content::check_content, source_identity, updated};
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
    driver::{Action, CredentialGateway, DriverKind, EffectError, ResourceKind, ResourceRef, SourceCondition},
    id::{CredentialSourceId, NamespaceId},
    resource::{CredentialSource, SourceState},
    store::{Change, Expect, Write},
    time::Timestamp,
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
            let telling = crate::randomness::uuid();
            let id = CredentialSourceId::of(op.request_uuid());
            let mut tries = op.tries();
            let (source, credentials, allowed) = loop {
                let allowed = op.require(Action::Create, collection.clone()).await?;
                if let Some(first) = op.first_answer().await? {
                    return Ok(first);
                }
                draft::accepts(&self.live_namespace(namespace).await?)?;
                let gateway = self.gateway()?;
                check_content(gateway, &input)?;
                let credentials = self.credentials(&op, namespace, &input.secrets).await?;
                let before = self.begun_before(namespace, id).await?;
                if before.as_ref().is_some_and(|before| before.state != SourceState::Registering) {
                    return op.first_answer().await?.ok_or(Refusal::conflict(
                        "The Idempotency-Key was used for a credential source that is there already, or is being deleted. Use a new one.",
                    ));
                }
                let begun = Instant::now();
                let now = self.store.now().await?;
                let (source, change) = if let Some(before) = &before {
                    self.gateway_of(before)?;
                    let again = before.telling(telling, now);
                    (again.clone(), updated(before, &again))
                } else {
                    let first = unregistered(id, namespace, gateway, &input, now).telling(telling, now);
                    (first.clone(), Change::new().write(Write::Owned((&first).into())))
                };
                if source.tellings.len() > CredentialSource::MAX_TELLINGS {
                    return Err(Refusal::conflict(
                        "The credential source is being registered too often. Try again in a minute.",
                    ));
                }
                let event = op.event(ResourceRef::credential_source(namespace, id), &allowed);
                let change = bound(change, &credentials.secrets)
                    .expect(Expect::NamespaceStatus(namespace, ACCEPTING))
                    .audit(event.with("phase", "begun"));
                match tries.commit(change).await {
                    Ok(true) if begun.elapsed() <= PROMPT => break (source, credentials, allowed),
                    Ok(true) => tries.again().await?,
                    Ok(false) => {}
                    // The same request began beside this attempt, and was first.
                    Err(Uncommitted::Certain(_)) if before.is_none() && self.begun_before(namespace, id).await?.is_some() => {
                        tries.again().await?;
                    }
                    Err(failure) => return Err(failure.into()),
                }
            };
            // It was allowed when the gateway was told; what came of it is recorded whatever is withdrawn since.
            let mut tries = Tries::new(&*self.store);
            let refusal = match self.told(&source, &credentials).await {
                Ok(SourceCondition::Ready | SourceCondition::Pending) => {
                    let mut ready = advanced(&source, SourceState::Ready);
                    ready.tellings.retain(|one| one.operation != telling);
                    let view = CredentialSourceView::from(&ready);
                    let event = op.event(ResourceRef::credential_source(namespace, id), &allowed);
                    let change = updated(&source, &ready).audit(event);
                    if tries.commit(op.answering(change, &view)?).await? {
                        return Ok(view);
                    }
                    Refusal::conflict("The credential source changed while it was registered.")
                }
                Ok(SourceCondition::Failed | SourceCondition::Absent) => {
                    self.unregister(&op, &source, telling, &allowed).await?;
                    Refusal::conflict("The Credential Gateway did not accept the source.")
                }
                Err(EffectError::UnknownOutcome) => {
                    let left = advanced(&source, SourceState::Deleting);
                    let event = op.event(ResourceRef::credential_source(namespace, id), &allowed);
                    let change = updated(&source, &left).audit(event.with("phase", "unknown"));
                    tries.commit(change).await?;
                    Refusal::unknown_outcome()
                }
                Err(error) => {
                    self.unregister(&op, &source, telling, &allowed).await?;
                    Refusal::driver(DriverKind::CredentialGateway, &error)
                }
            };
            // Another attempt may have done the request meanwhile.
            op.first_answer().await?.ok_or(refusal)
        })
        .await
    }

    /// What an earlier attempt of the same request made. Only a request that names itself has earlier attempts.
    async fn begun_before(&self, namespace: NamespaceId, id: CredentialSourceId) -> Answer<Option<CredentialSource>> {
        let row = self.store.owned(namespace, KIND, &id.to_string()).await?;
        Ok(row.map(CredentialSource::try_from).transpose()?)
    }

    /// Removes what an attempt that failed for certain may have left, and the record. Nothing is removed before the record says so: what
    /// another attempt or a deletion took over is theirs. Nor while what another attempt told may still arrive, or when the gateway does not
    /// answer: the record stays then, as being deleted.
    async fn unregister(
        &self,
        op: &Operation<'_>,
        source: &CredentialSource,
        telling: Uuid,
        allowed: &Authorization,
    ) -> Answer<()> {
        let gateway = self.gateway_of(source)?;
        let event = || op.event(ResourceRef::credential_source(source.namespace_id, source.id), allowed);
        let mut tries = Tries::new(&*self.store);
        let mut left = source.told(telling);
        left.state = SourceState::Deleting;
        let mark = updated(source, &left).audit(event().with("phase", "failed"));
        if !tries.commit(mark).await? || left.is_being_told(self.store.now().await?) {
            return Ok(());
        }
        if let Err(error) = effect(gateway.remove(&self.context(), &source_identity(source))).await {
            tracing::warn!(id = %source.id, %error, "a credential source that was not accepted is left");
            return Ok(());
        }
        let change = Change::new()
            .expect(Expect::Owned(source.id.to_string(), left.version))
            .write(Write::DeleteOwned(KIND, source.id.to_string()));
        // When a deletion came first it does the same.
        tries.commit(change.audit(event().with("phase", "removed"))).await?;
        Ok(())
    }
}

/// What is not registered yet.
fn unregistered(
    id: CredentialSourceId,
    namespace: NamespaceId,
    gateway: &dyn CredentialGateway,
    input: &RegisterCredentialSource,
    now: Timestamp,
) -> CredentialSource {
    let secrets = input.secrets.iter();
    CredentialSource {
        id,
        namespace_id: namespace,
        name: input.name.clone(),
        gateway_id: gateway.identity().id.clone(),
        kind: input.kind.clone(),
        config: input.config.clone(),
        secrets: secrets.map(|(field, from)| (field.clone(), from.id)).collect(),
        state: SourceState::Registering,
        registered: false,
        tellings: Vec::new(),
        withdrawals: Vec::new(),
        version: 0,
        created_at: now,
    }
}

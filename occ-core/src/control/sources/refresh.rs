//! Reading the credentials of a source anew.
//!
//! That the gateway is about to be told is recorded before it is: a deletion that comes between removes nothing while what was told may still
//! arrive. So no crash leaves credentials at the gateway that no record knows of.

use std::collections::BTreeMap;

use tokio::time::Instant;
use uuid::Uuid;

use super::{
    PROMPT,
    content::{Credentials, exact},
    updated,
};
use crate::{
    admission::Refusal,
    audit::Authorization,
    control::{
        Answer, Caller, ControlPlane, CredentialSourceView, UpdateCredentialSource,
        commit::Tries,
        configurations::bound,
        operation::{Operation, Scope},
    },
    driver::{Action, DriverKind, EffectError, ResourceRef, SourceCondition},
    id::{CredentialSourceId, NamespaceId, SecretId},
    resource::{CredentialSource, SecretSource, SecretSourceKind, SourceField, SourceState},
};

/// What the gateway was told.
struct Told {
    /// By which request.
    operation: Uuid,
    /// From which Secrets.
    secrets: BTreeMap<SourceField, SecretId>,
    credentials: Credentials,
}

impl ControlPlane {
    /// Reads the credentials of a source anew, from the Secrets that it had or from those that are named.
    pub async fn update_credential_source(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: CredentialSourceId,
        input: UpdateCredentialSource,
    ) -> Answer<CredentialSourceView> {
        let op = self.operation(
            caller,
            "openclaw.credential_sources.update",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            let resource = ResourceRef::credential_source(namespace, id);
            let operation = crate::randomness::uuid();
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Update, resource.clone()).await?;
                let source = self.source(namespace, id).await?;
                if source.state != SourceState::Ready {
                    // A deletion came between. It waits for this request, which tells the gateway no more.
                    self.settle(&op, &source, operation, &allowed).await;
                    return Err(Refusal::conflict("The credential source is not ready."));
                }
                let gateway = self.gateway_of(&source)?;
                let kept = source.secrets.iter().map(|(field, secret)| {
                    let from = SecretSource {
                        kind: SecretSourceKind::Secret,
                        namespace_id: namespace,
                        id: *secret,
                    };
                    (field.clone(), from)
                });
                let secrets = input.secrets.clone().unwrap_or_else(|| kept.collect());
                let info = gateway.source_types().iter().find(|info| info.kind == source.kind);
                let info = info.ok_or(Refusal::unavailable(
                    "The Credential Gateway no longer knows this type.",
                ))?;
                exact("/secrets", &info.secrets, &secrets.keys())?;
                let credentials = self.credentials(&op, namespace, &secrets).await?;
                let begun = Instant::now();
                let marked = source.telling(operation, self.store.now().await?);
                if marked.tellings.len() > CredentialSource::MAX_TELLINGS {
                    return Err(Refusal::conflict(
                        "The credential source is being refreshed too often. Try again in a minute.",
                    ));
                }
                let event = op.event(resource.clone(), &allowed).with("phase", "begun");
                if !tries.commit(updated(&source, &marked).audit(event)).await? {
                    continue;
                }
                if begun.elapsed() > PROMPT {
                    tries.again().await?;
                    continue;
                }
                let refused = match self.told(&marked, &credentials).await {
                    Ok(SourceCondition::Ready | SourceCondition::Pending) => None,
                    Ok(SourceCondition::Failed | SourceCondition::Absent) => {
                        Some(Refusal::conflict("The Credential Gateway did not accept the source."))
                    }
                    Err(error) if error == EffectError::UnknownOutcome => {
                        // It may still arrive, and is recorded.
                        return Err(Refusal::driver(DriverKind::CredentialGateway, &error));
                    }
                    Err(error) => Some(Refusal::driver(DriverKind::CredentialGateway, &error)),
                };
                if let Some(refusal) = refused {
                    self.settle(&op, &marked, operation, &allowed).await;
                    return Err(refusal);
                }
                let secrets = secrets.into_iter().map(|(field, from)| (field, from.id)).collect();
                let told = Told {
                    operation,
                    secrets,
                    credentials,
                };
                if let Some(source) = self.refreshed(&op, &marked, &told, &allowed).await? {
                    return Ok((&source).into());
                }
            }
        })
        .await
    }

    /// Records that the gateway was told. Nothing when another refresh ended since the mark, as nobody knows then whose credentials the
    /// gateway has, or when what was told holds no more.
    async fn refreshed(
        &self,
        op: &Operation<'_>,
        marked: &CredentialSource,
        told: &Told,
        allowed: &Authorization,
    ) -> Answer<Option<CredentialSource>> {
        let resource = ResourceRef::credential_source(marked.namespace_id, marked.id);
        let mut source = marked.clone();
        // It was allowed when the gateway was told; what came of it is recorded whatever is withdrawn since.
        let mut tries = Tries::new(&*self.store);
        loop {
            let mut changed = source.told(told.operation);
            changed.secrets.clone_from(&told.secrets);
            let change = bound(updated(&source, &changed), &told.credentials.secrets);
            if tries.commit(change.audit(op.event(resource.clone(), allowed))).await? {
                return Ok(Some(changed));
            }
            let now = self.source(marked.namespace_id, marked.id).await?;
            // What did not change in the source changed in a Secret.
            if now.version == source.version || !marked.others_only_began(&now) {
                return Ok(None);
            }
            source = now;
        }
    }

    /// Records that this request tells the gateway no more. When that cannot be recorded, a deletion waits until it is certain.
    async fn settle(&self, op: &Operation<'_>, source: &CredentialSource, request: Uuid, allowed: &Authorization) {
        let resource = ResourceRef::credential_source(source.namespace_id, source.id);
        let mut source = Ok(source.clone());
        let mut tries = Tries::new(&*self.store);
        while let Ok(now) = &source
            && now.tellings.iter().any(|one| one.operation == request)
        {
            let event = op.event(resource.clone(), allowed).with("phase", "failed");
            match tries.commit(updated(now, &now.told(request)).audit(event)).await {
                Ok(false) => source = self.source(now.namespace_id, now.id).await,
                Ok(true) | Err(_) => return,
            }
        }
    }
}

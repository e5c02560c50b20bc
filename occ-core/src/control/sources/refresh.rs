//! Reading the credentials of a source anew.

use super::{advanced, content::exact, source_identity, updated};
use crate::{
    admission::Refusal,
    control::{
        Answer, Caller, ControlPlane, CredentialSourceView, UpdateCredentialSource,
        commit::Tries,
        configurations::bound,
        operation::{Scope, effect},
    },
    driver::{Action, DriverKind, ResourceRef, SourceCondition},
    id::{CredentialSourceId, NamespaceId},
    resource::{CredentialSource, SecretSource, SecretSourceKind, SourceState},
};

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
            let allowed = op.require(Action::Update, resource.clone()).await?;
            let mut tries = Tries::new(&*self.store);
            let mut told = None;
            loop {
                let source = match self.source(namespace, id).await {
                    Ok(source) if source.state == SourceState::Ready => source,
                    lost => {
                        // A deletion came between. It may have removed what the gateway had before it was told.
                        if let Some(before) = &told {
                            self.remove_late(before).await;
                        }
                        lost?;
                        return Err(Refusal::conflict("The credential source is not ready."));
                    }
                };
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
                let mut changed = advanced(&source, SourceState::Ready);
                changed.secrets = secrets.into_iter().map(|(field, from)| (field, from.id)).collect();
                match self.told(&changed, &credentials).await {
                    Ok(SourceCondition::Ready | SourceCondition::Pending) => {}
                    Ok(SourceCondition::Failed | SourceCondition::Absent) => {
                        return Err(Refusal::conflict("The Credential Gateway did not accept the source."));
                    }
                    Err(error) => return Err(Refusal::driver(DriverKind::CredentialGateway, &error)),
                }
                let change =
                    bound(updated(&source, &changed), &credentials.secrets).audit(op.event(resource.clone(), &allowed));
                if tries.commit(change).await? {
                    return Ok((&changed).into());
                }
                told = Some(changed);
            }
        })
        .await
    }

    async fn remove_late(&self, source: &CredentialSource) {
        let Ok(gateway) = self.gateway_of(source) else {
            return;
        };
        if let Err(error) = effect(gateway.remove(&self.context(), &source_identity(source))).await {
            tracing::warn!(id = %source.id, %error, "a credential source that was deleted is left with its gateway");
        }
    }
}

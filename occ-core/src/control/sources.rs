//! Credential sources and Backends: what the Installation's configuration decides (spec/engine 1.8, 13).

use super::{Answer, Caller, ControlPlane, operation::Scope};
use crate::{
    admission::Refusal,
    driver::{Action, ResourceKind, ResourceRef},
    id::{CredentialSourceId, NamespaceId},
    reason::ApiCode,
    resource::Backend,
};

impl ControlPlane {
    /// The configured Backends. Needs `installation:administer`.
    pub async fn backends(&self, caller: &Caller) -> Answer<Vec<Backend>> {
        let op = self.operation(caller, "openclaw.backends.list", Scope::Installation);
        op.answer(async {
            let installation = ResourceRef::installation(self.known_installation().await?.id);
            op.require(Action::Administer, installation).await?;
            Ok(self.drivers.backends().to_vec())
        })
        .await
    }

    /// Registers a credential source. No Installation of this version selects a Credential Gateway: once the caller is known to be
    /// permitted, it is told so.
    pub async fn register_credential_source(&self, caller: &Caller, namespace: NamespaceId) -> Answer<()> {
        let op = self.operation(
            caller,
            "openclaw.credential_sources.create",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            let collection = ResourceRef::collection(ResourceKind::CredentialSource, namespace);
            op.require(Action::Create, collection).await?;
            self.live_namespace(namespace).await?;
            Err(Refusal::new(ApiCode::CredentialGatewayNotConfigured))
        })
        .await
    }

    /// How many credential sources there are: none without a Credential Gateway. Needs `namespace:read`.
    pub async fn credential_sources(&self, caller: &Caller, namespace: NamespaceId) -> Answer<usize> {
        let op = self.operation(caller, "openclaw.credential_sources.list", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::namespace(namespace)).await?;
            self.live_namespace(namespace).await?;
            Ok(0)
        })
        .await
    }

    /// Any operation on one credential source: permitted callers are told that it does not exist.
    pub async fn credential_source(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: CredentialSourceId,
        action: Action,
    ) -> Answer<()> {
        let op = self.operation(
            caller,
            "openclaw.credential_sources.access",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            op.require(action, ResourceRef::credential_source(namespace, id))
                .await?;
            Err(Refusal::not_found())
        })
        .await
    }
}

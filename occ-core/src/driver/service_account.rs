//! The Service Account contract: has a provider make accounts and issue their access tokens (spec/contracts 12.3).

use async_trait::async_trait;
use uuid::Uuid;

use super::{DriverIdentity, EffectResult, OperationContext};
use crate::{
    id::{NamespaceId, ServiceAccountId},
    resource::{BackendKind, Name, ProviderAccount},
    secret_value::SecretValue,
};

/// The service account that an operation is for. A provider's objects are named from its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountIdentity {
    /// The service account.
    pub id: ServiceAccountId,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// Its name, for people.
    pub name: Name,
}

/// Makes accounts at a provider, and issues at most one access token for each. Tokens are not rotated.
#[async_trait]
pub trait ServiceAccountDriver: Send + Sync {
    /// Who this instance is.
    fn identity(&self) -> &DriverIdentity;

    /// The type of the Backend whose accounts it makes. An Installation that selects the driver configures one of that type.
    fn backend(&self) -> BackendKind {
        BackendKind::Chatgpt
    }

    /// Looks whether the driver can work at all; an error stops the start.
    async fn preflight(&self, _cx: &OperationContext) -> EffectResult<()> {
        Ok(())
    }

    /// Makes the provider's account. A repetition answers with the account that the first call made.
    async fn create(&self, cx: &OperationContext, account: &AccountIdentity) -> EffectResult<ProviderAccount>;

    /// Issues an access token under an id that was chosen, and remembered, before this call. The value is the engine's to keep: it
    /// goes to the selected Secret Driver. A repetition with the same id leaves one token of that id.
    async fn create_credential(
        &self,
        cx: &OperationContext,
        account: &AccountIdentity,
        at: &ProviderAccount,
        token: Uuid,
    ) -> EffectResult<SecretValue>;

    /// Ends the token of this id; absent is well. That is how what a call that was cut off may have issued is taken back.
    async fn delete_credential(
        &self,
        cx: &OperationContext,
        account: &AccountIdentity,
        at: &ProviderAccount,
        token: Uuid,
    ) -> EffectResult<()>;

    /// Deletes the provider's account with every token of it; absent is well. `at` is missing when nobody learnt what
    /// [`create`](Self::create) answered.
    async fn delete(
        &self,
        cx: &OperationContext,
        account: &AccountIdentity,
        at: Option<&ProviderAccount>,
    ) -> EffectResult<()>;
}

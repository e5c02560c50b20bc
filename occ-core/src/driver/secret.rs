//! The Secret contract: keeps opaque bytes, hands out references (spec/contracts 9).

use async_trait::async_trait;

use super::{DriverIdentity, EffectResult, OperationContext};
use crate::{
    id::{NamespaceId, SecretId},
    resource::{BackendRef, Name},
    secret_value::SecretValue,
};

/// The Secret that an operation is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretIdentity {
    /// The Secret.
    pub id: SecretId,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// Its name, for people.
    pub name: Name,
}

/// Keeps secret bytes. Values are 1 to 65,536 bytes.
#[async_trait]
pub trait SecretDriver: Send + Sync {
    /// Who this instance is.
    fn identity(&self) -> &DriverIdentity;

    /// Looks whether the driver can work at all; an error stops the start.
    async fn preflight(&self, _cx: &OperationContext) -> EffectResult<()> {
        Ok(())
    }

    /// Stores a new value. A repetition after a lost answer adopts only its own object.
    async fn create(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        value: &SecretValue,
    ) -> EffectResult<BackendRef>;

    /// Replaces the value of an object that is still its own; keeps no history.
    async fn update(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        at: &BackendRef,
        value: &SecretValue,
    ) -> EffectResult<()>;

    /// Deletes the value; absent is well, foreign is [`EffectError::Ownership`](super::EffectError::Ownership).
    async fn delete(&self, cx: &OperationContext, secret: &SecretIdentity, at: &BackendRef) -> EffectResult<()>;

    /// Checks live ownership and returns the reference as it is now; never the value.
    async fn resolve(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        at: &BackendRef,
    ) -> EffectResult<BackendRef>;

    /// The value, for immediate server-side delivery.
    async fn value(&self, cx: &OperationContext, secret: &SecretIdentity, at: &BackendRef)
    -> EffectResult<SecretValue>;

    /// Whether every effect is a record that it stages in the operation's state, so that it is part of the engine's transaction. The
    /// deletion of a value that is elsewhere is remembered before it is done. A record that is filed under the Secret's id and the
    /// name `secret/<this instance's id>` is read with the rows of an admission, and not again.
    fn keeps_in_store(&self) -> bool {
        false
    }

    /// Conditional replacement, when the driver can.
    fn compare_and_swap(&self) -> Option<&dyn CompareAndSwap> {
        None
    }
}

/// Conditional replacement of a value, used when credentials are refreshed.
#[async_trait]
pub trait CompareAndSwap: Send + Sync {
    /// Stores `value` only if the present one equals `expected`, compared in constant time; `false` when it does not.
    async fn swap(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        at: &BackendRef,
        expected: &SecretValue,
        value: &SecretValue,
    ) -> EffectResult<bool>;
}

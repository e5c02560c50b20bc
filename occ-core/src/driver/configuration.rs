//! The Configuration contract: keeps native documents (spec/contracts 12.2).

use std::sync::Arc;

use async_trait::async_trait;

use super::{DriverIdentity, EffectResult, LifecycleHooks, OperationContext};
use crate::{
    id::{ConfigurationId, NamespaceId},
    resource::Document,
};

/// Keeps Configuration documents. Generations start at 1 and grow by one with each update; identity never changes.
#[async_trait]
pub trait ConfigurationDriver: Send + Sync {
    /// Who this instance is.
    fn identity(&self) -> &DriverIdentity;

    /// Stores the document as generation 1.
    async fn create(
        &self,
        cx: &OperationContext,
        namespace: NamespaceId,
        id: ConfigurationId,
        document: &Document,
    ) -> EffectResult<()>;

    /// The document and its generation; `None` when there is none.
    async fn read(
        &self,
        cx: &OperationContext,
        namespace: NamespaceId,
        id: ConfigurationId,
    ) -> EffectResult<Option<(u64, Document)>>;

    /// Replaces generation `generation` by the next one.
    async fn update(
        &self,
        cx: &OperationContext,
        namespace: NamespaceId,
        id: ConfigurationId,
        generation: u64,
        document: &Document,
    ) -> EffectResult<()>;

    /// Deletes the document; absent is well.
    async fn delete(&self, cx: &OperationContext, namespace: NamespaceId, id: ConfigurationId) -> EffectResult<()>;

    /// Whether every effect is a record that it stages in the operation's state, so that it is part of the engine's transaction. The
    /// deletion of a document that is elsewhere is remembered before it is done. A record that is filed under the Configuration's id
    /// and the name `configuration/<this instance's id>` is read with the rows of an admission, and not again.
    fn keeps_in_store(&self) -> bool {
        false
    }

    /// Hooks that it wants around workloads.
    fn lifecycle_hooks(&self) -> Option<Arc<dyn LifecycleHooks>> {
        None
    }
}

//! The contract over the driver's records.

use async_trait::async_trait;
use occ_core::{
    driver::{ConfigurationDriver, DriverIdentity, EffectResult, OperationContext},
    id::{ConfigurationId, NamespaceId},
    registry::{BuildError, DriverFactory, HostServices},
    resource::Document,
};

use crate::{Settings, error::Error, record::Record};

/// Keeps Configuration documents in the Installation's store, each under its id.
#[derive(Debug)]
pub struct ConfigurationLocal {
    identity: DriverIdentity,
    /// The name that its records are filed under.
    owner: String,
}

impl DriverFactory for ConfigurationLocal {
    const DRIVER: &'static str = "local";
    const IMPLEMENTATION: &'static str = "occ/local-configuration";
    type Settings = Settings;

    fn build(identity: DriverIdentity, _: Settings, _: &HostServices) -> Result<Self, BuildError> {
        let owner = format!("{}/{}", identity.kind, identity.id);
        Ok(Self { identity, owner })
    }
}

impl ConfigurationLocal {
    /// The record and the version that a write of it must name; refuses what another Namespace owns.
    async fn find(
        &self,
        cx: &OperationContext,
        namespace: NamespaceId,
        id: ConfigurationId,
    ) -> EffectResult<Option<(Record, u64)>> {
        let Some(entry) = cx.state().get(&self.owner, &id.to_string()).await? else {
            return Ok(None);
        };
        let record = Record::decode(&entry.value)?;
        if record.namespace_id == namespace {
            Ok(Some((record, entry.version)))
        } else {
            Err(Error::Foreign.into())
        }
    }

    fn store(
        &self,
        cx: &OperationContext,
        id: ConfigurationId,
        expected: Option<u64>,
        record: &Record,
    ) -> EffectResult<()> {
        cx.state().put(&self.owner, &id.to_string(), expected, record.encode()?)
    }
}

#[async_trait]
impl ConfigurationDriver for ConfigurationLocal {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    fn keeps_in_store(&self) -> bool {
        true
    }

    async fn create(
        &self,
        cx: &OperationContext,
        namespace: NamespaceId,
        id: ConfigurationId,
        document: &Document,
    ) -> EffectResult<()> {
        let first = Record::new(namespace, 1, document.clone());
        match self.find(cx, namespace, id).await? {
            // The answer to the first call was lost.
            Some((stored, _)) if stored == first => Ok(()),
            Some(_) => Err(Error::Exists.into()),
            None => self.store(cx, id, None, &first),
        }
    }

    async fn read(
        &self,
        cx: &OperationContext,
        namespace: NamespaceId,
        id: ConfigurationId,
    ) -> EffectResult<Option<(u64, Document)>> {
        let found = self.find(cx, namespace, id).await?;
        Ok(found.map(|(record, _)| (record.generation, record.document)))
    }

    async fn update(
        &self,
        cx: &OperationContext,
        namespace: NamespaceId,
        id: ConfigurationId,
        generation: u64,
        document: &Document,
    ) -> EffectResult<()> {
        let (stored, version) = self.find(cx, namespace, id).await?.ok_or(Error::Missing)?;
        let next = generation.checked_add(1).ok_or(Error::Stale)?;
        let replacement = Record::new(namespace, next, document.clone());
        if stored == replacement {
            // The answer to the first call was lost.
            Ok(())
        } else if stored.generation == generation {
            self.store(cx, id, Some(version), &replacement)
        } else {
            Err(Error::Stale.into())
        }
    }

    async fn delete(&self, cx: &OperationContext, namespace: NamespaceId, id: ConfigurationId) -> EffectResult<()> {
        match self.find(cx, namespace, id).await? {
            Some((_, version)) => cx.state().delete(&self.owner, &id.to_string(), version),
            None => Ok(()),
        }
    }
}

//! The contract over sealed records.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use occ_core::{
    driver::{CompareAndSwap, DriverIdentity, EffectResult, OperationContext, SecretDriver, SecretIdentity},
    registry::{BuildError, DriverFactory, HostServices},
    resource::BackendRef,
    secret_value::SecretValue,
    time::Clock,
};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use crate::{
    KeyFileError, Settings,
    error::Error,
    key_file::KeyFile,
    key_ring::KeyRing,
    sealed::{Owner, Sealed},
};

/// Seals values with keys of a key file and keeps them in the Installation's store.
pub struct SecretLocal {
    identity: DriverIdentity,
    /// The name that its records are filed under.
    owner: String,
    key_file: KeyFile,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for SecretLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretLocal")
            .field("identity", &self.identity)
            .field("key_file", &self.key_file)
            .finish_non_exhaustive()
    }
}

impl DriverFactory for SecretLocal {
    const DRIVER: &'static str = "local";
    const IMPLEMENTATION: &'static str = "occ/local-secret";
    type Settings = Settings;

    /// Refuses a key file that cannot be used. Makes none: preflight and the first sealed value do.
    fn build(identity: DriverIdentity, settings: Settings, host: &HostServices) -> Result<Self, BuildError> {
        let key_file = KeyFile::new(settings.key_file(&identity.id, &host.data_dir)?);
        key_file.check()?;
        let owner = format!("{}/{}", identity.kind, identity.id);
        Ok(Self {
            identity,
            owner,
            key_file,
            clock: host.clock.clone(),
        })
    }
}

/// A record and the version that a write of it must name.
type Found = (Sealed, u64);

impl SecretLocal {
    /// Adds a key to the key file and returns its id. From now on it seals; what older keys sealed still opens, and moves to
    /// the new key when it is next updated. Blocks on the disk.
    pub fn rotate(&self) -> Result<String, KeyFileError> {
        self.key_file.rotate(self.clock.now())
    }

    /// The keys, for sealing.
    fn sealing_keys(&self, cx: &OperationContext) -> EffectResult<KeyRing> {
        Ok(self.key_file.ensure(cx.now()).inspect_err(say)?)
    }

    fn open(&self, sealed: &Sealed) -> EffectResult<SecretValue> {
        let keys = self.key_file.load().inspect_err(say)?;
        let opened = sealed.open(&keys);
        if opened.as_ref().is_err_and(|error| *error == Error::KeyLost) {
            let path = self.key_file.path().display();
            tracing::error!(key = sealed.key_id(), %path, "a Secret's key is not in the key file: restore the file from a backup, or set the Secret anew");
        }
        Ok(opened?)
    }

    fn owner_of(&self, secret: &SecretIdentity) -> Owner {
        Owner::new(&self.identity.id, secret)
    }

    fn reference(secret: &SecretIdentity, uid: String) -> BackendRef {
        BackendRef {
            namespace_name: "local".to_owned(),
            name: secret.id.to_string(),
            key: "value".to_owned(),
            uid,
        }
    }

    /// The Secret's record; refuses one that says it is another's.
    async fn find(&self, cx: &OperationContext, secret: &SecretIdentity) -> EffectResult<Option<Found>> {
        let Some(entry) = cx.state().get(&self.owner, &secret.id.to_string()).await? else {
            return Ok(None);
        };
        let sealed = Sealed::decode(&entry.value)?;
        if sealed.owner == self.owner_of(secret) {
            Ok(Some((sealed, entry.version)))
        } else {
            Err(Error::Foreign.into())
        }
    }

    /// The record that `at` refers to; refuses one that was created anew since.
    async fn find_at(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        at: &BackendRef,
    ) -> EffectResult<Option<Found>> {
        let found = self.find(cx, secret).await?;
        match &found {
            Some((sealed, _)) if *at != Self::reference(secret, sealed.uid.clone()) => Err(Error::Foreign.into()),
            _ => Ok(found),
        }
    }

    fn store(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        expected: Option<u64>,
        uid: String,
        value: &SecretValue,
    ) -> EffectResult<()> {
        let sealed = Sealed::seal(self.owner_of(secret), uid, value, &self.sealing_keys(cx)?)?;
        cx.state()
            .put(&self.owner, &secret.id.to_string(), expected, sealed.encode()?)
    }
}

/// A fault carries static words only; the log says which file and what to do.
fn say(error: &KeyFileError) {
    tracing::error!("{error}");
}

fn equal(left: &SecretValue, right: &SecretValue) -> bool {
    left.expose().ct_eq(right.expose()).into()
}

#[async_trait]
impl SecretDriver for SecretLocal {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    fn keeps_in_store(&self) -> bool {
        true
    }

    async fn preflight(&self, cx: &OperationContext) -> EffectResult<()> {
        self.sealing_keys(cx).map(drop)
    }

    async fn create(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        value: &SecretValue,
    ) -> EffectResult<BackendRef> {
        let uid = match self.find(cx, secret).await? {
            // The answer to the first call was lost.
            Some((sealed, _)) if equal(&self.open(&sealed)?, value) => sealed.uid,
            Some(_) => return Err(Error::Exists.into()),
            None => {
                let uid = Uuid::new_v4().to_string();
                self.store(cx, secret, None, uid.clone(), value)?;
                uid
            }
        };
        Ok(Self::reference(secret, uid))
    }

    async fn update(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        at: &BackendRef,
        value: &SecretValue,
    ) -> EffectResult<()> {
        // The old value is not opened: an update also repairs a Secret whose key is lost.
        let (sealed, version) = self.find_at(cx, secret, at).await?.ok_or(Error::Missing)?;
        self.store(cx, secret, Some(version), sealed.uid, value)
    }

    async fn delete(&self, cx: &OperationContext, secret: &SecretIdentity, at: &BackendRef) -> EffectResult<()> {
        match self.find_at(cx, secret, at).await? {
            Some((_, version)) => cx.state().delete(&self.owner, &secret.id.to_string(), version),
            None => Ok(()),
        }
    }

    async fn resolve(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        at: &BackendRef,
    ) -> EffectResult<BackendRef> {
        // Opening proves that the record is this Secret's and that its key is there, before anything is deployed with it.
        self.value(cx, secret, at).await.map(|_| at.clone())
    }

    async fn value(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        at: &BackendRef,
    ) -> EffectResult<SecretValue> {
        let (sealed, _) = self.find_at(cx, secret, at).await?.ok_or(Error::Missing)?;
        self.open(&sealed)
    }

    fn compare_and_swap(&self) -> Option<&dyn CompareAndSwap> {
        Some(self)
    }
}

#[async_trait]
impl CompareAndSwap for SecretLocal {
    async fn swap(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        at: &BackendRef,
        expected: &SecretValue,
        value: &SecretValue,
    ) -> EffectResult<bool> {
        let (sealed, version) = self.find_at(cx, secret, at).await?.ok_or(Error::Missing)?;
        if !equal(&self.open(&sealed)?, expected) {
            return Ok(false);
        }
        self.store(cx, secret, Some(version), sealed.uid, value)?;
        Ok(true)
    }
}

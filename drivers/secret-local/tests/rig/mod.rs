//! A driver, a store in memory and a key file of its own.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use occ_core::{
    driver::{
        CONTRACT_VERSION, CompareAndSwap as _, DriverIdentity, DriverKind, DriverState, EffectError, EffectResult,
        Fault, FaultKind, MemoryState, OperationContext, SecretDriver as _, SecretIdentity,
    },
    iam::NoPolicy,
    id::{NamespaceId, SecretId},
    registry::{BuildError, DriverFactory as _, HostServices},
    resource::BackendRef,
    secret_value::SecretValue,
    time::SystemClock,
};
use occ_secret_local::{SecretLocal, Settings};
use tempfile::TempDir;

pub struct Rig {
    pub store: MemoryState,
    pub data: TempDir,
    pub secret: SecretIdentity,
}

impl Rig {
    pub fn new() -> Self {
        Self {
            store: MemoryState::default(),
            data: TempDir::new().expect("a directory"),
            secret: secret(NamespaceId::random()),
        }
    }

    /// Where the key file lies when the settings do not say.
    pub fn key_file(&self) -> PathBuf {
        self.data.path().join("secret/secret-local/keys.json")
    }

    /// A driver as another process would build it.
    pub fn driver(&self) -> SecretLocal {
        self.build("secret-local", Settings::default()).expect("it builds")
    }

    pub fn build(&self, id: &str, settings: Settings) -> Result<SecretLocal, BuildError> {
        let host = HostServices::new(self.data.path().to_owned(), Arc::new(NoPolicy));
        let identity = DriverIdentity {
            kind: DriverKind::Secret,
            id: id.to_owned(),
            implementation: SecretLocal::IMPLEMENTATION.to_owned(),
            contract: CONTRACT_VERSION,
        };
        SecretLocal::build(identity, settings, &host)
    }

    pub fn context(&self) -> OperationContext {
        OperationContext::new(Arc::new(SystemClock), DriverState::new(Arc::new(self.store.clone())))
    }

    fn commit(&self, cx: &OperationContext) -> EffectResult<()> {
        self.store.commit(cx.state().take_staged())
    }

    pub async fn create(&self, driver: &SecretLocal, value: &str) -> EffectResult<BackendRef> {
        self.create_for(driver, &self.secret, value).await
    }

    pub async fn create_for(
        &self,
        driver: &SecretLocal,
        secret: &SecretIdentity,
        value: &str,
    ) -> EffectResult<BackendRef> {
        let cx = self.context();
        let at = driver.create(&cx, secret, &text(value)).await?;
        self.commit(&cx)?;
        Ok(at)
    }

    pub async fn update(&self, driver: &SecretLocal, at: &BackendRef, value: &str) -> EffectResult<()> {
        let cx = self.context();
        driver.update(&cx, &self.secret, at, &text(value)).await?;
        self.commit(&cx)
    }

    pub async fn delete(&self, driver: &SecretLocal, at: &BackendRef) -> EffectResult<()> {
        let cx = self.context();
        driver.delete(&cx, &self.secret, at).await?;
        self.commit(&cx)
    }

    pub async fn swap(&self, driver: &SecretLocal, at: &BackendRef, expected: &str, value: &str) -> EffectResult<bool> {
        let cx = self.context();
        let swapped = driver
            .swap(&cx, &self.secret, at, &text(expected), &text(value))
            .await?;
        self.commit(&cx)?;
        Ok(swapped)
    }

    pub async fn value(&self, driver: &SecretLocal, at: &BackendRef) -> EffectResult<String> {
        let value = driver.value(&self.context(), &self.secret, at).await?;
        Ok(value.expose_str().expect("text").to_owned())
    }

    /// The only record, as JSON.
    pub fn record(&self) -> String {
        let [(_, _, bytes)] = self.store.dump().try_into().expect("one record");
        String::from_utf8(bytes).expect("JSON")
    }

    /// Overwrites the record of a Secret behind the driver's back.
    pub async fn plant(&self, owner: &str, secret: &SecretIdentity, record: &str) {
        let cx = self.context();
        let key = secret.id.to_string();
        let version = cx
            .state()
            .get(owner, &key)
            .await
            .expect("read")
            .map(|entry| entry.version);
        cx.state()
            .put(owner, &key, version, record.as_bytes().to_vec())
            .expect("staged");
        self.commit(&cx).expect("committed");
    }
}

pub fn secret(namespace_id: NamespaceId) -> SecretIdentity {
    SecretIdentity {
        id: SecretId::random(),
        namespace_id,
        name: "model key".parse().expect("a name"),
    }
}

pub fn text(value: &str) -> SecretValue {
    SecretValue::from(value.to_owned())
}

pub fn fault<T: std::fmt::Debug>(result: EffectResult<T>) -> FaultKind {
    match result {
        Err(EffectError::Fault(Fault { kind, .. })) => kind,
        other => panic!("expected a fault, got {other:?}"),
    }
}

pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it exists").permissions().mode() & 0o7777
}

pub fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

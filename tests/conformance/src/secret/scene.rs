//! One Secret, and the operations on it.

use std::sync::Arc;

use occ_core::{
    driver::{EffectError, EffectResult, MemoryState, SecretDriver, SecretIdentity},
    id::{NamespaceId, SecretId},
    resource::BackendRef,
    secret_value::SecretValue,
};

use super::Subject;
use crate::records::{commit, context, watched};

pub(super) struct Scene {
    pub(super) subject: Box<dyn Subject>,
    pub(super) driver: Arc<dyn SecretDriver>,
    pub(super) records: MemoryState,
    pub(super) secret: SecretIdentity,
}

pub(super) fn identity(namespace_id: NamespaceId) -> SecretIdentity {
    SecretIdentity {
        id: SecretId::random(),
        namespace_id,
        name: "model-key".parse().expect("a name"),
    }
}

pub(super) fn value(text: &str) -> SecretValue {
    SecretValue::from(text.to_owned())
}

impl Scene {
    pub(super) fn new(subject: Box<dyn Subject>) -> Self {
        Self {
            driver: subject.driver(),
            subject,
            records: MemoryState::default(),
            secret: identity(NamespaceId::random()),
        }
    }

    /// The same place through another driver.
    pub(super) fn through(&self, driver: Arc<dyn SecretDriver>) -> Through<'_> {
        Through { scene: self, driver }
    }

    fn mine(&self) -> Through<'_> {
        self.through(Arc::clone(&self.driver))
    }

    pub(super) async fn create(&self, text: &str) -> BackendRef {
        let created = self.mine().create(&self.secret, &value(text)).await;
        created.expect("a new Secret is stored")
    }

    pub(super) async fn try_create(&self, secret: &SecretIdentity, text: &str) -> EffectResult<BackendRef> {
        self.mine().create(secret, &value(text)).await
    }

    pub(super) async fn update(&self, secret: &SecretIdentity, at: &BackendRef, text: &str) -> EffectResult<()> {
        self.mine().update(secret, at, &value(text)).await
    }

    pub(super) async fn delete(&self, secret: &SecretIdentity, at: &BackendRef) -> EffectResult<()> {
        self.mine().delete(secret, at).await
    }

    pub(super) async fn resolve(&self, secret: &SecretIdentity, at: &BackendRef) -> EffectResult<BackendRef> {
        self.mine().resolve(secret, at).await
    }

    pub(super) async fn value(&self, secret: &SecretIdentity, at: &BackendRef) -> EffectResult<SecretValue> {
        self.mine().value(secret, at).await
    }

    /// The Secret's present value is this one.
    pub(super) async fn holds(&self, at: &BackendRef, text: &str) {
        let present = self.value(&self.secret, at).await.expect("the value is there");
        assert!(
            present.expose() == text.as_bytes(),
            "another value is stored than was given"
        );
    }
}

/// Operations through one driver, committed when they succeed and searched for secrets.
pub(super) struct Through<'a> {
    scene: &'a Scene,
    pub(super) driver: Arc<dyn SecretDriver>,
}

impl Through<'_> {
    pub(super) async fn create(&self, secret: &SecretIdentity, value: &SecretValue) -> EffectResult<BackendRef> {
        let cx = context(&self.scene.records);
        let done = self.driver.create(&cx, secret, value).await;
        watched("create", commit(&self.scene.records, &cx, done))
    }

    pub(super) async fn update(
        &self,
        secret: &SecretIdentity,
        at: &BackendRef,
        value: &SecretValue,
    ) -> EffectResult<()> {
        let cx = context(&self.scene.records);
        let done = self.driver.update(&cx, secret, at, value).await;
        watched("update", commit(&self.scene.records, &cx, done))
    }

    pub(super) async fn delete(&self, secret: &SecretIdentity, at: &BackendRef) -> EffectResult<()> {
        let cx = context(&self.scene.records);
        let done = self.driver.delete(&cx, secret, at).await;
        watched("delete", commit(&self.scene.records, &cx, done))
    }

    pub(super) async fn resolve(&self, secret: &SecretIdentity, at: &BackendRef) -> EffectResult<BackendRef> {
        let cx = context(&self.scene.records);
        watched("resolve", self.driver.resolve(&cx, secret, at).await)
    }

    pub(super) async fn value(&self, secret: &SecretIdentity, at: &BackendRef) -> EffectResult<SecretValue> {
        let cx = context(&self.scene.records);
        watched("value", self.driver.value(&cx, secret, at).await)
    }

    pub(super) async fn swap(
        &self,
        secret: &SecretIdentity,
        at: &BackendRef,
        expected: &SecretValue,
        value: &SecretValue,
    ) -> EffectResult<bool> {
        let swap = self.driver.compare_and_swap().expect("the rule needs compare_and_swap");
        let cx = context(&self.scene.records);
        let done = swap.swap(&cx, secret, at, expected, value).await;
        watched("swap", commit(&self.scene.records, &cx, done))
    }
}

/// The operation must fail, and because the object is somebody else's.
#[track_caller]
pub(super) fn refused<T>(what: &str, result: EffectResult<T>) {
    match result.map(drop) {
        Err(EffectError::Ownership) => {}
        other => panic!("{what} is an ownership error, and was {other:?}"),
    }
}

//! A Secret Driver with a place of its own: what it stores is not part of the engine's transaction.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use occ_core::{
    driver::{
        DriverIdentity, DriverKind, EffectError, EffectResult, Fault, FaultKind, OperationContext, SecretDriver,
        SecretIdentity,
    },
    id::SecretId,
    resource::BackendRef,
    secret_value::SecretValue,
};

/// Keeps values in memory, outside the store; can be made to fail, and its objects to be replaced.
#[derive(Debug)]
pub struct OutsideSecrets {
    identity: DriverIdentity,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    values: BTreeMap<SecretId, (SecretValue, u32)>,
    away: bool,
}

impl OutsideSecrets {
    /// With this id.
    pub fn named(id: &str) -> Self {
        Self {
            identity: super::identity(DriverKind::Secret, id, "occ/outside"),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it fails every call.
    pub fn set_away(&self, away: bool) {
        self.state().away = away;
    }

    /// How many values it keeps.
    pub fn len(&self) -> usize {
        self.state().values.len()
    }

    /// Whether it keeps none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Somebody replaces the object behind a Secret by another one of the same name.
    pub fn replace(&self, id: SecretId) {
        if let Some((_, uid)) = self.state().values.get_mut(&id) {
            *uid += 1;
        }
    }

    fn live(&self) -> EffectResult<MutexGuard<'_, State>> {
        let state = self.state();
        if state.away {
            Err(Fault::new("reach the vault", FaultKind::Unavailable).into())
        } else {
            Ok(state)
        }
    }

    fn reference(id: SecretId, uid: u32) -> BackendRef {
        BackendRef {
            namespace_name: "vault".to_owned(),
            name: id.to_string(),
            key: "value".to_owned(),
            uid: uid.to_string(),
        }
    }
}

fn missing() -> EffectError {
    Fault::new("find the value", FaultKind::Missing).into()
}

#[async_trait]
impl SecretDriver for OutsideSecrets {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    async fn create(
        &self,
        _: &OperationContext,
        secret: &SecretIdentity,
        value: &SecretValue,
    ) -> EffectResult<BackendRef> {
        let mut state = self.live()?;
        let (_, uid) = state.values.entry(secret.id).or_insert_with(|| (value.clone(), 1));
        Ok(Self::reference(secret.id, *uid))
    }

    async fn update(
        &self,
        _: &OperationContext,
        secret: &SecretIdentity,
        _: &BackendRef,
        value: &SecretValue,
    ) -> EffectResult<()> {
        self.live()?.values.get_mut(&secret.id).ok_or_else(missing)?.0 = value.clone();
        Ok(())
    }

    async fn delete(&self, _: &OperationContext, secret: &SecretIdentity, _: &BackendRef) -> EffectResult<()> {
        self.live()?.values.remove(&secret.id);
        Ok(())
    }

    async fn resolve(&self, _: &OperationContext, secret: &SecretIdentity, _: &BackendRef) -> EffectResult<BackendRef> {
        let state = self.live()?;
        let (_, uid) = state.values.get(&secret.id).ok_or_else(missing)?;
        Ok(Self::reference(secret.id, *uid))
    }

    async fn value(&self, _: &OperationContext, secret: &SecretIdentity, _: &BackendRef) -> EffectResult<SecretValue> {
        Ok(self.live()?.values.get(&secret.id).ok_or_else(missing)?.0.clone())
    }
}

//! The secrets of the suite's versions.

use async_trait::async_trait;
use occ_core::{
    driver::{EffectResult, Fault, FaultKind, SecretAccess},
    plan::SecretSlot,
    resource::BackendRef,
    secret_value::SecretValue,
};

use crate::canary;

/// Values that the suite looks for wherever they must not be.
#[derive(Debug, Clone, Copy, Default)]
pub struct Canaries;

#[async_trait]
impl SecretAccess for Canaries {
    fn reference(&self, _: &SecretSlot) -> Option<BackendRef> {
        None
    }

    async fn value(&self, slot: &SecretSlot) -> EffectResult<SecretValue> {
        match slot {
            SecretSlot::HarnessCredential => Ok(SecretValue::from(canary::CREDENTIAL.to_owned())),
            SecretSlot::Binding(_) => Ok(SecretValue::from(canary::BINDING.to_owned())),
            SecretSlot::GatewayPassword => Err(Fault::new("look for a secret", FaultKind::Missing).into()),
        }
    }
}

/// A Secret Driver that is away.
pub(super) struct Away;

#[async_trait]
impl SecretAccess for Away {
    fn reference(&self, _: &SecretSlot) -> Option<BackendRef> {
        None
    }

    async fn value(&self, _: &SecretSlot) -> EffectResult<SecretValue> {
        Err(Fault::new("reach the secrets", FaultKind::Unavailable).into())
    }
}

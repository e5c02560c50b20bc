//! The contract over the Installation's own policy.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::Arc,
};

use async_trait::async_trait;
use occ_core::{
    driver::{AccessRequest, Decision, DriverIdentity, EffectResult, IamDriver, Identity, OperationContext},
    iam::{Grants, PolicyReader},
    registry::{BuildError, DriverFactory, HostServices},
    resource::PrincipalId,
};

use crate::{Settings, evaluate};

/// Decides by the Roles, bindings and Restrictions in the Installation's store, read anew for each call.
pub struct NativeIam {
    identity: DriverIdentity,
    policy: Arc<dyn PolicyReader>,
}

impl fmt::Debug for NativeIam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeIam")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl DriverFactory for NativeIam {
    const DRIVER: &'static str = "native";
    const IMPLEMENTATION: &'static str = "occ/native-iam";
    type Settings = Settings;

    fn build(identity: DriverIdentity, _: Settings, host: &HostServices) -> Result<Self, BuildError> {
        Ok(Self {
            identity,
            policy: host.policy.clone(),
        })
    }
}

#[async_trait]
impl IamDriver for NativeIam {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    async fn lookup(&self, _: &OperationContext, principal: &PrincipalId) -> EffectResult<Option<Identity>> {
        let identity = self.policy.grants(principal).await?.identity;
        Ok(identity.filter(|found| found.id == *principal))
    }

    async fn authorize(&self, _: &OperationContext, request: &AccessRequest) -> EffectResult<Decision> {
        let grants = self.policy.grants(&request.principal).await?;
        Ok(evaluate(&self.identity.id, &grants, request))
    }

    /// Reads the policy once for each principal, so that all answers rest on the same state of it.
    async fn authorize_all(&self, _: &OperationContext, requests: &[AccessRequest]) -> EffectResult<Vec<Decision>> {
        let mut read: HashMap<&PrincipalId, Grants> = HashMap::new();
        let mut decisions = Vec::with_capacity(requests.len());
        for request in requests {
            let grants = match read.entry(&request.principal) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.policy.grants(&request.principal).await?),
            };
            decisions.push(evaluate(&self.identity.id, grants, request));
        }
        Ok(decisions)
    }
}

//! The contract over the Installation's own policy.

use std::{
    borrow::Cow,
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

/// Decides by the Roles, bindings and Restrictions in the Installation's store, read anew for each operation.
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

impl NativeIam {
    /// What bears on a principal: as the operation has read it, or read now.
    async fn grants<'a>(&self, cx: &'a OperationContext, principal: &PrincipalId) -> EffectResult<Cow<'a, Grants>> {
        match cx.known_grants(principal) {
            Some(known) => Ok(Cow::Borrowed(known)),
            None => self.policy.grants(principal).await.map(Cow::Owned),
        }
    }
}

#[async_trait]
impl IamDriver for NativeIam {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    fn decides_by_stored_policy(&self) -> bool {
        true
    }

    async fn lookup(&self, cx: &OperationContext, principal: &PrincipalId) -> EffectResult<Option<Identity>> {
        let identity = self.grants(cx, principal).await?.into_owned().identity;
        Ok(identity.filter(|found| found.id == *principal))
    }

    async fn authorize(&self, cx: &OperationContext, request: &AccessRequest) -> EffectResult<Decision> {
        let grants = self.grants(cx, &request.principal).await?;
        Ok(evaluate(&self.identity.id, &grants, request))
    }

    /// Reads the policy once for each principal, so that all answers rest on the same state of it.
    async fn authorize_all(&self, cx: &OperationContext, requests: &[AccessRequest]) -> EffectResult<Vec<Decision>> {
        let mut read: HashMap<&PrincipalId, Cow<'_, Grants>> = HashMap::new();
        let mut decisions = Vec::with_capacity(requests.len());
        for request in requests {
            let grants = match read.entry(&request.principal) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.grants(cx, &request.principal).await?),
            };
            decisions.push(evaluate(&self.identity.id, grants, request));
        }
        Ok(decisions)
    }
}

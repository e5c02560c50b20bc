//! The contract over policies from files.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::Arc,
};

use async_trait::async_trait;
use occ_core::{
    driver::{
        AccessRequest, Decision, DriverIdentity, EffectResult, Fault, FaultKind, IamDriver, Identity, OperationContext,
    },
    iam::PolicyReader,
    registry::{BuildError, DriverFactory, HostServices},
    resource::PrincipalId,
};

use crate::{InvalidPolicies, Settings, files::Files, policies::Policies};

/// Decides by Cedar policies. Who there is, it asks the Installation; who is in which group, its files say.
pub struct CedarIam {
    identity: DriverIdentity,
    people: Arc<dyn PolicyReader>,
    files: Arc<Files>,
}

impl fmt::Debug for CedarIam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CedarIam")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl DriverFactory for CedarIam {
    const DRIVER: &'static str = "cedar";
    const IMPLEMENTATION: &'static str = "occ/cedar-iam";
    type Settings = Settings;

    fn build(identity: DriverIdentity, settings: Settings, host: &HostServices) -> Result<Self, BuildError> {
        let files = Files::open(settings.checked()?).map_err(|error| {
            let setting = match &error {
                InvalidPolicies::Entities { .. } | InvalidPolicies::Foreign { .. } => "/entities",
                _ => "/policies",
            };
            BuildError::setting(setting, error.to_string())
        })?;
        Ok(Self {
            identity,
            people: host.policy.clone(),
            files: Arc::new(files),
        })
    }
}

impl CedarIam {
    async fn who(&self, cx: &OperationContext, principal: &PrincipalId) -> EffectResult<Option<Identity>> {
        let identity = match cx.known_grants(principal) {
            Some(known) => known.identity.clone(),
            None => self.people.grants(principal).await?.identity,
        };
        Ok(identity.filter(|found| found.id == *principal))
    }

    /// The policies of now. The disk may be slow, and is waited for elsewhere.
    async fn policies(&self) -> EffectResult<Arc<Policies>> {
        let files = Arc::clone(&self.files);
        tokio::task::spawn_blocking(move || files.current())
            .await
            .map_err(|_| Fault::new("read the policies", FaultKind::Unavailable).into())
    }

    fn decide(&self, policies: &Policies, identity: Option<&Identity>, request: &AccessRequest) -> Decision {
        let (allowed, evidence) = policies.decide(identity, request);
        Decision {
            allowed,
            driver_id: self.identity.id.clone(),
            evidence,
        }
    }
}

#[async_trait]
impl IamDriver for CedarIam {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    /// Only who there is.
    fn decides_by_stored_policy(&self) -> bool {
        true
    }

    async fn lookup(&self, cx: &OperationContext, principal: &PrincipalId) -> EffectResult<Option<Identity>> {
        self.who(cx, principal).await
    }

    async fn authorize(&self, cx: &OperationContext, request: &AccessRequest) -> EffectResult<Decision> {
        let identity = self.who(cx, &request.principal).await?;
        Ok(self.decide(&*self.policies().await?, identity.as_ref(), request))
    }

    /// Reads the files once, and each principal once, so that all answers rest on the same state.
    async fn authorize_all(&self, cx: &OperationContext, requests: &[AccessRequest]) -> EffectResult<Vec<Decision>> {
        let policies = self.policies().await?;
        let mut read: HashMap<&PrincipalId, Option<Identity>> = HashMap::new();
        let mut decisions = Vec::with_capacity(requests.len());
        for request in requests {
            let identity = match read.entry(&request.principal) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.who(cx, &request.principal).await?),
            };
            decisions.push(self.decide(&policies, identity.as_ref(), request));
        }
        Ok(decisions)
    }
}

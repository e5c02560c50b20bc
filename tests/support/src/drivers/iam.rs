//! An IAM Driver around another one: it can be away or never answer, answer in another driver's name, and deny what a test says.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use occ_core::{
    driver::{
        AccessRequest, Action, Decision, DriverIdentity, EffectResult, Fault, FaultKind, IamDriver, Identity,
        OperationContext, ResourceKind, ResourceRef,
    },
    resource::PrincipalId,
};

type Denied = (PrincipalId, Action, ResourceKind);

/// Passes questions on, unless a test says otherwise.
pub struct ScriptedIam {
    inner: Arc<dyn IamDriver>,
    away: AtomicBool,
    hanging: AtomicBool,
    impostor: AtomicBool,
    own: AtomicBool,
    denied: Mutex<Vec<Denied>>,
    refused: Mutex<Vec<AccessRequest>>,
    asked: Mutex<Vec<AccessRequest>>,
    gone: Mutex<Vec<PrincipalId>>,
}

impl ScriptedIam {
    /// Around this driver, whose identity it has.
    pub fn around(inner: Arc<dyn IamDriver>) -> Self {
        Self {
            inner,
            away: AtomicBool::new(false),
            hanging: AtomicBool::new(false),
            impostor: AtomicBool::new(false),
            own: AtomicBool::new(false),
            denied: Mutex::default(),
            refused: Mutex::default(),
            asked: Mutex::default(),
            gone: Mutex::default(),
        }
    }

    /// Whether it answers at all.
    pub fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::Relaxed);
    }

    /// Whether what is asked from now on is never answered.
    pub fn set_hanging(&self, hanging: bool) {
        self.hanging.store(hanging, Ordering::Relaxed);
    }

    /// Whether its decisions carry another driver's id.
    pub fn set_impostor(&self, impostor: bool) {
        self.impostor.store(impostor, Ordering::Relaxed);
    }

    /// From now on it says that no policy of the store counts, as a driver with files of its own.
    pub fn keeps_its_policy(&self) {
        self.own.store(true, Ordering::Relaxed);
    }

    /// Denies this from now on, whatever the policy grants.
    pub fn deny(&self, principal: &PrincipalId, action: Action, kind: ResourceKind) {
        lock(&self.denied).push((principal.clone(), action, kind));
    }

    /// Knows this identity no more, whatever it may do.
    pub fn forget(&self, principal: &PrincipalId) {
        lock(&self.gone).push(principal.clone());
    }

    /// Denies exactly this from now on.
    pub fn deny_exactly(&self, principal: &PrincipalId, action: Action, resource: ResourceRef) {
        lock(&self.refused).push(AccessRequest {
            principal: principal.clone(),
            action,
            resource,
        });
    }

    /// Denies nothing any more.
    pub fn relent(&self) {
        lock(&self.denied).clear();
        lock(&self.refused).clear();
    }

    /// What was asked since the last look.
    pub fn take_asked(&self) -> Vec<AccessRequest> {
        std::mem::take(&mut lock(&self.asked))
    }

    /// The decision as the test wants it.
    fn scripted(&self, request: &AccessRequest, mut decision: Decision) -> Decision {
        let wanted = (request.principal.clone(), request.action, request.resource.kind);
        if lock(&self.denied).contains(&wanted) || lock(&self.refused).contains(request) {
            decision.allowed = false;
        }
        if self.impostor.load(Ordering::Relaxed) {
            "iam-other".clone_into(&mut decision.driver_id);
        }
        decision
    }

    async fn live(&self) -> EffectResult<()> {
        if self.hanging.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if self.away.load(Ordering::Relaxed) {
            return Err(Fault::new("reach the policy", FaultKind::Unavailable).into());
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl IamDriver for ScriptedIam {
    fn identity(&self) -> &DriverIdentity {
        self.inner.identity()
    }

    fn decides_by_stored_policy(&self) -> bool {
        self.inner.decides_by_stored_policy() && !self.own.load(Ordering::Relaxed)
    }

    async fn lookup(&self, cx: &OperationContext, principal: &PrincipalId) -> EffectResult<Option<Identity>> {
        self.live().await?;
        if lock(&self.gone).contains(principal) {
            return Ok(None);
        }
        self.inner.lookup(cx, principal).await
    }

    async fn authorize(&self, cx: &OperationContext, request: &AccessRequest) -> EffectResult<Decision> {
        self.live().await?;
        lock(&self.asked).push(request.clone());
        let decision = self.inner.authorize(cx, request).await?;
        Ok(self.scripted(request, decision))
    }

    async fn authorize_all(&self, cx: &OperationContext, requests: &[AccessRequest]) -> EffectResult<Vec<Decision>> {
        self.live().await?;
        lock(&self.asked).extend_from_slice(requests);
        let decisions = self.inner.authorize_all(cx, requests).await?;
        let scripted = requests.iter().zip(decisions);
        Ok(scripted
            .map(|(request, decision)| self.scripted(request, decision))
            .collect())
    }
}

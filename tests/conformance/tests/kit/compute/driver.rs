//! The contract, over the place.

use std::sync::{Arc, Mutex, PoisonError, atomic::AtomicBool};

use async_trait::async_trait;
use occ_core::{
    driver::{
        AgentBinding, AgentRef, CONTRACT_VERSION, ComputeAdmission, ComputeDriver, ComputeProfile, Diagnostics,
        DriverIdentity, DriverKind, EffectError, EffectResult, Fault, FaultKind, GatewayAccess, GatewaySettings,
        HarnessAuthRequest, HookHost, LifecycleHooks, Listen, Maintenance, NamespaceState, OperationContext,
        PreflightWarning, Rejection, RevisionContext, RevisionObservation, RevisionRef, RuntimeCredentials,
        RuntimeImages, RuntimeLogs, SettingRejection, Stop, WorkspaceSetupSupport,
    },
    id::RevisionId,
    plan::SecretSlot,
    reason::Pending,
    resource::{Name, Namespace},
};

use super::{
    Flaw,
    place::{Home, Place, State},
    subject::first,
};

pub struct ModelCompute {
    pub flaw: Flaw,
    pub place: Arc<Place>,
    pub instance: u64,
    exclusive: bool,
    identity: DriverIdentity,
    hooks: Mutex<Vec<Arc<dyn LifecycleHooks>>>,
    /// What a driver that keeps too much to itself keeps.
    route: Mutex<Option<RevisionId>>,
    asked: AtomicBool,
}

pub fn fault(operation: &'static str) -> EffectError {
    Fault::new(operation, FaultKind::Conflict).into()
}

impl ModelCompute {
    pub fn new(flaw: Flaw, place: Arc<Place>, instance: u64) -> Self {
        let id = match flaw {
            Flaw::IdentityPerInstance => format!("model-{instance}"),
            _ => "model".to_owned(),
        };
        Self {
            flaw,
            place,
            instance,
            exclusive: false,
            identity: DriverIdentity {
                kind: DriverKind::Compute,
                id,
                implementation: "conformance/model".to_owned(),
                contract: CONTRACT_VERSION,
            },
            hooks: Mutex::default(),
            route: Mutex::default(),
            asked: AtomicBool::new(false),
        }
    }

    /// Whether it wants every predecessor stopped.
    pub fn exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }

    pub fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    /// Fails the second time, with this flaw.
    pub fn twice(&self, flaw: Flaw, what: &'static str) -> EffectResult<()> {
        if self.is(flaw) && !self.place.state().seen.insert(what) {
            return Err(fault(what));
        }
        Ok(())
    }

    /// Refuses what is not this driver's, and everything under a lapsed lease.
    pub fn enter(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<()> {
        if cx.cancellation().is_cancelled() && !self.is(Flaw::IgnoresCancellation) {
            return Err(EffectError::UnknownOutcome);
        }
        if self.place.state().foreign.contains(&agent.id) && !self.is(Flaw::AdoptsForeign) {
            return Err(EffectError::Ownership);
        }
        Ok(())
    }

    pub fn hooks(&self) -> Vec<Arc<dyn LifecycleHooks>> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The Agent's things, made if they are not there.
    pub fn home<'a>(state: &'a mut State, agent: &AgentRef) -> &'a mut Home {
        let home = state.homes.entry(agent.id).or_default();
        home.namespace = Some(agent.namespace_id);
        home
    }
}

impl ComputeAdmission for ModelCompute {
    fn harness_auth(&self, _: &HarnessAuthRequest<'_>) -> Result<(), Rejection> {
        if self.is(Flaw::AdmissionWrites) {
            self.place.state().scrap.push("asked".to_owned());
        }
        if self.is(Flaw::AdmissionAlternates) && first(&self.asked) {
            return Err(Rejection::Unsupported("not the first time"));
        }
        Ok(())
    }

    fn gateway_settings(&self, settings: &GatewaySettings) -> Result<(), SettingRejection> {
        match &settings.bind {
            Some(bind) if self.is(Flaw::RejectionHoldsValue) => Err(SettingRejection {
                setting: "gateway.bind",
                accepted: String::leak(format!("must not be {bind}")),
            }),
            Some(_) => Err(SettingRejection {
                setting: "gateway.bind",
                accepted: "must be omitted",
            }),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl ComputeDriver for ModelCompute {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    fn profile(&self) -> ComputeProfile {
        ComputeProfile {
            listen: Listen::Loopback,
        }
    }

    fn admission(&self) -> &dyn ComputeAdmission {
        self
    }

    async fn preflight(&self, _: &OperationContext) -> EffectResult<Vec<PreflightWarning>> {
        Ok(Vec::new())
    }

    async fn ensure_namespace(&self, cx: &OperationContext, namespace: &Namespace) -> EffectResult<NamespaceState> {
        if !self.is(Flaw::ForgetsHooks) {
            for hook in self.hooks() {
                hook.after_namespace_prepared(cx, namespace).await?;
            }
        }
        let mut state = self.place.state();
        state.namespaces.insert(namespace.id);
        if self.is(Flaw::NamespaceMadeAnew) {
            state.homes.clear();
        }
        let mut seen = NamespaceState::done(namespace);
        if self.is(Flaw::OtherNamespaceSeen) {
            seen.namespace_id = occ_core::id::NamespaceId::random();
        }
        Ok(seen)
    }

    async fn delete_namespace(&self, cx: &OperationContext, namespace: &Namespace) -> EffectResult<NamespaceState> {
        for hook in self.hooks() {
            hook.before_namespace_delete(cx, namespace).await?;
        }
        let mut state = self.place.state();
        let known = state.namespaces.remove(&namespace.id);
        if !known && (self.is(Flaw::RemovalOfNothingFails) || self.is(Flaw::SecondRemovalFails)) {
            return Err(fault("remove a Namespace"));
        }
        if self.is(Flaw::RemovalRemovesAll) {
            state.homes.clear();
        }
        Ok(NamespaceState::done(namespace))
    }

    async fn prepare_revision(
        &self,
        cx: &OperationContext,
        revision: &RevisionContext,
    ) -> EffectResult<RevisionObservation> {
        let seen = self.step(cx, revision, false).await;
        let seen = match seen {
            Err(EffectError::Fault(_)) if self.is(Flaw::ErrorHoldsSecret) => {
                let value = revision.secrets.value(&SecretSlot::HarnessCredential).await;
                let text = value.ok().and_then(|value| value.expose_str().map(str::to_owned));
                return Err(fault(String::leak(format!("fail with {text:?}"))));
            }
            other => other?,
        };
        if self.is(Flaw::ReadyOnce) && seen == RevisionObservation::ready(&revision.target) && !first(&self.asked) {
            return Ok(RevisionObservation::pending(
                &revision.target,
                Pending::RevisionIncomplete,
            ));
        }
        Ok(seen)
    }

    async fn activate_revision(
        &self,
        cx: &OperationContext,
        revision: &RevisionContext,
    ) -> EffectResult<RevisionObservation> {
        let target = &revision.target;
        if !self.is(Flaw::ActivationBlind) {
            let seen = self.step(cx, revision, true).await?;
            if seen != self.ready(target) {
                return Ok(seen);
            }
        }
        self.twice(Flaw::SecondActivationFails, "activate")?;
        Self::home(&mut self.place.state(), &target.agent).route = Some(target.id);
        *self.route.lock().unwrap_or_else(PoisonError::into_inner) = Some(target.id);
        Ok(RevisionObservation::ready(target))
    }

    async fn deactivate_revision(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<()> {
        self.enter(cx, &revision.agent)?;
        let mut state = self.place.state();
        match state.homes.get_mut(&revision.agent.id) {
            Some(home) if home.revisions.contains_key(&revision.id) => {
                if !self.is(Flaw::DeactivationKeepsRoute) {
                    home.route = None;
                }
                if self.is(Flaw::DeactivationStops) {
                    home.gateway = None;
                }
                Ok(())
            }
            _ if self.is(Flaw::DeactivationOfNothingFails) => Err(fault("deactivate")),
            _ => Ok(()),
        }
    }

    async fn stop_revision(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Stop> {
        if self.is(Flaw::StopOfNothingFails) && !self.place.state().homes.contains_key(&revision.agent.id) {
            return Err(fault("stop nothing"));
        }
        let stop = self.halt(cx, revision).await?;
        if stop == Stop::Stopped {
            self.twice(Flaw::SecondStopFails, "stop")?;
        }
        Ok(stop)
    }

    async fn retire_revision(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Stop> {
        let stop = self.halt(cx, revision).await?;
        if stop == Stop::Draining {
            return Ok(stop);
        }
        self.twice(Flaw::SecondRetireFails, "retire")?;
        let mut state = self.place.state();
        match state.homes.get_mut(&revision.agent.id) {
            Some(home) => {
                home.revisions.remove(&revision.id);
                if self.is(Flaw::RetireStopsSuccessor) {
                    home.gateway = None;
                }
            }
            None if self.is(Flaw::RetireOfNothingFails) => return Err(fault("retire nothing")),
            None => {}
        }
        Ok(Stop::Stopped)
    }

    async fn delete_agent(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<Stop> {
        self.enter(cx, agent)?;
        let mut state = self.place.state();
        let known = state.homes.remove(&agent.id);
        if known.is_none() && self.is(Flaw::DeletionOfNothingFails) {
            return Err(fault("delete nothing"));
        }
        if known.is_some() && self.is(Flaw::DeletionLeavesState) {
            state.scrap.push("state".to_owned());
        }
        Ok(Stop::Stopped)
    }

    fn requires_stopped_predecessors(&self, _: &RevisionRef) -> bool {
        self.exclusive
    }

    fn runtime_credentials(&self) -> Option<&dyn RuntimeCredentials> {
        Some(self)
    }

    fn gateway_access(&self) -> Option<&dyn GatewayAccess> {
        Some(self)
    }

    fn workspace_setup(&self) -> Option<&dyn WorkspaceSetupSupport> {
        Some(self)
    }

    fn diagnostics(&self) -> Option<&dyn Diagnostics> {
        let goes = self.is(Flaw::AbilityGoes) && !self.place.state().homes.is_empty();
        (!goes).then_some(self as _)
    }

    fn logs(&self) -> Option<&dyn RuntimeLogs> {
        Some(self)
    }

    fn images(&self) -> Option<&dyn RuntimeImages> {
        Some(self)
    }

    fn agent_binding(&self) -> Option<&dyn AgentBinding> {
        Some(self)
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        Some(self)
    }

    fn hook_host(&self) -> Option<&dyn HookHost> {
        Some(self)
    }
}

impl HookHost for ModelCompute {
    fn attach(&self, hooks: Vec<Arc<dyn LifecycleHooks>>) {
        *self.hooks.lock().unwrap_or_else(PoisonError::into_inner) = hooks;
    }

    fn sandbox_namespace(&self, namespace: &Name) -> Option<String> {
        Some(namespace.to_string())
    }
}

impl ModelCompute {
    /// Which version is on the Agent's route, as this instance knows it.
    pub fn on_route(&self, agent: &AgentRef) -> Option<RevisionId> {
        if self.is(Flaw::RouteInMemory) {
            return *self.route.lock().unwrap_or_else(PoisonError::into_inner);
        }
        self.place.state().homes.get(&agent.id)?.route
    }
}

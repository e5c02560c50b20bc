//! A Compute that does everything a real one can do wrong.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use occ_core::{
    driver::{
        ActivationOrder, AgentRef, CONTRACT_VERSION, ComputeAdmission, ComputeDriver, ComputeProfile, DriverIdentity,
        DriverKind, EffectError, EffectResult, Fault, FaultKind, GatewaySettings, HarnessAuthRequest, Listen,
        Maintenance, NamespaceState, OperationContext, PreflightWarning, Readiness, Rejection, RevisionContext,
        RevisionObservation, RevisionRef, RuntimeCredentials, SettingRejection, Stop, Terminal,
    },
    id::{AgentId, RevisionId},
    reason::{Dependency, Pending, RuntimeCode, RuntimeFailure, Token},
    resource::Namespace,
    time::Timestamp,
};

use super::{
    dice::Dice,
    rules::{InFlight, Rules, Runtime},
};

/// What a request gives a driver at most; a pass gives it longer.
const REQUEST: Duration = Duration::from_secs(30);

/// How a Compute behaves.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// When it switches the route.
    pub order: ActivationOrder,
    /// Whether predecessors are stopped first.
    pub exclusive: bool,
    /// How often it wants a look.
    pub maintenance: Option<Duration>,
    /// Faults in a thousand calls.
    pub rate: u64,
}

/// Everything that a real one can do wrong: it fails before and after the effect, takes long or for ever, is slow to get ready,
/// drains, refuses and takes one Agent for another.
#[derive(Debug)]
pub struct ChaosCompute {
    identity: DriverIdentity,
    manner: Manner,
    dice: Dice,
    rules: Rules,
    /// How often a version still says that it is not ready.
    unready: Mutex<BTreeMap<RevisionId, u64>>,
    /// How often a stop still drains.
    draining: Mutex<BTreeMap<RevisionId, u64>>,
}

/// Something that was asked of the Compute. Cut off, it may have happened or not.
struct Effect<'a, F: FnOnce(&mut Runtime)> {
    compute: &'a ChaosCompute,
    change: Option<F>,
    _in_flight: InFlight,
}

impl<F: FnOnce(&mut Runtime)> Effect<'_, F> {
    fn happen(&mut self) {
        if let Some(change) = self.change.take() {
            self.compute.rules.alter(change);
        }
    }
}

impl<F: FnOnce(&mut Runtime)> Drop for Effect<'_, F> {
    fn drop(&mut self) {
        if self.change.is_some() && self.compute.dice.chance(500) {
            self.happen();
        }
    }
}

fn lost() -> EffectError {
    EffectError::UnknownOutcome
}

fn fault() -> EffectError {
    Fault::new("do what was asked", FaultKind::Timeout).into()
}

impl ChaosCompute {
    /// With this manner.
    pub fn new(manner: Manner, dice: Dice, rules: Rules) -> Self {
        Self {
            identity: DriverIdentity {
                kind: DriverKind::Compute,
                id: "compute-chaos".to_owned(),
                implementation: "occ/chaos".to_owned(),
                contract: CONTRACT_VERSION,
            },
            manner,
            dice,
            rules,
            unready: Mutex::default(),
            draining: Mutex::default(),
        }
    }

    /// Causes an effect, or fails before, after, or in the middle of it.
    async fn cause(
        &self,
        cx: &OperationContext,
        agent: AgentId,
        what: &'static str,
        of: impl std::fmt::Display,
        change: impl FnOnce(&mut Runtime),
    ) -> EffectResult<()> {
        self.rules.step(|| format!("{what} {of}"));
        let mut effect = Effect {
            compute: self,
            change: Some(change),
            _in_flight: self.rules.begin(agent, cx.operation()),
        };
        self.dice.pause().await;
        if !self.dice.strikes(self.manner.rate) {
            effect.happen();
            self.dice.pause().await;
            return Ok(());
        }
        match self.dice.below(5) {
            0 => {
                effect.change = None;
                Err(fault())
            }
            1 => {
                effect.happen();
                Err(lost())
            }
            2 => {
                effect.change = None;
                Err(EffectError::Transient(*self.dice.pick(&[
                    Dependency::AgentGateway,
                    Dependency::KubernetesApi,
                    Dependency::SandboxGateway,
                ])))
            }
            3 => {
                // Slower than a lease; the heartbeat carries it over, or it is cut off.
                tokio::time::sleep(self.dice.up_to(Duration::from_secs(15))).await;
                effect.happen();
                Ok(())
            }
            _ => {
                // It never ends, whether it happened or not.
                if self.dice.chance(500) {
                    effect.happen();
                }
                effect.change = None;
                std::future::pending().await
            }
        }
    }

    /// Counts down to zero from where the dice set it.
    fn left(&self, counts: &Mutex<BTreeMap<RevisionId, u64>>, id: RevisionId, most: u64) -> u64 {
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(id).or_insert_with(|| self.dice.below(most));
        if self.dice.is_calm() {
            *count = 0;
        }
        let left = *count;
        *count = left.saturating_sub(1);
        left
    }

    /// What it says of a version that it was asked to bring up.
    fn seen(&self, target: &RevisionRef) -> EffectResult<RevisionObservation> {
        if self.dice.strikes(self.manner.rate / 4) {
            return match self.dice.below(5) {
                0 => Err(EffectError::Held(Box::new(self.evidence()), None)),
                1 => Err(EffectError::Terminal(
                    *self
                        .dice
                        .pick(&[Terminal::GatewayUnauthorized, Terminal::ConfigurationInvalid]),
                )),
                2 => Err(EffectError::Ownership),
                3 => {
                    let mut other = target.clone();
                    other.agent.id = AgentId::random();
                    Ok(RevisionObservation::ready(&other))
                }
                _ => Err(EffectError::Pending(Pending::WorkspaceNodePending)),
            };
        }
        if self.left(&self.unready, target.id, 4) > 0 {
            let reason = *self.dice.pick(&[
                Pending::RevisionIncomplete,
                Pending::RevisionUnschedulable,
                Pending::RevisionImagePullFailed,
            ]);
            let evidence = self.dice.chance(200).then(|| Box::new(self.evidence()));
            return Ok(RevisionObservation::of(target, Readiness::Pending { reason, evidence }));
        }
        // Stale: it is ready, and the answer is of a moment before.
        if self.dice.strikes(self.manner.rate / 4) {
            return Ok(RevisionObservation::pending(target, Pending::RevisionIncomplete));
        }
        Ok(RevisionObservation::ready(target))
    }

    fn evidence(&self) -> RuntimeFailure {
        RuntimeFailure {
            component: Token::known("gateway"),
            check: Token::known("model-probe"),
            checked_at: Timestamp::from_millis(0),
            code: *self.dice.pick(RuntimeCode::ALL),
            cause: None,
        }
    }

    async fn stopped(&self, cx: &OperationContext, target: &RevisionRef, what: &'static str) -> EffectResult<Stop> {
        if self.left(&self.draining, target.id, 3) > 0 && self.rules.runtime(|r| r.runs(target.agent.id, target.id)) {
            self.rules.step(|| format!("{what} {} drains", target.id));
            self.dice.pause().await;
            return Ok(Stop::Draining);
        }
        let (agent, id) = (target.agent.id, target.id);
        self.cause(cx, agent, what, id, move |runtime| {
            runtime.running.entry(agent).or_default().remove(&id);
            if runtime.routed.get(&agent) == Some(&id) {
                runtime.routed.remove(&agent);
            }
        })
        .await?;
        Ok(Stop::Stopped)
    }
}

impl ComputeAdmission for ChaosCompute {
    fn harness_auth(&self, _: &HarnessAuthRequest<'_>) -> Result<(), Rejection> {
        Ok(())
    }

    fn gateway_settings(&self, _: &GatewaySettings) -> Result<(), SettingRejection> {
        Ok(())
    }
}

#[async_trait]
impl ComputeDriver for ChaosCompute {
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

    async fn ensure_namespace(&self, _: &OperationContext, namespace: &Namespace) -> EffectResult<NamespaceState> {
        self.dice.pause().await;
        if self.dice.strikes(self.manner.rate) {
            return Err(fault());
        }
        Ok(NamespaceState {
            namespace_id: namespace.id,
            done: !self.dice.strikes(self.manner.rate),
        })
    }

    async fn delete_namespace(&self, cx: &OperationContext, namespace: &Namespace) -> EffectResult<NamespaceState> {
        self.ensure_namespace(cx, namespace).await
    }

    async fn prepare_revision(
        &self,
        cx: &OperationContext,
        revision: &RevisionContext,
    ) -> EffectResult<RevisionObservation> {
        let target = &revision.target;
        let (agent, id) = (target.agent.id, target.id);
        self.rules.may_prepare(target);
        self.cause(cx, agent, "prepare", id, move |runtime| {
            runtime.running.entry(agent).or_default().insert(id);
        })
        .await?;
        let seen = self.seen(target)?;
        if seen.is_of(target) && matches!(seen.readiness, Readiness::Ready { .. }) {
            self.rules.alter(|runtime| runtime.ready.insert(id));
        }
        Ok(seen)
    }

    async fn activate_revision(
        &self,
        cx: &OperationContext,
        revision: &RevisionContext,
    ) -> EffectResult<RevisionObservation> {
        let target = &revision.target;
        let (agent, id) = (target.agent.id, target.id);
        self.rules.may_activate(target);
        self.cause(cx, agent, "activate", id, move |runtime| {
            runtime.routed.insert(agent, id);
        })
        .await?;
        self.seen(target)
    }

    async fn deactivate_revision(&self, cx: &OperationContext, target: &RevisionRef) -> EffectResult<()> {
        let (agent, id) = (target.agent.id, target.id);
        self.cause(cx, agent, "deactivate", id, move |runtime| {
            if runtime.routed.get(&agent) == Some(&id) {
                runtime.routed.remove(&agent);
            }
        })
        .await
    }

    async fn stop_revision(&self, cx: &OperationContext, target: &RevisionRef) -> EffectResult<Stop> {
        self.stopped(cx, target, "stop").await
    }

    async fn retire_revision(&self, cx: &OperationContext, target: &RevisionRef) -> EffectResult<Stop> {
        self.stopped(cx, target, "retire").await
    }

    async fn delete_agent(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<Stop> {
        let id = agent.id;
        self.cause(cx, id, "delete", id, move |runtime| {
            runtime.running.remove(&id);
            runtime.routed.remove(&id);
        })
        .await?;
        Ok(Stop::Stopped)
    }

    fn activation_order(&self) -> ActivationOrder {
        self.manner.order
    }

    fn requires_stopped_predecessors(&self, _: &RevisionRef) -> bool {
        self.manner.exclusive
    }

    fn runtime_credentials(&self) -> Option<&dyn RuntimeCredentials> {
        Some(self)
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        self.manner.maintenance.is_some().then_some(self as _)
    }
}

impl Maintenance for ChaosCompute {
    fn interval(&self) -> Duration {
        self.manner.maintenance.unwrap_or(Duration::MAX)
    }
}

#[async_trait]
impl RuntimeCredentials for ChaosCompute {
    async fn exist(&self, _: &OperationContext, agent: &AgentRef) -> EffectResult<bool> {
        self.dice.pause().await;
        Ok(self.rules.runtime(|runtime| runtime.credentials.contains(&agent.id)))
    }

    async fn provision(&self, _: &OperationContext, agent: &AgentRef) -> EffectResult<()> {
        self.dice.pause().await;
        self.rules.alter(|runtime| runtime.credentials.insert(agent.id));
        if self.dice.strikes(self.manner.rate) {
            return Err(lost());
        }
        Ok(())
    }

    async fn delete(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<()> {
        let id = agent.id;
        // A request takes back what it generated beside a deletion. It is no pass, and may come beside one.
        if cx.remaining().is_some_and(|left| left <= REQUEST) {
            self.dice.pause().await;
            self.rules.alter(|runtime| runtime.credentials.remove(&id));
            return if self.dice.strikes(self.manner.rate) {
                Err(lost())
            } else {
                Ok(())
            };
        }
        self.cause(cx, id, "delete credentials of", id, move |runtime| {
            runtime.credentials.remove(&id);
        })
        .await
    }
}

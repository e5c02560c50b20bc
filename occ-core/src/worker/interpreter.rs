//! Performs the steps of a pass against the store and the drivers.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{
    Authority, Event, Outcome, Pass, Progress, Step,
    facts::facts,
    lease::Heartbeat,
    pass::StopRecord,
    publish::publish,
    runtime::{attachments, revision_context},
    telemetry, unreadable,
    waiting::Waiting,
};
use crate::{
    audit::Authorization,
    driver::{
        AccessRequest, AgentRef, Attachment, AttachmentCondition, DriverIdentity, DriverState, EffectError,
        EffectResult, Fault, FaultKind, OperationContext, RevisionObservation, RevisionRef, SourceIdentity,
    },
    installation::Drivers,
    reason::Pending,
    resource::{DesiredRuntimeState, PrincipalId},
    store::{Change, CommitError, Expect, PassRead, Provisioning, Store, StoreError, StoreResult, Write},
    time::Clock,
    work::{Claim, Lease, Policy, Target, Transition},
};

/// What every pass of one worker shares.
pub(super) struct Shared {
    pub store: Arc<dyn Store>,
    pub drivers: Arc<Drivers>,
    pub clock: Arc<dyn Clock>,
    pub policy: Policy,
    pub waiting: Waiting,
}

impl Shared {
    pub(super) fn lease(&self) -> Lease {
        Lease {
            duration: self.policy.lease,
            max_attempts: self.policy.max_attempts,
        }
    }
}

/// Drives one claim to its settlement. Returns without publishing when the claim is lost.
pub(super) async fn run(shared: &Shared, claim: Claim, claimed: Instant, shutdown: &CancellationToken) {
    let span = telemetry::pass(&claim);
    // A pass holds all that it read: too much to be moved about.
    Box::pin(pass(shared, claim, claimed, shutdown).instrument(span)).await;
}

async fn pass(shared: &Shared, claim: Claim, claimed: Instant, shutdown: &CancellationToken) {
    let heartbeat = Heartbeat::start(
        Arc::clone(&shared.store),
        claim.token,
        shared.lease(),
        claimed,
        shutdown,
    );
    let started = Instant::now();
    let lapsed = heartbeat.lapsed.clone();
    let interpreter = Interpreter {
        shared,
        cx: context(shared, &claim, &lapsed),
        claimed,
        lapsed,
        heartbeat: &heartbeat,
    };
    let (outcome, pass) = match interpreter.drive(claim.clone()).await {
        Ok(finished) => finished,
        Err(Interrupted::CutOff) if shutdown.is_cancelled() => {
            // A shutdown gives the attempt back at once instead of leaving it to the lease.
            let transition = Transition::Defer {
                reason: claim.last_attempt.map_or(Pending::ControllerShutdown, |last| last.code),
                delay: Duration::ZERO,
                refusal: claim.last_attempt.and_then(|last| last.refusal),
                failed_stops: claim.last_attempt.map_or(0, |last| last.failed_stops),
                repeat_evidence: false,
            };
            let change = Change::new()
                .expect(Expect::ClaimHeld(claim.token))
                .write(Write::Settle(claim.token, transition.clone()));
            if shared.store.commit(change).await.is_ok() {
                telemetry::settled(&claim, &transition, started.elapsed());
            }
            return;
        }
        Err(Interrupted::CutOff) => {
            telemetry::lease_lost(&claim);
            tracing::warn!(work = claim.target.key(), code = "CLAIM_LOST", "worker.error");
            return;
        }
        Err(Interrupted::Unreadable) => return unreadable::publish(shared, &claim, started, &heartbeat).await,
    };
    publish(shared, &outcome, pass, started, &heartbeat).await;
}

/// Between two questions to a store that does not answer.
pub(super) const STORE_PAUSE: Duration = Duration::from_millis(100);

/// Why a pass ended without an outcome.
enum Interrupted {
    /// Its lease lapsed, or the worker shuts down.
    CutOff,
    /// What it must read does not decode.
    Unreadable,
}

fn context(shared: &Shared, claim: &Claim, lapsed: &CancellationToken) -> OperationContext {
    let state = DriverState::new(Arc::new(StateOf(Arc::clone(&shared.store))));
    OperationContext::new(Arc::clone(&shared.clock), state)
        .with_attempt(claim.attempt)
        .with_cancellation(lapsed.clone())
}

struct StateOf(Arc<dyn Store>);

#[async_trait::async_trait]
impl crate::driver::StateReader for StateOf {
    async fn read(&self, driver: &str, key: &str) -> EffectResult<Option<crate::driver::StateEntry>> {
        self.0.read(driver, key).await
    }
}

struct Interpreter<'a> {
    shared: &'a Shared,
    cx: OperationContext,
    claimed: Instant,
    lapsed: CancellationToken,
    heartbeat: &'a Heartbeat,
}

impl Interpreter<'_> {
    async fn drive(&self, claim: Claim) -> Result<(Outcome, Pass), Interrupted> {
        let read = self.read(&claim).await?;
        let mut compute = facts(&self.shared.drivers, &read);
        if let Target::NamespaceReady { .. } = claim.target {
            let found = self.answered(&claim, || self.shared.store.installation()).await?;
            compute.installation = found.map(|installation| installation.id);
        }
        let late = self.shared.policy.past_deadline(&claim, Duration::ZERO);
        let mut pass = Pass {
            claim,
            read,
            compute,
            late,
            progress: Progress::default(),
        };
        loop {
            if !self.heartbeat.holds() {
                return Err(Interrupted::CutOff);
            }
            match pass.decide() {
                Step::Finish(outcome) => {
                    pass.late = self.shared.policy.past_deadline(&pass.claim, self.claimed.elapsed());
                    return Ok((*outcome, pass));
                }
                step => {
                    let event = self.perform(step, &pass).await?;
                    // What a cancelled effect brought is not known; nothing is concluded from it.
                    if self.lapsed.is_cancelled() {
                        return Err(Interrupted::CutOff);
                    }
                    pass.apply(event);
                }
            }
        }
    }

    async fn read(&self, claim: &Claim) -> Result<PassRead, Interrupted> {
        self.answered(claim, || self.shared.store.pass_read(&claim.target))
            .await
    }

    /// Asks until the store answers: without facts there is nothing to decide, and the lease bounds the wait.
    async fn answered<T, F>(&self, claim: &Claim, ask: impl Fn() -> F) -> Result<T, Interrupted>
    where
        F: Future<Output = StoreResult<T>>,
    {
        loop {
            match self.lapsed.run_until_cancelled(ask()).await {
                None => return Err(Interrupted::CutOff),
                Some(Ok(read)) => return Ok(read),
                Some(Err(StoreError::Corrupt(what))) => {
                    tracing::error!(work = claim.target.key(), what, "a stored row does not decode");
                    return Err(Interrupted::Unreadable);
                }
                Some(Err(error)) => {
                    tracing::warn!(work = claim.target.key(), cause = %error, "worker.error");
                    let pause = tokio::time::sleep(STORE_PAUSE);
                    if self.lapsed.run_until_cancelled(pause).await.is_none() {
                        return Err(Interrupted::CutOff);
                    }
                }
            }
        }
    }

    async fn perform(&self, step: Step, pass: &Pass) -> Result<Event, Interrupted> {
        let compute = &self.shared.drivers.compute;
        let cx = &self.limited();
        let namespace = pass.read.namespace.as_ref().map(|row| &row.namespace);
        let missing = || EffectError::from(Fault::new("find the work's Namespace", FaultKind::Missing));
        Ok(match step {
            Step::Authorize(requests) => Event::Authority(self.authorized(cx, pass, &requests).await),
            Step::Bind(agent) => Event::Bound(match compute.agent_binding() {
                Some(binding) => self.call("compute.bind_agent", binding.bind(cx, &agent)).await,
                None => Ok(()),
            }),
            Step::EnsureNamespace => Event::Namespace(match namespace {
                Some(namespace) => {
                    let effect = compute.ensure_namespace(cx, namespace);
                    self.call("compute.ensure_namespace", effect).await
                }
                None => Err(missing()),
            }),
            Step::DeleteNamespace => Event::Namespace(match namespace {
                Some(namespace) => {
                    let effect = compute.delete_namespace(cx, namespace);
                    self.call("compute.delete_namespace", effect).await
                }
                None => Err(missing()),
            }),
            Step::Prepare => Event::Prepared(self.call("compute.prepare_revision", self.prepare(cx, pass)).await),
            Step::Activate => Event::Activated(self.call("compute.activate_revision", self.activate(cx, pass)).await),
            Step::Deactivate(target) => {
                let effect = compute.deactivate_revision(cx, &target);
                Event::Deactivated(self.call("compute.deactivate_revision", effect).await)
            }
            Step::Stop(target) => self.stop(cx, &target).await,
            Step::Retire(target) => {
                let effect = compute.retire_revision(cx, &target);
                Event::Retired(target.id, self.call("compute.retire_revision", effect).await)
            }
            Step::Reread => Event::Read(Box::new(self.read(&pass.claim).await?)),
            Step::MovePointer { agent, from, to } => {
                Event::PointerMoved(self.move_pointer(pass, agent, from, to).await)
            }
            Step::DiscardSetup(agent, setup) => Event::Discarded(match compute.workspace_setup() {
                Some(support) => {
                    let effect = support.discard(cx, &agent, setup);
                    self.call("compute.discard_workspace_setup", effect).await
                }
                None => Ok(()),
            }),
            Step::DeleteCredentials(agent) => {
                Event::CredentialsDeleted(self.delete_credentials(cx, pass, &agent).await)
            }
            Step::DeleteAgent(agent) => {
                let effect = compute.delete_agent(cx, &agent);
                Event::AgentDeleted(self.call("compute.delete_agent", effect).await)
            }
            Step::Withdraw(target, source) => Event::Withdrawn(self.withdraw(cx, &target, &source).await),
            Step::Finish(_) => return Err(Interrupted::CutOff),
        })
    }

    /// What a driver is given for one call: it knows until when it may take.
    fn limited(&self) -> OperationContext {
        let deadline = self.shared.clock.now().plus(self.shared.policy.effect_timeout);
        self.cx.clone().with_deadline(deadline)
    }

    /// A call of the Compute, until it ends, its time is over or the claim ends, in a span of its own.
    async fn call<T>(&self, name: &'static str, effect: impl Future<Output = EffectResult<T>>) -> EffectResult<T> {
        self.traced(name, self.shared.drivers.compute.identity(), effect).await
    }

    async fn authorized(
        &self,
        cx: &OperationContext,
        pass: &Pass,
        requests: &[AccessRequest],
    ) -> EffectResult<Authority> {
        let iam = self.shared.drivers.iam.identity();
        self.traced("iam.authorize", iam, self.authorize(cx, pass, requests))
            .await
    }

    async fn traced<T>(
        &self,
        name: &'static str,
        driver: &DriverIdentity,
        effect: impl Future<Output = EffectResult<T>>,
    ) -> EffectResult<T> {
        let span = telemetry::call(name, driver);
        // The heartbeat goes on beside it, so that a call which never ends would hold its lane for ever.
        let limited = timeout(self.shared.policy.effect_timeout, self.cx.run(effect));
        let result = limited.instrument(span.clone()).await;
        let result = result.unwrap_or(Err(EffectError::UnknownOutcome));
        telemetry::called(&span, &result);
        result
    }

    /// Whether they are: not as long as some may still be generated, which nobody would delete after this pass.
    async fn delete_credentials(&self, cx: &OperationContext, pass: &Pass, agent: &AgentRef) -> EffectResult<bool> {
        let Some(credentials) = self.shared.drivers.compute.runtime_credentials() else {
            return Ok(true);
        };
        let store = &*self.shared.store;
        let unread = |_| Fault::new("read which credentials are being generated", FaultKind::Unavailable);
        let provisioning = Provisioning::of(store, agent.id).await.map_err(unread)?;
        if provisioning.is_under_way(pass.read.now) {
            return Ok(false);
        }
        let effect = credentials.delete(cx, agent);
        self.call("compute.delete_credentials", effect).await?;
        if let Some(over) = provisioning.over() {
            let change = Change::new()
                .expect(Expect::ClaimHeld(pass.claim.token))
                .state(vec![over]);
            let kept = |_| Fault::new("forget which credentials were being generated", FaultKind::Unavailable);
            store.commit(change).await.map_err(kept)?;
        }
        Ok(true)
    }

    async fn prepare(&self, cx: &OperationContext, pass: &Pass) -> EffectResult<RevisionObservation> {
        let attached = self.attached(cx, pass).await?;
        let context = revision_context(&self.shared.drivers, cx, &pass.read, &attached)?;
        self.shared.drivers.compute.prepare_revision(cx, &context).await
    }

    async fn activate(&self, cx: &OperationContext, pass: &Pass) -> EffectResult<RevisionObservation> {
        let attached = self.attached(cx, pass).await?;
        let context = revision_context(&self.shared.drivers, cx, &pass.read, &attached)?;
        self.shared.drivers.compute.activate_revision(cx, &context).await
    }

    /// What the version may use of its credential sources: all of them that were not withdrawn, each looked at afresh.
    async fn attached(&self, cx: &OperationContext, pass: &Pass) -> EffectResult<Vec<Attachment>> {
        let Some(gateway) = &self.shared.drivers.credential_gateway else {
            return Ok(Vec::new());
        };
        let effect = attachments(&**gateway, cx, &pass.read);
        self.traced("credential_gateway.attach", gateway.identity(), effect)
            .await
    }

    /// Asks for the end of a use, and looks whether it has come: only what the gateway shows counts.
    async fn withdraw(
        &self,
        cx: &OperationContext,
        target: &RevisionRef,
        source: &SourceIdentity,
    ) -> EffectResult<AttachmentCondition> {
        let gateway = self.shared.drivers.credential_gateway.as_ref();
        let gateway = gateway.ok_or(Fault::new("find the Credential Gateway", FaultKind::Missing))?;
        let effect = async {
            gateway.withdraw(cx, target, source).await?;
            gateway.attachment(cx, target, source).await
        };
        self.traced("credential_gateway.withdraw", gateway.identity(), effect)
            .await
    }

    async fn stop(&self, cx: &OperationContext, target: &RevisionRef) -> Event {
        let started = Instant::now();
        let effect = self.shared.drivers.compute.stop_revision(cx, target);
        let result = self.call("compute.stop_revision", effect).await;
        Event::Stopped(
            target.id,
            StopRecord {
                result,
                took: started.elapsed(),
            },
        )
    }

    /// The context with all that an IAM Driver over the Installation's policy would read one by one, of one moment.
    async fn knowing_policy(
        &self,
        cx: &OperationContext,
        actor: &PrincipalId,
        principal: Option<&PrincipalId>,
    ) -> EffectResult<OperationContext> {
        if !self.shared.drivers.iam.decides_by_stored_policy() {
            return Ok(cx.clone());
        }
        let mut all = vec![actor.clone()];
        all.extend(principal.filter(|principal| *principal != actor).cloned());
        Ok(cx.clone().with_grants(self.shared.store.grants_of(&all).await?))
    }

    /// The IAM Driver decides first; only then is a vanished identity told apart, so that an outage retries instead of failing.
    async fn authorize(
        &self,
        cx: &OperationContext,
        pass: &Pass,
        requests: &[AccessRequest],
    ) -> EffectResult<Authority> {
        let iam = &self.shared.drivers.iam;
        let principal = match (&pass.read.agent, pass.claim.target.revision()) {
            (Some(agent), Some(_)) => Some(&agent.agent.service_principal_id),
            _ => None,
        };
        let cx = &self.knowing_policy(cx, &pass.claim.actor, principal).await?;
        let decisions = iam.authorize_all(cx, requests).await?;
        if decisions.len() != requests.len() {
            return Err(Fault::new("count the decisions", FaultKind::Protocol).into());
        }
        // An answer in another driver's name is none: neither a grant nor a denial (spec/engine 11).
        let selected = &iam.identity().id;
        if decisions.iter().any(|decision| decision.driver_id != *selected) {
            return Err(Fault::new("know whose the decisions are", FaultKind::Protocol).into());
        }
        let denied = requests.iter().zip(&decisions).find(|(_, decision)| !decision.allowed);
        let actor = iam.lookup(cx, &pass.claim.actor).await?;
        if actor.is_none() {
            return Ok(Authority::ActorGone);
        }
        if let Some(principal) = principal
            && iam.lookup(cx, principal).await?.is_none()
        {
            return Ok(Authority::PrincipalGone);
        }
        Ok(match denied {
            None => Authority::Granted,
            Some((request, decision)) => Authority::Denied(Box::new(Authorization {
                request: request.clone(),
                decision: decision.clone(),
            })),
        })
    }

    async fn move_pointer(
        &self,
        pass: &Pass,
        agent: crate::id::AgentId,
        from: Option<crate::id::RevisionId>,
        to: crate::id::RevisionId,
    ) -> EffectResult<bool> {
        let change = Change::new()
            .expect(Expect::ClaimHeld(pass.claim.token))
            .expect(Expect::AgentRuntime {
                agent,
                active: from,
                desired: DesiredRuntimeState::Running,
            })
            .write(Write::ActiveRevision(agent, Some(to)));
        loop {
            match self.shared.store.commit(change.clone()).await {
                Ok(()) => return Ok(true),
                Err(CommitError::Conflict(Expect::ClaimHeld(_))) => {
                    self.lapsed.cancel();
                    return Err(EffectError::UnknownOutcome);
                }
                Err(CommitError::Conflict(_)) => return Ok(false),
                // Nothing was committed: what was prepared waits for the store, as a result does.
                Err(CommitError::Unavailable | CommitError::NoSpace) if self.heartbeat.holds() => {
                    let pause = tokio::time::sleep(STORE_PAUSE);
                    if self.lapsed.run_until_cancelled(pause).await.is_none() {
                        return Err(EffectError::UnknownOutcome);
                    }
                }
                // Where the pointer is now is read before anything is concluded.
                Err(CommitError::UnknownOutcome) => return Err(EffectError::UnknownOutcome),
                Err(_) => return Err(Fault::new("move the Agent's pointer", FaultKind::Unavailable).into()),
            }
        }
    }
}

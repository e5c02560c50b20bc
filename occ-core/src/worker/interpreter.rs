//! Performs the steps of a pass against the store and the drivers.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{
    Authority, Event, Outcome, Pass, Progress, Step,
    lease::Heartbeat,
    pass::{ComputeFacts, StopRecord, revision_ref},
    publish::publish,
    runtime::{attachments, revision_context},
    telemetry, unreadable,
    waiting::Waiting,
};
use crate::{
    audit::Authorization,
    driver::{
        AccessRequest, AgentRef, Attachment, AttachmentCondition, DriverIdentity, DriverState, EffectError,
        EffectResult, Fault, FaultKind, Maintenance, OperationContext, RevisionObservation, RevisionRef,
        SourceIdentity,
    },
    installation::Drivers,
    reason::Pending,
    resource::{ComputeIdentity, DesiredRuntimeState, PrincipalId},
    revision,
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
    lapsed: CancellationToken,
    heartbeat: &'a Heartbeat,
}

impl Interpreter<'_> {
    async fn drive(&self, claim: Claim) -> Result<(Outcome, Pass), Interrupted> {
        let late = self.shared.policy.past_deadline(&claim);
        let read = self.read(&claim).await?;
        let mut compute = facts(&self.shared.drivers, &read);
        if let Target::NamespaceReady { .. } = claim.target {
            let found = self.answered(&claim, || self.shared.store.installation()).await?;
            compute.installation = found.map(|installation| installation.id);
        }
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
                Step::Finish(outcome) => return Ok((*outcome, pass)),
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
        let cx = &self.cx;
        let namespace = pass.read.namespace.as_ref().map(|row| &row.namespace);
        let missing = || EffectError::from(Fault::new("find the work's Namespace", FaultKind::Missing));
        Ok(match step {
            Step::Authorize(requests) => Event::Authority(self.authorized(pass, &requests).await),
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
            Step::Prepare => Event::Prepared(self.call("compute.prepare_revision", self.prepare(pass)).await),
            Step::Activate => Event::Activated(self.call("compute.activate_revision", self.activate(pass)).await),
            Step::Deactivate(target) => {
                let effect = compute.deactivate_revision(cx, &target);
                Event::Deactivated(self.call("compute.deactivate_revision", effect).await)
            }
            Step::Stop(target) => self.stop(&target).await,
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
            Step::DeleteCredentials(agent) => Event::CredentialsDeleted(self.delete_credentials(pass, &agent).await),
            Step::DeleteAgent(agent) => {
                let effect = compute.delete_agent(cx, &agent);
                Event::AgentDeleted(self.call("compute.delete_agent", effect).await)
            }
            Step::Withdraw(target, source) => Event::Withdrawn(self.withdraw(&target, &source).await),
            Step::Finish(_) => return Err(Interrupted::CutOff),
        })
    }

    /// A call of the Compute, until it ends or the claim does, in a span of its own.
    async fn call<T>(&self, name: &'static str, effect: impl Future<Output = EffectResult<T>>) -> EffectResult<T> {
        self.traced(name, self.shared.drivers.compute.identity(), effect).await
    }

    async fn authorized(&self, pass: &Pass, requests: &[AccessRequest]) -> EffectResult<Authority> {
        let iam = self.shared.drivers.iam.identity();
        self.traced("iam.authorize", iam, self.authorize(pass, requests)).await
    }

    async fn traced<T>(
        &self,
        name: &'static str,
        driver: &DriverIdentity,
        effect: impl Future<Output = EffectResult<T>>,
    ) -> EffectResult<T> {
        let span = telemetry::call(name, driver);
        let result = self.cx.run(effect).instrument(span.clone()).await;
        telemetry::called(&span, &result);
        result
    }

    /// Whether they are: not as long as some may still be generated, which nobody would delete after this pass.
    async fn delete_credentials(&self, pass: &Pass, agent: &AgentRef) -> EffectResult<bool> {
        let Some(credentials) = self.shared.drivers.compute.runtime_credentials() else {
            return Ok(true);
        };
        let store = &*self.shared.store;
        let unread = |_| Fault::new("read which credentials are being generated", FaultKind::Unavailable);
        let provisioning = Provisioning::of(store, agent.id).await.map_err(unread)?;
        if provisioning.is_under_way(pass.read.now) {
            return Ok(false);
        }
        let effect = credentials.delete(&self.cx, agent);
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

    async fn prepare(&self, pass: &Pass) -> EffectResult<RevisionObservation> {
        let attached = self.attached(pass).await?;
        let context = revision_context(&self.shared.drivers, &self.cx, &pass.read, &attached)?;
        self.shared.drivers.compute.prepare_revision(&self.cx, &context).await
    }

    async fn activate(&self, pass: &Pass) -> EffectResult<RevisionObservation> {
        let attached = self.attached(pass).await?;
        let context = revision_context(&self.shared.drivers, &self.cx, &pass.read, &attached)?;
        self.shared.drivers.compute.activate_revision(&self.cx, &context).await
    }

    /// What the version may use of its credential sources: all of them that were not withdrawn, each looked at afresh.
    async fn attached(&self, pass: &Pass) -> EffectResult<Vec<Attachment>> {
        let Some(gateway) = &self.shared.drivers.credential_gateway else {
            return Ok(Vec::new());
        };
        let effect = attachments(&**gateway, &self.cx, &pass.read);
        self.traced("credential_gateway.attach", gateway.identity(), effect)
            .await
    }

    /// Asks for the end of a use, and looks whether it has come: only what the gateway shows counts.
    async fn withdraw(&self, target: &RevisionRef, source: &SourceIdentity) -> EffectResult<AttachmentCondition> {
        let gateway = self.shared.drivers.credential_gateway.as_ref();
        let gateway = gateway.ok_or(Fault::new("find the Credential Gateway", FaultKind::Missing))?;
        let effect = async {
            gateway.withdraw(&self.cx, target, source).await?;
            gateway.attachment(&self.cx, target, source).await
        };
        self.traced("credential_gateway.withdraw", gateway.identity(), effect)
            .await
    }

    async fn stop(&self, target: &RevisionRef) -> Event {
        let started = Instant::now();
        let effect = self.shared.drivers.compute.stop_revision(&self.cx, target);
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
        actor: &PrincipalId,
        principal: Option<&PrincipalId>,
    ) -> EffectResult<OperationContext> {
        if !self.shared.drivers.iam.decides_by_stored_policy() {
            return Ok(self.cx.clone());
        }
        let mut all = vec![actor.clone()];
        all.extend(principal.filter(|principal| *principal != actor).cloned());
        Ok(self.cx.clone().with_grants(self.shared.store.grants_of(&all).await?))
    }

    /// The IAM Driver decides first; only then is a vanished identity told apart, so that an outage retries instead of failing.
    async fn authorize(&self, pass: &Pass, requests: &[AccessRequest]) -> EffectResult<Authority> {
        let iam = &self.shared.drivers.iam;
        let principal = match (&pass.read.agent, pass.claim.target.revision()) {
            (Some(agent), Some(_)) => Some(&agent.agent.service_principal_id),
            _ => None,
        };
        let cx = &self.knowing_policy(&pass.claim.actor, principal).await?;
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
        match self.shared.store.commit(change).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict(Expect::ClaimHeld(_))) => {
                self.lapsed.cancel();
                Err(EffectError::UnknownOutcome)
            }
            Err(CommitError::Conflict(_)) => Ok(false),
            // The next pass reads where the pointer is.
            Err(CommitError::UnknownOutcome) => Err(EffectError::UnknownOutcome),
            Err(_) => Err(Fault::new("move the Agent's pointer", FaultKind::Unavailable).into()),
        }
    }
}

fn facts(drivers: &Drivers, read: &PassRead) -> ComputeFacts {
    let identity = drivers.compute.identity();
    let target = read.agent.as_ref().zip(read.head.as_ref());
    let revision = read.revision.as_ref().map(|row| &row.revision);
    ComputeFacts {
        identity: ComputeIdentity {
            id: identity.id.clone(),
            implementation: identity.implementation.clone(),
        },
        order: drivers.compute.activation_order(),
        exclusive: target.is_some_and(|(agent, head)| {
            drivers
                .compute
                .requires_stopped_predecessors(&revision_ref(&agent.agent, head))
        }),
        workspace_setup: drivers.compute.workspace_setup().is_some(),
        binds: drivers.compute.agent_binding().is_some(),
        harness_approved: revision.is_some_and(|revision| {
            let frozen = &revision.snapshot.harness;
            drivers
                .harness(&frozen.id)
                .is_some_and(|harness| harness.version() == frozen.version && harness.modes().contains(&frozen.mode))
        }),
        backend_configured: revision.is_none_or(|revision| {
            let frozen = revision.snapshot.backend_id.as_ref();
            frozen.is_none_or(|id| drivers.backends().iter().any(|backend| backend.id == *id))
        }),
        account_issuer: revision.is_none_or(|revision| {
            let frozen = revision.snapshot.harness_auth.account.as_ref();
            frozen.is_none_or(|binding| drivers.issues(binding))
        }),
        intact: revision.is_none_or(revision::is_intact),
        credential_gateway: drivers.gateway_id().map(str::to_owned),
        secret_driver: drivers.secret.identity().id.clone(),
        maintenance: drivers.compute.maintenance().map(Maintenance::interval),
        installation: None,
    }
}

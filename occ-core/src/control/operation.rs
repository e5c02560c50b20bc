//! One operation of one caller: its scope, its questions to the IAM Driver, and what is recorded of it.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{Answer, Caller, Conditions, ControlPlane, Credential, commit::Tries};
use crate::{
    admission::{Record, Refusal, denied},
    audit::{AuditEvent, Authorization},
    driver::{
        AccessRequest, Action, DriverKind, DriverState, EffectError, EffectResult, Fault, FaultKind, OperationContext,
        ResourceRef, StateReader, StoredRecord,
    },
    iam::Grants,
    id::NamespaceId,
    reason::ApiCode,
    resource::PrincipalId,
    store::{Change, Store},
    time::{Clock as _, SystemClock},
    work::{NewWork, Target},
};

/// How long one driver call of a request may take.
pub(super) const DRIVER_TIMEOUT: Duration = Duration::from_secs(30);

/// What an operation touches, for keys that open one Namespace only.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope {
    /// One Namespace.
    Namespace(NamespaceId),
    /// The Installation itself.
    Installation,
    /// Whatever the caller may read.
    Readable,
}

/// One operation of one caller.
pub(super) struct Operation<'a> {
    plane: &'a ControlPlane,
    caller: &'a Caller,
    name: &'static str,
    scope: Scope,
}

impl ControlPlane {
    /// `name` is the action in the audit, such as `openclaw.agents.deploy`.
    pub(super) fn operation<'a>(&'a self, caller: &'a Caller, name: &'static str, scope: Scope) -> Operation<'a> {
        Operation {
            plane: self,
            caller,
            name,
            scope,
        }
    }

    /// What a driver is given for one attempt: its own records with nothing staged, and a deadline.
    pub(super) fn context(&self) -> OperationContext {
        self.context_knowing(Vec::new(), Vec::new())
    }

    /// The same with what was read already of drivers' records and of the policy.
    pub(super) fn context_knowing(
        &self,
        records: Vec<StoredRecord>,
        policy: Vec<(PrincipalId, Grants)>,
    ) -> OperationContext {
        let reader: Arc<dyn StateReader> = Arc::clone(&self.store) as _;
        let clock = Arc::new(SystemClock);
        let deadline = clock.now().plus(DRIVER_TIMEOUT);
        OperationContext::new(clock, DriverState::new(reader).knowing(records))
            .with_deadline(deadline)
            .with_grants(policy)
    }
}

/// A driver call that changes nothing.
pub(super) async fn look<T>(call: impl Future<Output = EffectResult<T>>) -> EffectResult<T> {
    let elapsed = |_| Err(Fault::new("wait for a driver's answer", FaultKind::Timeout).into());
    timeout(DRIVER_TIMEOUT, call).await.unwrap_or_else(elapsed)
}

/// A driver call that may have changed something when it is cut off.
pub(super) async fn effect<T>(call: impl Future<Output = EffectResult<T>>) -> EffectResult<T> {
    timeout(DRIVER_TIMEOUT, call)
        .await
        .unwrap_or(Err(EffectError::UnknownOutcome))
}

impl Operation<'_> {
    /// Runs the operation inside its scope. What its refusal must leave in the audit is written before it is answered; a
    /// refusal that cannot be recorded is answered with 503 instead (spec/engine 2.3).
    pub(super) async fn answer<T>(&self, work: impl Future<Output = Answer<T>>) -> Answer<T> {
        let answer = match self.in_scope().await {
            Ok(()) => work.await,
            Err(refusal) => Err(refusal),
        };
        let Err(mut refusal) = answer else { return answer };
        if let Some(record) = refusal.take_record() {
            let event = self.identified(record.event(self.caller.principal.clone(), self.name));
            if self.plane.store.commit(Change::new().audit(event)).await.is_err() {
                return Err(Refusal::unavailable("The audit record could not be written."));
            }
        }
        Err(refusal)
    }

    async fn in_scope(&self) -> Answer<()> {
        let Some(opened) = self.caller.namespace else {
            return Ok(());
        };
        let resource = match self.scope {
            Scope::Readable => return Ok(()),
            Scope::Namespace(namespace) if namespace == opened => return Ok(()),
            Scope::Namespace(namespace) => ResourceRef::namespace(namespace),
            Scope::Installation => ResourceRef::installation(self.plane.known_installation().await?.id),
        };
        Err(Refusal::new(ApiCode::Forbidden).recorded(Record::OutOfScope(resource)))
    }

    /// Asks several questions about one state of the policy. An answer of another driver than the selected one is none.
    pub(super) async fn decide(&self, requests: Vec<AccessRequest>) -> Answer<Vec<Authorization>> {
        self.decide_in(&self.plane.context(), requests).await
    }

    /// The same, of the state of the policy that `cx` knows.
    pub(super) async fn decide_in(
        &self,
        cx: &OperationContext,
        requests: Vec<AccessRequest>,
    ) -> Answer<Vec<Authorization>> {
        let iam = &self.plane.drivers.iam;
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let decisions = look(iam.authorize_all(cx, &requests))
            .await
            .map_err(|e| Refusal::driver(DriverKind::Iam, &e))?;
        let selected = &iam.identity().id;
        if decisions.len() != requests.len() || decisions.iter().any(|decision| decision.driver_id != *selected) {
            tracing::error!("the IAM Driver answered other questions, or in another driver's name");
            return Err(Refusal::driver_away(DriverKind::Iam));
        }
        Ok(requests
            .into_iter()
            .zip(decisions)
            .map(|(request, decision)| Authorization { request, decision })
            .collect())
    }

    /// What the request asks for beside its body.
    pub(super) fn conditions(&self) -> &Conditions {
        &self.caller.conditions
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.plane.store
    }

    /// The tries of a change that this operation makes. A policy that the store keeps is looked at again in the transaction of the
    /// change: what was withdrawn before it allows nothing.
    pub(super) fn tries(&self) -> Tries<'_> {
        Tries::rechecking(self.store(), self.plane.drivers.iam.decides_by_stored_policy())
    }

    /// The answer still, for a change that comes after a call of a driver. A policy that the store does not keep is asked once more; one
    /// that it keeps is looked at in the transaction.
    pub(super) async fn still(&self, allowed: Authorization) -> Answer<Authorization> {
        if self.plane.drivers.iam.decides_by_stored_policy() {
            return Ok(allowed);
        }
        let answers = self.require_all(vec![allowed.request]).await?;
        answers.into_iter().next().ok_or(Refusal::driver_away(DriverKind::Iam))
    }

    /// Who asks.
    pub(super) fn principal(&self) -> &PrincipalId {
        &self.caller.principal
    }

    /// Work that the caller asks for.
    pub(super) fn work(&self, target: Target) -> NewWork {
        NewWork::new(target, self.caller.principal.clone()).in_trace(self.caller.trace.clone())
    }

    /// The caller's question.
    pub(super) fn ask(&self, action: Action, resource: ResourceRef) -> AccessRequest {
        AccessRequest {
            principal: self.caller.principal.clone(),
            action,
            resource,
        }
    }

    /// The caller's grants, all of them; 403 for the first that is denied.
    pub(super) async fn require_all(&self, requests: Vec<AccessRequest>) -> Answer<Vec<Authorization>> {
        self.require_all_in(&self.plane.context(), requests).await
    }

    /// The same, of the state of the policy that `cx` knows.
    pub(super) async fn require_all_in(
        &self,
        cx: &OperationContext,
        requests: Vec<AccessRequest>,
    ) -> Answer<Vec<Authorization>> {
        let answers = self.decide_in(cx, requests).await?;
        match answers.iter().find(|answer| !answer.decision.allowed) {
            Some(answer) => Err(denied(answer.clone())),
            None => Ok(answers),
        }
    }

    /// The caller's grant.
    pub(super) async fn require(&self, action: Action, resource: ResourceRef) -> Answer<Authorization> {
        let answers = self.require_all(vec![self.ask(action, resource)]).await?;
        answers.into_iter().next().ok_or(Refusal::driver_away(DriverKind::Iam))
    }

    /// The items that the caller may read; the whole list fails when the IAM Driver does (spec/engine 19.6).
    pub(super) async fn readable<T>(&self, items: Vec<T>, resource: impl Fn(&T) -> ResourceRef) -> Answer<Vec<T>> {
        let requests = items
            .iter()
            .map(|item| self.ask(Action::Read, resource(item)))
            .collect();
        let answers = self.decide(requests).await?;
        Ok(items
            .into_iter()
            .zip(answers)
            .filter_map(|(item, a)| a.decision.allowed.then_some(item))
            .collect())
    }

    /// The record of a success.
    pub(super) fn event(&self, resource: ResourceRef, allowed_by: &Authorization) -> AuditEvent {
        let mut event = AuditEvent::mutation(self.caller.principal.clone(), self.name, resource);
        event.authorization = Some(allowed_by.clone());
        self.identified(event)
    }

    fn identified(&self, mut event: AuditEvent) -> AuditEvent {
        event.request_id = Some(self.caller.request);
        match self.caller.credential {
            Credential::Key(key) => event.with("serviceKeyId", key.to_string()),
            Credential::Session(session) => event.with("sessionId", session.to_string()),
            Credential::AgentToken(token) => event.with("agentTokenId", token.to_string()),
            Credential::Embedder => event,
        }
    }
}

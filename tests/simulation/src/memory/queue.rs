//! Claims, what becomes of them, and what is recovered.

use std::time::Duration;

use occ_core::{
    audit::{AuditEvent, AuditOutcome},
    id::{AgentId, NamespaceId, RevisionId},
    randomness,
    reason::{Failure, Pending},
    resource::NamespaceStatus,
    store::{CommitError, Expect, QueueDepth, Wait},
    time::Timestamp,
    work::{Claim, ClaimToken, FailureData, LastAttempt, Lease, Lost, NewWork, Target, Transition},
};

use super::data::{Data, State, Work};

/// How many lapsed, and how many spent, one recovery handles.
const BATCH: usize = 100;
/// How long after an exhausted pass over the selected version the next begins.
const MAINTENANCE_PAUSE: Duration = Duration::from_mins(5);

impl Data {
    pub(super) fn enqueue(&mut self, now: Timestamp, delay: Duration, work: &NewWork) -> Result<(), CommitError> {
        let key = work.target.key();
        if !self.namespaces.contains_key(&work.target.namespace()) {
            return Err(CommitError::Refused);
        }
        match self.work.get(&key) {
            Some(found) if found.actor != work.actor => {
                Err(CommitError::Conflict(Expect::WorkActor(key, work.actor.clone())))
            }
            Some(_) => Ok(()),
            None => {
                self.queue(now, now.plus(delay), work);
                Ok(())
            }
        }
    }

    fn queue(&mut self, now: Timestamp, available_at: Timestamp, work: &NewWork) {
        self.work.write().entry(work.target.key()).or_insert_with(|| Work {
            target: work.target,
            actor: work.actor.clone(),
            state: State::Queued,
            available_at,
            attempts: 0,
            extra_attempts: 0,
            last_attempt: None,
            created_at: now,
            trace: work.trace.clone(),
        });
    }

    pub(super) fn requeue(&mut self, now: Timestamp, again: &NewWork) -> Result<(), CommitError> {
        let key = again.target.key();
        let repeatable = matches!(
            again.target,
            Target::NamespaceReady { .. } | Target::NamespaceDeleted { .. } | Target::AgentDeleted { .. }
        );
        match self.work.write().get_mut(&key) {
            Some(work) if repeatable && matches!(work.state, State::Failed(..)) => {
                *work = Work {
                    actor: again.actor.clone(),
                    state: State::Queued,
                    available_at: now,
                    attempts: 0,
                    extra_attempts: 0,
                    last_attempt: None,
                    trace: again.trace.clone(),
                    ..work.clone()
                };
                Ok(())
            }
            _ => Err(CommitError::Conflict(Expect::WorkFailed(key))),
        }
    }

    pub(super) fn claim(&mut self, now: Timestamp, limit: usize, lease: Lease) -> Vec<Claim> {
        let mut busy = self.busy();
        let mut due: Vec<_> = self
            .work
            .iter()
            .filter(|(_, work)| {
                work.state == State::Queued && work.available_at <= now && work.counted() < lease.max_attempts
            })
            .map(|(key, work)| (work.available_at, work.created_at, key.clone()))
            .collect();
        due.sort_unstable();
        let mut claims = Vec::new();
        for (_, _, key) in due {
            let free = self.work.get(&key).is_some_and(|work| busy.insert(work.target.lane()));
            if claims.len() == limit || !free {
                continue;
            }
            if let Some(work) = self.work.write().get_mut(&key) {
                let token = ClaimToken(randomness::uuid());
                work.attempts += 1;
                work.state = State::Claimed {
                    token,
                    until: now.plus(lease.duration),
                };
                claims.push(work.claim(token, now));
            }
        }
        claims
    }

    pub(super) fn renew(&mut self, now: Timestamp, token: ClaimToken, lease: Lease) -> bool {
        let Some(key) = self.held(token, now).map(|work| work.target.key()) else {
            return false;
        };
        if let Some(work) = self.work.write().get_mut(&key) {
            work.state = State::Claimed {
                token,
                until: now.plus(lease.duration),
            };
        }
        true
    }

    pub(super) fn postpone(&mut self, now: Timestamp, wait: &Wait) -> bool {
        let holds = self
            .agents
            .get(&wait.agent)
            .is_some_and(|row| row.version == wait.version);
        match self.work.write().get_mut(&wait.key) {
            Some(work) if work.state == State::Queued && work.target.agent() == Some(wait.agent) => {
                if let Some(moment) = wait.placed(now, work.available_at, holds) {
                    work.available_at = moment;
                }
                holds
            }
            _ => false,
        }
    }

    pub(super) fn next_due(&self, now: Timestamp) -> Option<Duration> {
        let busy = self.busy();
        let next = self.work.values().filter_map(|work| match work.state {
            State::Queued if !busy.contains(&work.target.lane()) => Some(work.available_at.since(now)),
            State::Claimed { until, .. } => Some(until.since(now)),
            _ => None,
        });
        next.min()
    }

    pub(super) fn depth(&self, now: Timestamp) -> QueueDepth {
        let live = |state: fn(&State) -> bool| self.work.values().filter(move |work| state(&work.state));
        let queued = |state: &State| matches!(state, State::Queued);
        QueueDepth {
            queued: live(queued).count() as u64,
            claimed: live(|state| matches!(state, State::Claimed { .. })).count() as u64,
            overdue: live(queued)
                .map(|work| now.since(work.available_at))
                .max()
                .unwrap_or_default(),
        }
    }

    pub(super) fn settle(
        &mut self,
        now: Timestamp,
        token: ClaimToken,
        transition: &Transition,
    ) -> Result<AuditEvents, CommitError> {
        let held = self.held(token, now).cloned();
        let work = held.ok_or(CommitError::Conflict(Expect::ClaimHeld(token)))?;
        Ok(match transition {
            Transition::Complete { code, warnings } => {
                let ended = State::Succeeded(*code, warnings.clone(), now);
                Some(self.end(&work, ended, code.code(), AuditOutcome::Success))
            }
            Transition::Fail { failure, data } => Some(self.fail(now, &work, *failure, data.clone())),
            Transition::Defer {
                reason,
                delay,
                refusal,
                failed_stops,
                repeat_evidence,
            } => {
                let attempt = LastAttempt {
                    code: *reason,
                    at: now,
                    refusal: *refusal,
                    failed_stops: *failed_stops,
                };
                let waiting = Work {
                    attempts: work.attempts.saturating_sub(1),
                    available_at: now.plus(*delay),
                    ..work
                };
                self.wait(waiting, attempt, *repeat_evidence)
            }
            Transition::Retry { reason, delay } => {
                let attempt = again(&work, *reason, now);
                let waiting = Work {
                    available_at: now.plus(*delay),
                    ..work
                };
                self.wait(waiting, attempt, true)
            }
        })
    }

    /// Queues work again. The same as before is recorded once, unless `repeat`.
    fn wait(&mut self, work: Work, attempt: LastAttempt, repeat: bool) -> AuditEvents {
        let before = work.last_attempt;
        let news = repeat || before.is_none_or(|before| !attempt.repeats(&before));
        let at = before.filter(|_| !news).map_or(attempt.at, |before| before.at);
        let events = news.then(|| {
            let event = evidence(&work, attempt.code.code(), AuditOutcome::Failure);
            match attempt.refusal {
                Some(refusal) => event.with("refusal", refusal.code()),
                None => event,
            }
        });
        let work = Work {
            state: State::Queued,
            last_attempt: Some(LastAttempt { at, ..attempt }),
            ..work
        };
        self.work.write().insert(work.target.key(), work);
        events
    }

    fn end(&mut self, work: &Work, state: State, code: &str, outcome: AuditOutcome) -> AuditEvent {
        let ended = Work { state, ..work.clone() };
        self.work.write().insert(work.target.key(), ended);
        evidence(work, code, outcome).with("final", true)
    }

    fn fail(&mut self, now: Timestamp, work: &Work, failure: Failure, data: FailureData) -> AuditEvent {
        let state = State::Failed(failure, data, now);
        self.end(work, state, failure.code(), AuditOutcome::Failure)
    }

    /// Takes back what was lost, and ends what has spent its attempts. Returns how many, and what is recorded of it.
    pub(super) fn recover(&mut self, now: Timestamp, lease: Lease) -> (usize, Vec<AuditEvent>) {
        let mut lapsed: Vec<_> = self
            .work
            .values()
            .filter_map(|work| match work.state {
                State::Claimed { until, .. } if until <= now => Some((until, work.clone())),
                _ => None,
            })
            .collect();
        lapsed.sort_by_key(|(until, _)| *until);
        let mut events = Vec::new();
        let mut count = 0;
        for (_, work) in lapsed.into_iter().take(BATCH) {
            events.extend(self.lost(now, lease, work));
            count += 1;
        }
        let spent = |work: &&Work| work.state == State::Queued && work.counted() >= lease.max_attempts;
        let spent: Vec<_> = self.work.values().filter(spent).take(BATCH).cloned().collect();
        for work in spent {
            events.push(self.give_up(now, &work, Failure::MaxAttemptsExhausted));
            count += 1;
        }
        (count, events)
    }

    fn lost(&mut self, now: Timestamp, lease: Lease, work: Work) -> AuditEvents {
        let lost = Lost {
            attempts: work.attempts,
            extra_attempts: work.extra_attempts,
            refused: work.last_attempt.is_some_and(|last| last.refusal.is_some()),
            published: self.published(&work.target) && matches!(work.target, Target::Revision { .. }),
        };
        match lost.recover(lease.max_attempts, randomness::unit()) {
            Err(failure) => Some(self.give_up(now, &work, failure)),
            Ok(recovered) => {
                let attempt = again(&work, recovered.code, now);
                let waiting = Work {
                    attempts: recovered.attempts,
                    extra_attempts: recovered.extra_attempts,
                    available_at: now.plus(recovered.delay),
                    ..work
                };
                self.wait(waiting, attempt, true)
            }
        }
    }

    /// Ends work that nobody finished, with what depends on it.
    fn give_up(&mut self, now: Timestamp, work: &Work, failure: Failure) -> AuditEvent {
        let event = self.fail(now, work, failure, FailureData::default());
        match work.target {
            Target::NamespaceReady { namespace } => {
                if let Some(named) = self.namespaces.write().get_mut(&namespace)
                    && named.row.namespace.status == NamespaceStatus::Provisioning
                {
                    named.row.namespace.status = NamespaceStatus::Failed;
                    named.row.version += 1;
                }
            }
            Target::Maintenance {
                namespace,
                agent,
                revision,
                bucket,
            } if self.published(&work.target) => self.look_after(now, work, (namespace, agent, revision, bucket + 1)),
            Target::Revision {
                namespace,
                agent,
                revision,
            } if self.published(&work.target) => self.look_after(now, work, (namespace, agent, revision, 0)),
            _ => {}
        }
        event
    }
}

impl Data {
    /// A selected version is looked after as long as it is selected.
    fn look_after(
        &mut self,
        now: Timestamp,
        work: &Work,
        (namespace, agent, revision, bucket): (NamespaceId, AgentId, RevisionId, u64),
    ) {
        let target = Target::Maintenance {
            namespace,
            agent,
            revision,
            bucket,
        };
        let actor = work.actor.clone();
        self.queue(now, now.plus(MAINTENANCE_PAUSE), &NewWork::new(target, actor));
    }
}

/// At most one event.
type AuditEvents = Option<AuditEvent>;

/// A new reason; a refusal that waits for its stop stays.
fn again(work: &Work, code: Pending, at: Timestamp) -> LastAttempt {
    LastAttempt {
        code,
        at,
        refusal: work.last_attempt.and_then(|last| last.refusal),
        failed_stops: work.last_attempt.map_or(0, |last| last.failed_stops),
    }
}

fn evidence(work: &Work, code: &str, outcome: AuditOutcome) -> AuditEvent {
    let event = AuditEvent::mutation(work.actor.clone(), "reconcile", work.target.resource())
        .because(code)
        .with("reasonCode", code)
        .with("attemptCount", work.attempts)
        .with("workId", work.target.key());
    AuditEvent { outcome, ..event }
}

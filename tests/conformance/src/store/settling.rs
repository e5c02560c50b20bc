//! What becomes of claimed work, under its token (spec/engine 4).

use std::{sync::Arc, time::Duration};

use occ_core::{
    reason::{Failure, Pending, Success},
    resource::Agent,
    store::{Change, CommitError, Expect, WorkState, Write},
    work::{Claim, FailureData, LastAttempt, NewWork, Target, Transition},
};

use super::{
    Subject,
    world::{LONG, SHORT, World, complete, defer, principal, trace, until},
};

async fn world_with_work(subject: Arc<dyn Subject>) -> (World, Agent, Target) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let revision = world.deploy(&agent).await;
    let target = world.deployment(&revision);
    (world, agent, target)
}

const fn retry() -> Transition {
    Transition::Retry {
        reason: Pending::DependencyUnavailable,
        delay: Duration::ZERO,
    }
}

fn fail(failure: Failure) -> Transition {
    Transition::Fail {
        failure,
        data: FailureData::default(),
    }
}

async fn last_attempt(world: &World, target: &Target) -> Option<LastAttempt> {
    match world.state(target).await {
        WorkState::Queued { last_attempt, .. } | WorkState::Running { last_attempt } => last_attempt,
        other => panic!("it is not over: {other:?}"),
    }
}

pub(super) async fn a_deferral_gives_the_attempt_back(subject: Arc<dyn Subject>) {
    let (world, _, _) = world_with_work(subject).await;
    for _ in 0..7 {
        let claim = world.claim(LONG).await;
        assert_eq!(claim.attempt, 1);
        world.settle(&claim, defer(Pending::RevisionIncomplete)).await;
    }
    assert_eq!(world.store.recover(LONG).await, Ok(0));
}

pub(super) async fn a_retry_spends_the_attempt(subject: Arc<dyn Subject>) {
    let (world, _, _) = world_with_work(subject).await;
    for attempt in 1..=LONG.max_attempts {
        let claim = world.claim(LONG).await;
        assert_eq!(claim.attempt, attempt);
        // A wait in between changes nothing of what was spent.
        world.settle(&claim, defer(Pending::RevisionIncomplete)).await;
        let claim = world.claim(LONG).await;
        assert_eq!(claim.attempt, attempt);
        world.settle(&claim, retry()).await;
    }
    assert_eq!(world.store.claim(16, LONG).await, Ok(vec![]));
}

pub(super) async fn the_same_deferral_is_recorded_once(subject: Arc<dyn Subject>) {
    let (world, _, target) = world_with_work(subject).await;
    world
        .settle(&world.claim(LONG).await, defer(Pending::RevisionIncomplete))
        .await;
    let first = last_attempt(&world, &target).await.expect("it was recorded");
    until("the next millisecond", async || {
        (world.now().await > first.at).then_some(())
    })
    .await;
    for _ in 0..3 {
        world
            .settle(&world.claim(LONG).await, defer(Pending::RevisionIncomplete))
            .await;
        assert_eq!(last_attempt(&world, &target).await, Some(first));
    }
    assert_eq!(world.evidence(&target).await.len(), 1);
    // Another reason is news, and so is the first one after it.
    world
        .settle(&world.claim(LONG).await, defer(Pending::RevisionUnschedulable))
        .await;
    let second = last_attempt(&world, &target).await.expect("it was recorded");
    assert!(second.code == Pending::RevisionUnschedulable && second.at > first.at);
    let claim = world.claim(LONG).await;
    assert_eq!(claim.last_attempt, Some(second));
    world.settle(&claim, defer(Pending::RevisionIncomplete)).await;
    let codes: Vec<_> = world
        .evidence(&target)
        .await
        .into_iter()
        .filter_map(|event| event.reason_code)
        .collect();
    assert_eq!(
        codes,
        ["REVISION_INCOMPLETE", "REVISION_UNSCHEDULABLE", "REVISION_INCOMPLETE"]
    );
}

fn refused_stop(failed_stops: u32) -> Transition {
    Transition::Defer {
        reason: Pending::RefusedCandidateStopPending,
        delay: Duration::ZERO,
        refusal: Some(Failure::AuthorizationDenied),
        failed_stops,
        repeat_evidence: true,
    }
}

pub(super) async fn a_repeated_refused_stop_is_recorded_each_time(subject: Arc<dyn Subject>) {
    let (world, _, target) = world_with_work(subject).await;
    let mut before = None;
    for failed_stops in 1..=3 {
        world.settle(&world.claim(LONG).await, refused_stop(failed_stops)).await;
        let last = last_attempt(&world, &target).await.expect("it was recorded");
        assert_eq!(
            (last.refusal, last.failed_stops),
            (Some(Failure::AuthorizationDenied), failed_stops)
        );
        assert!(before.is_none_or(|before| last.at > before));
        before = Some(last.at);
        until("the next millisecond", async || {
            (world.now().await > last.at).then_some(())
        })
        .await;
    }
    let evidence = world.evidence(&target).await;
    assert_eq!(evidence.len(), 3);
    assert!(
        evidence
            .iter()
            .all(|event| event.details["refusal"] == "AUTHORIZATION_DENIED")
    );
}

/// A pass that fails before it can judge the refusal must not lose it: the candidate would run on unrefused.
pub(super) async fn a_retry_keeps_a_waiting_refusal(subject: Arc<dyn Subject>) {
    let (world, _, target) = world_with_work(subject).await;
    world.settle(&world.claim(LONG).await, refused_stop(2)).await;
    let first = last_attempt(&world, &target).await.expect("it was recorded");
    until("the next millisecond", async || {
        (world.now().await > first.at).then_some(())
    })
    .await;
    world.settle(&world.claim(LONG).await, retry()).await;
    let last = last_attempt(&world, &target).await.expect("it was recorded");
    assert!(last.at > first.at, "it says when it was tried last");
    assert_eq!(
        (last.code, last.refusal),
        (Pending::DependencyUnavailable, Some(Failure::AuthorizationDenied))
    );
    assert_eq!(last.failed_stops, 2);
    // A deferral says itself whether a refusal waits; a lifted one is gone.
    world
        .settle(&world.claim(LONG).await, defer(Pending::RevisionIncomplete))
        .await;
    assert_eq!(
        last_attempt(&world, &target).await.expect("it was recorded").refusal,
        None
    );
}

pub(super) async fn every_settlement_is_evidence(subject: Arc<dyn Subject>) {
    let (world, agent, target) = world_with_work(subject).await;
    world
        .settle(&world.claim(LONG).await, defer(Pending::RevisionIncomplete))
        .await;
    world.settle(&world.claim(LONG).await, retry()).await;
    world.settle(&world.claim(LONG).await, retry()).await;
    world
        .settle(&world.claim(LONG).await, fail(Failure::DependencyUnavailable))
        .await;
    let evidence = world.evidence(&target).await;
    let read: Vec<_> = evidence
        .iter()
        .map(|event| {
            let details = &event.details;
            assert_eq!(details["reasonCode"].as_str(), event.reason_code.as_deref());
            (
                event.outcome.as_str(),
                details["reasonCode"].as_str(),
                details["attemptCount"].as_u64(),
                details.get("final"),
            )
        })
        .map(|(outcome, code, attempts, last)| (outcome, code.unwrap_or(""), attempts.unwrap_or(99), last.is_some()))
        .collect();
    assert_eq!(
        read,
        [
            ("failure", "REVISION_INCOMPLETE", 0, false),
            ("failure", "DEPENDENCY_UNAVAILABLE", 1, false),
            ("failure", "DEPENDENCY_UNAVAILABLE", 2, false),
            ("failure", "DEPENDENCY_UNAVAILABLE", 3, true),
        ]
    );
    let target = world.deployment(&world.deploy(&agent).await);
    world
        .settle(&world.claim(LONG).await, complete(Success::RevisionActivated))
        .await;
    let [done] = &world.evidence(&target).await[..] else {
        panic!("one event")
    };
    assert_eq!(
        (done.outcome.as_str(), done.details["final"].as_bool()),
        ("success", Some(true))
    );
}

/// What a publication would have written, with a claim that no longer holds.
async fn assert_stale(world: &World, claim: &Claim, agent: &Agent) {
    let events = world.audit().await.len();
    let revision = claim.target.revision();
    let change = Change::new()
        .write(Write::ActiveRevision(agent.id, revision))
        .write(Write::Settle(claim.token, complete(Success::RevisionActivated)))
        .audit(world.event("openclaw.agents.lifecycle.activate"));
    let lost = CommitError::Conflict(Expect::ClaimHeld(claim.token));
    assert_eq!(world.refused(change.clone()).await, lost);
    assert_eq!(world.refused(change.expect(Expect::ClaimHeld(claim.token))).await, lost);
    let waits = Write::Settle(claim.token, defer(Pending::RevisionIncomplete));
    assert_eq!(world.refused(Change::new().write(waits)).await, lost);
    // A pass moves the pointer before it settles: the expectation alone must hold it back.
    let moves = Change::new()
        .expect(Expect::ClaimHeld(claim.token))
        .write(Write::ActiveRevision(agent.id, revision));
    assert_eq!(world.refused(moves).await, lost);
    assert_eq!(
        world.read_agent(agent.id).await.expect("the Agent").active_revision_id,
        None
    );
    assert_eq!(world.audit().await.len(), events);
}

pub(super) async fn a_stale_token_publishes_nothing(subject: Arc<dyn Subject>) {
    let (world, agent, target) = world_with_work(subject).await;
    let stale = world.claim(SHORT).await;
    let end = stale.claimed_at.plus(SHORT.duration);
    until("the end of the lease", async || (world.now().await > end).then_some(())).await;
    // Lapsed, taken back, claimed by another, settled by another: stale each time.
    assert_stale(&world, &stale, &agent).await;
    world.recovered(LONG).await;
    assert_stale(&world, &stale, &agent).await;
    let fresh = world.claim(LONG).await;
    assert_eq!((fresh.target, fresh.attempt), (target, 2));
    assert_stale(&world, &stale, &agent).await;
    world.settle(&fresh, complete(Success::RevisionSuperseded)).await;
    assert_stale(&world, &stale, &agent).await;
    assert!(matches!(
        world.state(&target).await,
        WorkState::Succeeded {
            code: Success::RevisionSuperseded,
            ..
        }
    ));
}

pub(super) async fn a_settled_claim_is_over(subject: Arc<dyn Subject>) {
    let (world, agent, _) = world_with_work(subject).await;
    let claim = world.claim(LONG).await;
    world.settle(&claim, defer(Pending::RevisionIncomplete)).await;
    assert_stale(&world, &claim, &agent).await;
    // Nor twice in one change.
    let claim = world.claim(LONG).await;
    let change = Change::new()
        .write(Write::Settle(claim.token, retry()))
        .write(Write::Settle(claim.token, complete(Success::RevisionActivated)));
    assert_eq!(
        world.refused(change).await,
        CommitError::Conflict(Expect::ClaimHeld(claim.token))
    );
    world.settle(&claim, complete(Success::RevisionActivated)).await;
}

pub(super) async fn a_result_is_never_rewritten(subject: Arc<dyn Subject>) {
    let (world, _, target) = world_with_work(subject).await;
    let claim = world.claim(LONG).await;
    world.settle(&claim, fail(Failure::RuntimeStartupFailed)).await;
    let ended = world.state(&target).await;
    let again = world.work(target);
    let change = Change::new().write(Write::Requeue(again));
    assert_eq!(
        world.refused(change).await,
        CommitError::Conflict(Expect::WorkFailed(target.key()))
    );
    assert_eq!(world.state(&target).await, ended);
    assert_eq!(
        (world.store.claim(16, LONG).await, world.store.recover(SHORT).await),
        (Ok(vec![]), Ok(0))
    );
}

pub(super) async fn a_failed_deletion_is_repeated_with_fresh_attempts(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let target = world.delete(agent.id).await;
    let other = NewWork::new(target, principal("prn_other")).in_trace(Some(trace()));
    let requeue = Change::new().write(Write::Requeue(other.clone()));
    let unfailed = CommitError::Conflict(Expect::WorkFailed(target.key()));
    assert_eq!(world.refused(requeue.clone()).await, unfailed);
    let claim = world.claim(LONG).await;
    assert_eq!(world.refused(requeue.clone()).await, unfailed);
    world.settle(&claim, retry()).await;
    let claim = world.claim(LONG).await;
    world.settle(&claim, fail(Failure::DependencyUnavailable)).await;
    world.commit(requeue.clone()).await;
    assert_eq!(world.refused(requeue).await, unfailed);
    let again = world.claim(LONG).await;
    assert_eq!((again.attempt, again.actor, again.last_attempt), (1, other.actor, None));
    assert_eq!(again.trace, other.trace, "it is in the trace of who repeats it");
    assert_eq!(
        again.created_at, claim.created_at,
        "the deadline of the first request still applies"
    );
}

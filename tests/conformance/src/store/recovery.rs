//! What is taken back from lost workers (spec/engine 4 and 15).

use std::{sync::Arc, time::Duration};

use occ_core::{
    reason::{Failure, Pending, Success},
    resource::{AgentRevision, DesiredRuntimeState, Namespace, NamespaceStatus},
    store::{WorkState, Write},
    work::{LastAttempt, Lease, Target, Transition},
};

use super::{
    Subject,
    world::{LONG, SHORT, World, complete, namespace, until},
};

/// A short lease with two attempts: the waits between attempts stay short.
const TWICE: Lease = Lease {
    max_attempts: 2,
    ..SHORT
};

fn queued(state: WorkState) -> LastAttempt {
    match state {
        WorkState::Queued {
            last_attempt: Some(last),
            ..
        } => last,
        other => panic!("it is queued again, and says why: {other:?}"),
    }
}

fn failed(state: WorkState) -> Failure {
    match state {
        WorkState::Failed { failure, .. } => failure,
        other => panic!("it failed: {other:?}"),
    }
}

/// The work that looks after a version once its deployment is over.
fn first_look(world: &World, revision: &AgentRevision) -> Target {
    Target::Maintenance {
        namespace: world.namespace,
        agent: revision.agent_id,
        revision: revision.id,
        bucket: 0,
    }
}

/// Loses every attempt that the work has.
async fn lose_all(world: &World, lease: Lease) {
    for _ in 0..lease.max_attempts {
        world.claim(lease).await;
        assert_eq!(world.recovered(lease).await, 1);
    }
}

pub(super) async fn nothing_lapsed_is_nothing_recovered(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    assert_eq!(world.store.recover(SHORT).await, Ok(0));
    let agent = world.agent("triage").await;
    world.deploy(&agent).await;
    let claim = world.claim(LONG).await;
    assert_eq!(world.store.recover(SHORT).await, Ok(0));
    world.settle(&claim, complete(Success::RevisionActivated)).await;
    assert_eq!(world.store.recover(SHORT).await, Ok(0));
}

pub(super) async fn a_lost_claim_is_queued_again_with_its_attempt_spent(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let target = world.deployment(&world.deploy(&agent).await);
    let taken_back = world.lose().await;
    let last = queued(world.state(&target).await);
    assert_eq!((last.code, last.refusal), (Pending::LeaseExpired, None));
    let again = world.claim(LONG).await;
    assert_eq!((again.attempt, again.last_attempt), (2, Some(last)));
    assert_ne!(again.token, taken_back.token);
    let [event] = &world.evidence(&target).await[..] else {
        panic!("one event")
    };
    assert_eq!(event.reason_code.as_deref(), Some("LEASE_EXPIRED"));
}

/// Within a lease and a second all claims of a lost worker are claimed again (issue 4): the rows say when they are due.
pub(super) async fn a_lost_claim_is_due_again_within_half_a_second(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let target = world.deployment(&world.deploy(&agent).await);
    for spent in 1..LONG.max_attempts {
        assert_eq!(world.claim(SHORT).await.attempt, spent);
        assert_eq!(world.recovered(SHORT).await, 1);
        let WorkState::Queued { available_at, .. } = world.state(&target).await else {
            panic!("it is queued again")
        };
        let wait = available_at.since(world.now().await);
        assert!(wait <= Duration::from_millis(500), "{wait:?} after {spent} attempts");
    }
}

pub(super) async fn the_last_attempt_lost_ends_the_work(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let revision = world.deploy(&agent).await;
    let target = world.deployment(&revision);
    lose_all(&world, TWICE).await;
    assert_eq!(failed(world.state(&target).await), Failure::LeaseExpired);
    // It was never selected: nothing of it is looked after.
    assert_eq!(
        world.store.work_state(&first_look(&world, &revision).key()).await,
        Ok(None)
    );
    let last = world.evidence(&target).await.pop().expect("evidence");
    assert_eq!(
        (last.details["final"].as_bool(), last.details["attemptCount"].as_u64()),
        (Some(true), Some(2))
    );
}

pub(super) async fn a_published_version_gets_exactly_one_more_attempt(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let revision = world.deploy(&agent).await;
    let target = world.deployment(&revision);
    world.select(&revision).await;
    lose_all(&world, TWICE).await;
    assert_eq!(queued(world.state(&target).await).code, Pending::ActiveRevisionRecovery);
    assert_eq!(world.store.recover(TWICE).await, Ok(0), "what was granted is not spent");
    // Waits give the extra attempt back like any other.
    let claim = world
        .claim(Lease {
            max_attempts: 2,
            ..LONG
        })
        .await;
    assert_eq!(claim.attempt, 3);
    world
        .settle(&claim, super::world::defer(Pending::RevisionFinalizationIncomplete))
        .await;
    assert_eq!(world.claim(TWICE).await.attempt, 3);
    world.recovered(TWICE).await;
    assert_eq!(failed(world.state(&target).await), Failure::LeaseExpired);
    // The version stays selected: its workload is the one that serves, and it is looked after.
    let look = first_look(&world, &revision);
    assert!(matches!(world.state(&look).await, WorkState::Queued { .. }));
    assert_eq!(
        world.read_agent(agent.id).await.expect("the Agent").active_revision_id,
        Some(revision.id)
    );

    // A stopped Agent's version is not finished.
    let stopped = world.agent("stopped").await;
    let revision = world.deploy(&stopped).await;
    world.select(&revision).await;
    let mut draft = world.read_agent(stopped.id).await.expect("the Agent");
    draft.desired_runtime_state = DesiredRuntimeState::Stopped;
    world.write(Write::UpdateAgent(draft)).await;
    lose_all(&world, TWICE).await;
    assert_eq!(
        failed(world.state(&world.deployment(&revision)).await),
        Failure::LeaseExpired
    );
    assert_eq!(
        world.store.work_state(&first_look(&world, &revision).key()).await,
        Ok(None)
    );

    // Nor is one in a Namespace that is not ready.
    let confined = world.agent("confined").await;
    let revision = world.deploy(&confined).await;
    world.select(&revision).await;
    let failed_namespace = Write::NamespaceStatus {
        id: world.namespace,
        status: NamespaceStatus::Failed,
        deletion_actor: None,
    };
    world.write(failed_namespace).await;
    lose_all(&world, TWICE).await;
    assert_eq!(
        failed(world.state(&world.deployment(&revision)).await),
        Failure::LeaseExpired
    );
    assert_eq!(
        world.store.work_state(&first_look(&world, &revision).key()).await,
        Ok(None)
    );
}

pub(super) async fn a_live_claim_is_left_alone_beside_one_that_lapsed(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    for name in ["lives", "lapses"] {
        let agent = world.agent(name).await;
        world.deploy(&agent).await;
    }
    let minute = Lease {
        duration: Duration::from_mins(1),
        ..LONG
    };
    let claim = async |lease| world.store.claim(1, lease).await.expect("a claim").remove(0);
    let live = claim(minute).await;
    let lapsed = claim(SHORT).await;
    assert_eq!(world.recovered(LONG).await, 1);
    assert_eq!(world.store.renew(lapsed.token, minute).await, Ok(false));
    assert_eq!(world.store.renew(live.token, minute).await, Ok(true));
}

pub(super) async fn a_refused_candidates_stop_costs_no_attempt(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let target = world.deployment(&world.deploy(&agent).await);
    let claim = world.claim(LONG).await;
    let wait = Transition::Defer {
        reason: Pending::RefusedCandidateStopPending,
        delay: Duration::ZERO,
        refusal: Some(Failure::AuthorizationDenied),
        failed_stops: 3,
        repeat_evidence: true,
    };
    world.settle(&claim, wait).await;
    let mut before = queued(world.state(&target).await).at;
    // More restarts than there are attempts.
    for _ in 0..4 {
        assert_eq!(world.claim(TWICE).await.attempt, 1);
        assert_eq!(world.recovered(TWICE).await, 1);
        let last = queued(world.state(&target).await);
        assert_eq!(
            (last.code, last.refusal),
            (Pending::LeaseExpired, Some(Failure::AuthorizationDenied))
        );
        assert_eq!(last.failed_stops, 3);
        assert!(last.at > before, "it says when it was lost last");
        before = last.at;
    }
}

pub(super) async fn spent_queued_work_ends(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let target = world.deployment(&world.deploy(&agent).await);
    let claim = world.claim(LONG).await;
    let hour = Duration::from_hours(1);
    world
        .settle(
            &claim,
            Transition::Retry {
                reason: Pending::DependencyUnavailable,
                delay: hour,
            },
        )
        .await;
    assert_eq!(world.store.recover(LONG).await, Ok(0));
    // The limit was lowered meanwhile: nobody would ever claim it, so it does not wait for its hour either.
    assert_eq!(
        world
            .store
            .recover(Lease {
                max_attempts: 1,
                ..LONG
            })
            .await,
        Ok(1)
    );
    assert_eq!(failed(world.state(&target).await), Failure::MaxAttemptsExhausted);
}

pub(super) async fn a_namespace_fails_with_the_work_that_provides_it(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let provisioning = Namespace {
        status: NamespaceStatus::Provisioning,
        ..namespace("new", world.now().await)
    };
    let target = Target::NamespaceReady {
        namespace: provisioning.id,
    };
    world.write(Write::Namespace(provisioning.clone())).await;
    world.write(Write::Enqueue(world.work(target))).await;
    let status = async || {
        let row = world
            .store
            .namespace(provisioning.id)
            .await
            .expect("a read")
            .expect("the Namespace");
        (row.namespace.status, row.version)
    };
    world.claim(TWICE).await;
    world.recovered(TWICE).await;
    assert_eq!(status().await, (NamespaceStatus::Provisioning, 1));
    world.claim(TWICE).await;
    world.recovered(TWICE).await;
    assert_eq!(status().await, (NamespaceStatus::Failed, 2));
    assert_eq!(failed(world.state(&target).await), Failure::LeaseExpired);

    // A Namespace that became ready is not touched by the end of work that came too late.
    let target = Target::NamespaceReady {
        namespace: world.namespace,
    };
    world.write(Write::Enqueue(world.work(target))).await;
    lose_all(&world, TWICE).await;
    let row = world
        .store
        .namespace(world.namespace)
        .await
        .expect("a read")
        .expect("the Namespace");
    assert_eq!(row.namespace.status, NamespaceStatus::Ready);
}

pub(super) async fn exhausted_maintenance_of_the_selected_version_goes_on(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let revision = world.deploy(&agent).await;
    let claim = world.claim(LONG).await;
    world.select(&revision).await;
    world.settle(&claim, complete(Success::RevisionActivated)).await;
    let bucket = |bucket| Target::Maintenance {
        namespace: world.namespace,
        agent: agent.id,
        revision: revision.id,
        bucket,
    };
    world.write(Write::Enqueue(world.work(bucket(7)))).await;
    lose_all(&world, TWICE).await;
    assert_eq!(failed(world.state(&bucket(7)).await), Failure::LeaseExpired);
    let WorkState::Queued {
        available_at,
        last_attempt: None,
    } = world.state(&bucket(8)).await
    else {
        panic!("the next bucket is queued")
    };
    assert!(available_at > world.now().await, "it waits before it begins");

    // Of a version that is not selected any more, nothing is looked after.
    let other = world.agent("other").await;
    let revision = world.deploy(&other).await;
    world
        .settle(&world.claim(LONG).await, complete(Success::RevisionSuperseded))
        .await;
    let of = |bucket| Target::Maintenance {
        namespace: world.namespace,
        agent: other.id,
        revision: revision.id,
        bucket,
    };
    world.write(Write::Enqueue(world.work(of(1)))).await;
    lose_all(&world, TWICE).await;
    assert_eq!(world.store.work_state(&of(2).key()).await, Ok(None));
}

pub(super) async fn recovery_in_two_processes_recovers_once(subject: Arc<dyn Subject>) {
    let world = World::new(Arc::clone(&subject)).await;
    for number in 0..10 {
        let agent = world.agent(&format!("agent {number}")).await;
        world.deploy(&agent).await;
    }
    let claims = world.store.claim(16, SHORT).await.expect("a claim");
    assert_eq!(claims.len(), 10);
    let end = claims[0].claimed_at.plus(SHORT.duration);
    until("the end of the leases", async || {
        (world.now().await > end).then_some(())
    })
    .await;
    let second = subject.second().await;
    let both = [&world.store, &second].map(|store| {
        let store = Arc::clone(store);
        tokio::spawn(async move { store.recover(LONG).await.expect("a recovery") })
    });
    let mut recovered = 0;
    for task in both {
        recovered += task.await.expect("no panic");
    }
    assert_eq!(recovered, 10);
    for claim in &claims {
        assert_eq!(world.evidence(&claim.target).await.len(), 1);
    }
}

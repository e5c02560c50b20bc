//! Claims: which work, in which order, by whom, for how long (spec/engine 4).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use occ_core::{
    reason::{Pending, Success},
    resource::Agent,
    store::{Change, CommitError, Expect, QueueDepth, Store, Wait, Write},
    work::{ClaimToken, Lease, NewWork, Target, Transition},
};
use uuid::Uuid;

use super::{
    Subject,
    world::{LONG, SHORT, World, complete, defer, principal, trace, until},
};

/// Agents, each with one version that waits.
async fn waiting(world: &World, count: usize) -> Vec<Agent> {
    let mut agents = Vec::new();
    for number in 0..count {
        let agent = world.agent(&format!("agent {number}")).await;
        world.deploy(&agent).await;
        agents.push(agent);
    }
    agents
}

/// Waits for another millisecond, so that what comes is younger than what was.
async fn tick(world: &World) {
    let before = world.now().await;
    until("the next millisecond", async || {
        (world.now().await > before).then_some(())
    })
    .await;
}

pub(super) async fn the_oldest_due_work_is_claimed_first(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let mut agents = Vec::new();
    for name in ["first", "second", "third"] {
        let agent = world.agent(name).await;
        world.deploy(&agent).await;
        agents.push(Some(agent.id));
        tick(&world).await;
    }
    let claims = world.store.claim(2, LONG).await.expect("a claim");
    assert_eq!(
        claims.iter().map(|claim| claim.target.agent()).collect::<Vec<_>>(),
        agents[..2]
    );
    let [first, _] = &claims[..] else {
        panic!("as many as asked for")
    };
    assert_eq!(
        (first.attempt, &first.actor, first.last_attempt),
        (1, &world.actor, None)
    );
    assert!(first.claimed_at >= first.created_at);
    assert_eq!(world.claim(LONG).await.target.agent(), agents[2]);
    assert_eq!(world.store.claim(16, LONG).await, Ok(vec![]));
    assert_eq!(world.store.claim(0, LONG).await, Ok(vec![]));
}

pub(super) async fn one_piece_of_work_a_lane(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let (first, second) = (world.deploy(&agent).await, world.deploy(&agent).await);
    // The Namespace's own lane is another than its Agents'.
    world
        .write(Write::Enqueue(world.work(Target::NamespaceReady {
            namespace: world.namespace,
        })))
        .await;
    let claims = world.store.claim(16, LONG).await.expect("a claim");
    assert_eq!(claims.len(), 2);
    let claim = claims
        .iter()
        .find(|claim| claim.target.revision() == Some(first.id))
        .expect("the older version");
    assert_eq!(world.store.claim(16, LONG).await, Ok(vec![]));
    world.settle(claim, complete(Success::RevisionSuperseded)).await;
    assert_eq!(world.claim(LONG).await.target.revision(), Some(second.id));
}

/// Twenty lanes, four claimers at once through two handles: each lane is claimed once.
pub(super) async fn lanes_are_disjoint_between_concurrent_claimers(subject: Arc<dyn Subject>) {
    let world = World::new(Arc::clone(&subject)).await;
    let agents = waiting(&world, 20).await;
    let second = subject.second().await;
    let tasks: Vec<_> = [&world.store, &second, &world.store, &second]
        .map(|store| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let mut claimed = Vec::new();
                loop {
                    match store.claim(3, LONG).await.expect("a claim") {
                        claims if claims.is_empty() => return claimed,
                        claims => claimed.extend(claims),
                    }
                }
            })
        })
        .into();
    let mut claims = Vec::new();
    for task in tasks {
        claims.extend(task.await.expect("no panic"));
    }
    let lanes: BTreeSet<_> = claims.iter().map(|claim| claim.target.lane()).collect();
    let tokens: BTreeSet<_> = claims.iter().map(|claim| claim.token.0).collect();
    assert_eq!(
        (claims.len(), lanes.len(), tokens.len()),
        (agents.len(), agents.len(), agents.len())
    );
}

/// Four Agents with five versions each, worked off by four workers: never two of one Agent at a time, all of them once.
pub(super) async fn one_agent_never_runs_twice(subject: Arc<dyn Subject>) {
    let world = World::new(Arc::clone(&subject)).await;
    let agents = waiting(&world, 4).await;
    for agent in &agents {
        for _ in 0..4 {
            world.deploy(agent).await;
        }
    }
    let running = Arc::new(Mutex::new(BTreeSet::new()));
    let second = subject.second().await;
    let tasks = [&world.store, &second, &world.store, &second]
        .map(|store| tokio::spawn(work_off(Arc::clone(store), Arc::clone(&running))));
    let mut done = BTreeMap::new();
    for task in tasks {
        for (lane, revision) in task.await.expect("no panic") {
            done.entry(lane).or_insert_with(Vec::new).push(revision);
        }
    }
    assert_eq!(done.values().map(Vec::len).collect::<Vec<_>>(), [5, 5, 5, 5]);
    assert_eq!(done.into_values().flatten().collect::<BTreeSet<_>>().len(), 20);
}

type Lanes = Arc<Mutex<BTreeSet<occ_core::work::Lane>>>;

async fn work_off(
    store: Arc<dyn Store>,
    running: Lanes,
) -> Vec<(occ_core::work::Lane, Option<occ_core::id::RevisionId>)> {
    let mut done = Vec::new();
    loop {
        let claims = store.claim(2, LONG).await.expect("a claim");
        if claims.is_empty() {
            // A lane that is claimed by another worker is not due; nothing queued at all is the end.
            if store.next_due().await.expect("a read").is_none() && running.lock().expect("no panic").is_empty() {
                return done;
            }
            tokio::task::yield_now().await;
        }
        for claim in claims {
            let lane = claim.target.lane();
            assert!(running.lock().expect("no panic").insert(lane), "{lane} runs twice");
            tokio::task::yield_now().await;
            assert!(running.lock().expect("no panic").remove(&lane));
            let settle = Write::Settle(claim.token, complete(Success::RevisionSuperseded));
            store
                .commit(Change::new().expect(Expect::ClaimHeld(claim.token)).write(settle))
                .await
                .expect("it holds");
            done.push((lane, claim.target.revision()));
        }
    }
}

pub(super) async fn deferred_work_is_not_claimed_before_it_is_due(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    waiting(&world, 1).await;
    let claim = world.claim(LONG).await;
    let delay = Duration::from_millis(200);
    let wait = |delay| Transition::Retry {
        reason: Pending::DependencyUnavailable,
        delay,
    };
    world.settle(&claim, wait(delay)).await;
    let again = world.claim(LONG).await;
    assert!(again.claimed_at >= claim.claimed_at.plus(delay));
    world.settle(&again, wait(Duration::from_hours(1))).await;
    assert_eq!(world.store.claim(16, LONG).await, Ok(vec![]));
}

pub(super) async fn spent_work_is_not_claimed(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    waiting(&world, 2).await;
    let once = Lease {
        max_attempts: 1,
        ..LONG
    };
    let claims = world.store.claim(16, once).await.expect("a claim");
    let [spent, waits] = &claims[..] else {
        panic!("two lanes: {claims:?}")
    };
    let retry = Transition::Retry {
        reason: Pending::DependencyUnavailable,
        delay: Duration::ZERO,
    };
    world.settle(spent, retry).await;
    assert_eq!(world.store.claim(16, once).await, Ok(vec![]));
    // Nor beside what has attempts left.
    world.settle(waits, defer(Pending::RevisionIncomplete)).await;
    assert_eq!(world.claim(once).await.target, waits.target);
    // A worker with a higher limit goes on.
    let again = world.claim(LONG).await;
    assert_eq!((again.target, again.attempt), (spent.target, 2));
}

pub(super) async fn a_renewed_claim_outlives_its_first_lease(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    waiting(&world, 1).await;
    let lease = Lease {
        duration: Duration::from_secs(2),
        max_attempts: 5,
    };
    let claim = world.claim(lease).await;
    assert_eq!(world.store.renew(claim.token, LONG).await, Ok(true));
    let first_end = claim.claimed_at.plus(lease.duration);
    until("the end of the first lease", async || {
        (world.now().await > first_end).then_some(())
    })
    .await;
    assert_eq!(world.store.recover(LONG).await, Ok(0));
    assert_eq!(world.store.renew(claim.token, LONG).await, Ok(true));
    world.settle(&claim, complete(Success::RevisionActivated)).await;
    assert_eq!(world.store.renew(claim.token, LONG).await, Ok(false));
}

pub(super) async fn a_lapsed_or_unknown_claim_is_not_renewed(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    waiting(&world, 1).await;
    let claim = world.claim(SHORT).await;
    let end = claim.claimed_at.plus(SHORT.duration);
    until("the end of the lease", async || (world.now().await > end).then_some(())).await;
    // Also before anybody took the work back: who was away too long must not come back to life.
    assert_eq!(world.store.renew(claim.token, LONG).await, Ok(false));
    assert_eq!(world.store.renew(ClaimToken(Uuid::new_v4()), LONG).await, Ok(false));
    assert_eq!(world.recovered(LONG).await, 1);
}

pub(super) async fn the_next_due_work_is_that_of_a_free_lane(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    assert_eq!(world.store.next_due().await, Ok(None));
    let agents = waiting(&world, 1).await;
    assert_eq!(world.store.next_due().await, Ok(Some(Duration::ZERO)));
    world.deploy(&agents[0]).await;
    let claim = world.claim(LONG).await;
    let lapse = world.store.next_due().await.expect("a read").expect("a lease ends");
    assert!(
        lapse > Duration::ZERO && lapse <= LONG.duration,
        "the lane is claimed: {lapse:?}"
    );
    let wait = Transition::Retry {
        reason: Pending::DependencyUnavailable,
        delay: Duration::from_secs(50),
    };
    world.settle(&claim, wait.clone()).await;
    assert_eq!(
        world.store.next_due().await,
        Ok(Some(Duration::ZERO)),
        "the second version is due"
    );
    let claim = world.claim(LONG).await;
    world.settle(&claim, wait).await;
    let due = world.store.next_due().await.expect("a read").expect("two wait");
    assert!(
        due > Duration::from_secs(10) && due <= Duration::from_secs(50),
        "{due:?}"
    );
}

pub(super) async fn the_next_lapse_is_that_of_the_shortest_lease(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    waiting(&world, 3).await;
    let minute = Lease {
        duration: Duration::from_mins(1),
        ..LONG
    };
    for lease in [LONG, minute, LONG] {
        assert_eq!(world.store.claim(1, lease).await.expect("a claim").len(), 1);
    }
    let lapse = world.store.next_due().await.expect("a read").expect("leases end");
    assert!(lapse <= minute.duration, "{lapse:?}");
}

pub(super) async fn the_depth_of_the_queue_counts_what_is_live(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let depth = async || world.store.queue_depth().await.expect("a read");
    let one = async || world.store.claim(1, LONG).await.expect("a claim").remove(0);
    assert_eq!(depth().await, QueueDepth::default());
    let agents = waiting(&world, 2).await;
    let queued = depth().await;
    assert_eq!((queued.queued, queued.claimed), (2, 0));
    until("the wait shows", async || {
        (depth().await.overdue > Duration::ZERO).then_some(())
    })
    .await;
    let claim = one().await;
    let claimed = depth().await;
    assert_eq!((claimed.queued, claimed.claimed), (1, 1));
    // What waits for its time is queued, and not overdue.
    let later = Transition::Retry {
        reason: Pending::DependencyUnavailable,
        delay: Duration::from_secs(50),
    };
    world.settle(&claim, later.clone()).await;
    let claim = one().await;
    world.settle(&claim, later).await;
    let waits = QueueDepth {
        queued: 2,
        ..QueueDepth::default()
    };
    assert_eq!(depth().await, waits);
    world.deploy(&agents[0]).await;
    assert_eq!(depth().await.queued, 3);
}

pub(super) async fn enqueued_work_wakes_a_waiting_worker(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let woken = async |cause: &str| {
        let arrived = tokio::time::timeout(Duration::from_secs(30), world.store.work_arrived()).await;
        assert!(arrived.is_ok(), "{cause} wakes nobody");
    };
    // Before anybody waits, so that a worker that just found nothing does not sleep over it.
    world.deploy(&agent).await;
    woken("a commit before the wait").await;
    let store = Arc::clone(&world.store);
    let waiter = tokio::spawn(async move { store.work_arrived().await });
    tokio::task::yield_now().await;
    let claim = world.claim(LONG).await;
    world.settle(&claim, defer(Pending::RevisionIncomplete)).await;
    tokio::time::timeout(Duration::from_secs(30), waiter)
        .await
        .expect("a settlement wakes")
        .expect("no panic");
    world.lose().await;
    woken("a recovery").await;
    let wait = Wait {
        key: claim.target.key(),
        agent: agent.id,
        version: world.version(agent.id).await,
        least: Duration::ZERO,
        most: Duration::ZERO,
    };
    assert_eq!(world.store.postpone(&[wait]).await, Ok(vec![true]));
    woken("a wait that is over").await;
}

pub(super) async fn whatever_moves_work_is_heard_by_who_waits_for_news(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let mut moved = world.store.movements();
    let mut heard = async |cause: &str| {
        let marked = tokio::time::timeout(Duration::from_secs(30), moved.changed()).await;
        assert!(marked.is_ok_and(|marked| marked.is_ok()), "{cause} is not heard");
        // Also what follows at once, such as a notification of the same.
        tokio::time::sleep(Duration::from_millis(300)).await;
        moved.mark_unchanged();
    };
    world.deploy(&agent).await;
    heard("an admission").await;
    let claim = world.claim(LONG).await;
    heard("a claim").await;
    world.settle(&claim, defer(Pending::RevisionIncomplete)).await;
    heard("a settlement").await;
    world.lose().await;
    heard("a recovery").await;
}

pub(super) async fn work_enqueued_twice_is_the_work_that_exists(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let target = Target::NamespaceReady {
        namespace: world.namespace,
    };
    let enqueue = || Write::Enqueue(world.work(target));
    world.commit(Change::new().write(enqueue()).write(enqueue())).await;
    let claim = world.claim(LONG).await;
    world.write(enqueue()).await;
    assert_eq!(world.store.claim(16, LONG).await, Ok(vec![]));
    world.settle(&claim, complete(Success::NamespaceReconciled)).await;
    let ended = world.state(&target).await;
    world.write(enqueue()).await;
    assert_eq!(world.state(&target).await, ended);
    assert_eq!(world.store.claim(16, LONG).await, Ok(vec![]));
}

pub(super) async fn work_of_another_actor_is_not_taken_over(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let target = Target::NamespaceReady {
        namespace: world.namespace,
    };
    world.write(Write::Enqueue(world.work(target))).await;
    let other = NewWork::new(target, principal("prn_other"));
    let change = Change::new()
        .audit(world.event("takeover"))
        .write(Write::Enqueue(other.clone()));
    let conflict = Expect::WorkActor(target.key(), other.actor);
    assert_eq!(world.refused(change).await, CommitError::Conflict(conflict));
    assert_eq!(world.audit().await, []);
    assert_eq!(world.claim(LONG).await.actor, world.actor);
}

pub(super) async fn work_keeps_its_place_in_a_trace(subject: Arc<dyn Subject>) {
    let second = subject.second().await;
    let world = World::new(subject).await;
    let target = Target::NamespaceReady {
        namespace: world.namespace,
    };
    let work = world.work(target).in_trace(Some(trace()));
    world.write(Write::Enqueue(work.clone())).await;
    // The same once more, from another request: it is the work that exists.
    world.write(Write::Enqueue(world.work(target))).await;
    let first = world.claim(LONG).await;
    assert_eq!(first.trace, work.trace);
    world.settle(&first, defer(Pending::RevisionIncomplete)).await;
    // A later pass, of another process.
    let later = until("a claim", async || second.claim(1, LONG).await.expect("a claim").pop()).await;
    assert_eq!(later.trace, work.trace);
    world.settle(&later, defer(Pending::RevisionIncomplete)).await;
    assert_eq!(world.lose().await.trace, work.trace);
    let recovered = world.claim(LONG).await;
    assert_eq!((recovered.attempt, recovered.trace), (2, work.trace));
    // Work that nobody traced.
    let agent = world.agent("untraced").await;
    world.deploy(&agent).await;
    assert_eq!(world.claim(LONG).await.trace, None);
}

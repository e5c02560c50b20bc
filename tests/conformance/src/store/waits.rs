//! Deployments that are put off because nothing changed.

use std::{sync::Arc, time::Duration};

use occ_core::{
    id::AgentId,
    reason::Pending,
    resource::AgentRevision,
    store::{Wait, WorkState, Write},
};

use super::{
    Subject,
    world::{LONG, World, defer},
};

const HOUR: Duration = Duration::from_hours(1);

async fn wait(world: &World, revision: &AgentRevision) -> Wait {
    Wait {
        key: world.deployment(revision).key(),
        agent: revision.agent_id,
        version: world.version(revision.agent_id).await,
        least: Duration::from_mins(59),
        most: HOUR,
    }
}

/// The same, when it is over.
fn over(wait: Wait) -> Wait {
    Wait {
        least: Duration::ZERO,
        most: Duration::ZERO,
        ..wait
    }
}

/// When the work is due, by the database's clock, from its present.
async fn due_in(world: &World, wait: &Wait) -> Duration {
    match world.store.work_state(&wait.key).await {
        Ok(Some(WorkState::Queued { available_at, .. })) => available_at.since(world.now().await),
        other => panic!("{other:?}"),
    }
}

pub(super) async fn a_wait_is_put_off_and_keeps_what_it_recorded(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let revision = world.deploy(&agent).await;
    let claim = world.claim(LONG).await;
    world.settle(&claim, defer(Pending::RevisionIncomplete)).await;
    let recorded = world.store.work_state(&claim.target.key()).await;
    let (events, wait) = (world.audit().await.len(), wait(&world, &revision).await);
    assert_eq!(world.store.postpone(std::slice::from_ref(&wait)).await, Ok(vec![true]));
    let due = due_in(&world, &wait).await;
    assert!(due > Duration::from_mins(59) && due <= HOUR, "{due:?}");
    let (
        Ok(Some(WorkState::Queued {
            last_attempt: before, ..
        })),
        Ok(Some(WorkState::Queued { last_attempt, .. })),
    ) = (recorded, world.store.work_state(&wait.key).await)
    else {
        panic!("it waits")
    };
    assert_eq!(last_attempt, before);
    assert_eq!(
        world.audit().await.len(),
        events,
        "nothing happened that anybody would look up"
    );
    // Its attempts are as they were: the next claim is the first again.
    assert_eq!(world.store.postpone(&[over(wait)]).await, Ok(vec![true]));
    let again = world.claim(LONG).await;
    assert_eq!((again.target, again.attempt), (claim.target, claim.attempt));
}

/// What is held off long enough already is not written again, nor what is due when it should be.
pub(super) async fn a_wait_between_its_two_moments_is_left_as_it_is(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let revision = world.deploy(&agent).await;
    let wait = wait(&world, &revision).await;
    let moment = async |wait: Wait| {
        assert_eq!(world.store.postpone(std::slice::from_ref(&wait)).await, Ok(vec![true]));
        match world.store.work_state(&wait.key).await {
            Ok(Some(WorkState::Queued { available_at, .. })) => available_at,
            other => panic!("{other:?}"),
        }
    };
    let first = moment(wait.clone()).await;
    let longer = Wait {
        most: 2 * HOUR,
        ..wait.clone()
    };
    assert_eq!(moment(longer.clone()).await, first);
    let too_soon = Wait {
        least: HOUR + Duration::from_mins(1),
        ..longer
    };
    let second = moment(too_soon).await;
    assert!(second.since(first) > Duration::from_mins(59), "{first:?} {second:?}");
    // It never comes due later than it should.
    let third = moment(wait.clone()).await;
    assert!(third < second, "{second:?} {third:?}");
    let now = moment(over(wait)).await;
    assert!(now <= world.now().await, "{now:?}");
}

/// Put off at one moment, work is due at one moment.
pub(super) async fn of_what_is_due_at_one_moment_the_oldest_is_claimed_first(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let mut waits = Vec::new();
    for number in 0..4 {
        let agent = world.agent(&format!("agent {number}")).await;
        let revisions = [world.deploy(&agent).await, world.deploy(&agent).await];
        for revision in &revisions {
            waits.push(over(wait(&world, revision).await));
        }
    }
    assert_eq!(world.store.postpone(&waits).await, Ok(vec![true; waits.len()]));
    // Of each lane the older one.
    for older in waits.iter().step_by(2) {
        let claims = world.store.claim(1, LONG).await.expect("a claim");
        assert_eq!(claims[0].target.key(), older.key);
    }
}

pub(super) async fn what_changed_is_not_put_off(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let (waits, other) = (world.agent("waits").await, world.agent("other").await);
    let revision = world.deploy(&waits).await;
    let good = wait(&world, &revision).await;
    // Another Agent is as far as that one is said to be.
    let further = world.agent("further").await;
    for _ in 0..good.version {
        world.write(Write::UpdateAgent(further.clone())).await;
    }
    assert_eq!(world.version(further.id).await, good.version + 1);
    let wrong = [
        Wait {
            version: good.version + 1,
            ..good.clone()
        },
        Wait {
            agent: other.id,
            version: world.version(other.id).await,
            ..good.clone()
        },
        Wait {
            agent: AgentId::random(),
            ..good.clone()
        },
        Wait {
            key: "no such work".to_owned(),
            ..good.clone()
        },
    ];
    assert_eq!(world.store.postpone(&wrong).await, Ok(vec![false; wrong.len()]));
    assert_eq!(world.store.postpone(&[]).await, Ok(Vec::new()));
    assert_eq!(due_in(&world, &good).await, Duration::ZERO);
    // What was held off before its Agent changed is due, and of another Agent's it stays.
    assert_eq!(world.store.postpone(std::slice::from_ref(&good)).await, Ok(vec![true]));
    assert_eq!(
        world.store.postpone(&wrong[1..]).await,
        Ok(vec![false; wrong.len() - 1])
    );
    assert!(due_in(&world, &good).await > Duration::from_mins(58));
    assert_eq!(world.store.postpone(&wrong[..1]).await, Ok(vec![false]));
    assert_eq!(due_in(&world, &good).await, Duration::ZERO);
    // Claimed, it is its claimer's.
    let claim = world.claim(LONG).await;
    assert_eq!(world.store.postpone(std::slice::from_ref(&good)).await, Ok(vec![false]));
    assert_eq!(world.store.renew(claim.token, LONG).await, Ok(true));
    // Of many each has an answer of its own.
    let second = world.deploy(&other).await;
    let mixed = [good, wait(&world, &second).await];
    assert_eq!(world.store.postpone(&mixed).await, Ok(vec![false, true]));
}

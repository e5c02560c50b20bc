//! What a worker would do to a piece of work.

use std::time::Duration;

use occ_core::{
    reason::{Failure, Success},
    store::{Change, Expect, Store as _, WorkState, Write},
    work::{Claim, FailureData, Lease, Target, Transition},
};
use occ_test_support::drivers::World;

/// Claims exactly this work; others stay claimed until their lease lapses.
pub async fn claim(world: &World, target: &Target) -> Claim {
    let lease = Lease {
        duration: Duration::from_mins(10),
        max_attempts: 5,
    };
    let claims = world.store.claim(100, lease).await.unwrap();
    claims
        .into_iter()
        .find(|claim| claim.target == *target)
        .expect("the work is queued")
}

/// The work fails for good.
pub async fn fail(world: &World, target: &Target, failure: Failure) {
    settle(
        world,
        target,
        Transition::Fail {
            failure,
            data: FailureData::default(),
        },
    )
    .await;
}

/// The work succeeds.
pub async fn succeed(world: &World, target: &Target, code: Success) {
    settle(
        world,
        target,
        Transition::Complete {
            code,
            warnings: Vec::new(),
        },
    )
    .await;
}

pub async fn settle(world: &World, target: &Target, transition: Transition) {
    let token = claim(world, target).await.token;
    let change = Change::new()
        .expect(Expect::ClaimHeld(token))
        .write(Write::Settle(token, transition));
    world.store.commit(change).await.unwrap();
}

pub async fn state(world: &World, target: &Target) -> Option<WorkState> {
    world.store.work_state(&target.key()).await.unwrap()
}

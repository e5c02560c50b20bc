//! Workers that die, and workers that only seem to.

use occ_core::store::Store as _;

use crate::{
    process::{Process, until},
    scene::{Deployed, Scene, WorkRow, all_prepared, assert_once, deploy},
};

/// How soon they are claimed again is shown where nothing else asks for the processor: `postgres::faults`.
pub async fn what_a_killed_worker_held_is_done_once_each_by_the_next() {
    const CLAIMS: usize = 1000;
    let scene = Scene::new().await;
    let deployed = scene.deployed(CLAIMS).await;
    let mut first = Process::worker(&scene.url(), scene.files()).await;
    all_prepared(&first, &deployed).await;
    let mut second = Process::worker(&scene.url(), scene.files()).await;
    first.kill().await;
    let killed_at = scene.world.store.now().await.expect("the clock").as_millis();
    let left = scene.rows().await;
    let live = |row: &&WorkRow| row.state == "claimed" && row.lease_expires_at > Some(killed_at);
    assert_eq!(left.iter().filter(live).count(), CLAIMS, "all of them are live");

    let again = until("every claim", async || {
        let rows = scene.rows().await;
        let taken = rows.iter().filter(|row| row.state == "claimed" && row.attempts == 2);
        (taken.count() == CLAIMS).then_some(rows)
    })
    .await;
    for (again, left) in again.iter().zip(&left) {
        assert_ne!(again.token, left.token);
        assert!(
            again.claimed_at >= left.lease_expires_at,
            "not before the lease is over"
        );
    }
    second.tell("open").await;
    scene.all_active(&deployed).await;
    assert_eq!(first.said("activate"), [""; 0]);
    assert_once(&deployed, &second.said("activate"));
    second.end().await;
}

pub async fn a_worker_that_was_stopped_past_its_lease_activates_nothing_and_works_on() {
    let scene = Scene::new().await;
    let deployed = scene.deployed(20).await;
    let mut first = Process::worker(&scene.url(), scene.files()).await;
    all_prepared(&first, &deployed).await;
    first.signal("-STOP").await;
    let mut second = Process::worker(&scene.url(), scene.files()).await;
    second.tell("open").await;
    scene.all_active(&deployed).await;
    assert!(scene.rows().await.iter().all(|row| row.attempts == 2));
    second.end().await;
    // Whatever it waited for is there the moment it goes on.
    first.tell("open").await;
    first.signal("-CONT").await;
    // It works on, and what it has to itself it does.
    let agent = deployed[0].agent;
    let revision = deploy(&scene.world, agent).await;
    let next = Deployed { agent, revision };
    scene.all_active(&[next]).await;
    assert_eq!(first.said("activate"), [revision.to_string()]);
    first.end().await;
}

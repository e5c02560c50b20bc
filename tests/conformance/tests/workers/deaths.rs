//! Workers that die, and workers that only seem to.

use occ_core::store::Store as _;

use crate::{
    process::{Process, until},
    scene::{Deployed, Scene, WorkRow, all_prepared, assert_once, deploy},
};

/// A worker with a thousand live claims is killed: each of them is claimed again within a second of the end of its lease, by the
/// database's clock, and done once. On a machine that is busy with something else one try may take longer; each has its own database.
/// The same of the store alone: `postgres::faults`.
pub async fn what_a_killed_worker_held_is_done_once_each_by_the_next() {
    const TRIES: usize = 4;
    let mut took = Vec::new();
    while took.len() < TRIES {
        let late = late_claims().await;
        println!("the latest of {CLAIMS} claims was made again {late} ms after its lease was over");
        if late <= 1000 {
            return;
        }
        took.push(late);
    }
    panic!("the latest was claimed so many ms after its lease was over: {took:?}");
}

const CLAIMS: usize = 1000;

/// How many milliseconds after the end of its lease the latest of the lost claims was made again.
async fn late_claims() -> i64 {
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

    let mut db = scene.database.raw().await;
    until("every claim", async || {
        let taken = "SELECT count(*) FROM occ.work WHERE kind = 'revision' AND state = 'claimed' AND attempts = 2";
        let taken: i64 = sqlx::query_scalar(taken).fetch_one(&mut db).await.expect("a count");
        (usize::try_from(taken) == Ok(CLAIMS)).then_some(())
    })
    .await;
    let mut latest = 0;
    for (again, left) in scene.rows().await.iter().zip(&left) {
        assert_ne!(again.token, left.token);
        let late = again
            .claimed_at
            .zip(left.lease_expires_at)
            .map(|(claimed, over)| claimed - over);
        let late = late.expect("both were claimed");
        assert!(late >= 0, "not before the lease is over");
        latest = latest.max(late);
    }
    second.tell("open").await;
    scene.all_active(&deployed).await;
    assert_eq!(first.said("activate"), [""; 0]);
    assert_once(&deployed, &second.said("activate"));
    second.end().await;
    latest
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

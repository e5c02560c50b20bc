//! A worker on a machine whose clock jumps.

use std::path::Path;

use crate::{
    child::LEASE,
    process::{Process, command, until},
    scene::{Scene, all_prepared, assert_once},
};
use occ_core::store::Store as _;

/// Debian's `libfaketime`, which the dynamic linker puts before the clock of the C library.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

fn library() -> Option<String> {
    let folders = std::fs::read_dir("/usr/lib").ok()?;
    let mut found = folders.filter_map(|folder| Some(folder.ok()?.path().join(LIBRARY)));
    found.find(|path| path.is_file())?.to_str().map(str::to_owned)
}

pub fn unable() -> Option<&'static str> {
    library()
        .is_none()
        .then_some("there is no libfaketime here: install the package libfaketime")
}

/// A worker whose clock is as wrong as the file says. What counts steps and not the time of day goes on, as on a machine whose
/// clock is set.
fn worker(scene: &Scene, file: &Path) -> Process {
    let mut command = command("worker", &scene.url(), scene.files(), &[]);
    command
        .env("LD_PRELOAD", library().expect("it is there"))
        .env("FAKETIME_TIMESTAMP_FILE", file)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    Process::start(command)
}

pub async fn a_worker_whose_clock_jumps_an_hour_keeps_its_claims() {
    let scene = Scene::new().await;
    let place = tempfile::tempdir().expect("a directory");
    let offset = place.path().join("offset");
    let set = |text: &str| std::fs::write(&offset, format!("{text}\n")).expect("it is written");
    set("+0");
    let mut workers = Vec::new();
    let mut all = Vec::new();
    for (jump, count) in [("+3600", 5), ("-3600", 6)] {
        let mut held = worker(&scene, &offset);
        held.heard("ready").await;
        let deployed = scene.deployed(count).await;
        all_prepared(&held, &deployed).await;
        let before = scene.rows().await;
        set(jump);
        // For more than two leases the claims stay its own, by the database's clock.
        let now = async || scene.world.store.now().await.expect("the clock").as_millis();
        let began = now().await;
        held.tell("clock").await;
        let clock = until("its clock", async || held.said("clock").pop()).await;
        let off = clock.parse::<i64>().expect("a number") - began;
        let wanted = jump.parse::<i64>().expect("a number") * 1000;
        assert!((off - wanted).abs() < 300_000, "it is {off} ms off");
        let lease = i64::try_from(LEASE.as_millis()).expect("a number");
        until("two leases", async || (now().await > began + 2 * lease).then_some(())).await;
        let after = scene.rows().await;
        for (before, after) in before.iter().zip(&after) {
            assert_eq!((&before.token, before.attempts), (&after.token, 1), "{jump}");
            assert!(
                after.token.is_none() || after.lease_expires_at > Some(began + lease),
                "it is renewed: {jump}"
            );
        }
        held.tell("open").await;
        scene.all_active(&deployed).await;
        assert_once(&deployed, &held.said("activate"));
        // New work, while the clock is wrong.
        let more = scene.deployed(count + 10).await;
        scene.all_active(&more).await;
        all.extend(deployed.into_iter().chain(more));
        workers.push(held);
        set("+0");
        workers.pop().expect("it runs").end().await;
    }
    let rows = scene.rows().await;
    assert_eq!(rows.len(), all.len());
    assert!(
        rows.iter()
            .all(|row| (row.state.as_str(), row.attempts) == ("succeeded", 1))
    );
}

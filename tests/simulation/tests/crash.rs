//! The worker dies at each point of each life, and another one finishes it.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use occ_core::{randomness, store::sqlite::SqliteStore};
use occ_simulation::crash::{Cut, Ground, LIVES, Life, lead};

/// Leads a life in virtual time.
fn lived(life: &Life, cut: Cut) -> (u64, Vec<String>) {
    let mut state = 1_u64;
    let _owned = randomness::own(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 29)
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(lead(life, Ground::Memory, cut))
}

fn points(life: &Life) -> u64 {
    let (points, broken) = lived(life, Cut::default());
    assert!(broken.is_empty(), "{}, uncut: {broken:#?}", life.name);
    assert!(points >= 6, "{} has its points", life.name);
    points
}

#[test]
fn a_worker_may_die_at_every_point_of_every_life() {
    for life in LIVES {
        for point in 1..=points(life) {
            let cut = Cut {
                death: Some(point),
                stop: None,
            };
            let (_, broken) = lived(life, cut);
            assert!(broken.is_empty(), "{} with {cut:?}: {broken:#?}", life.name);
        }
    }
}

#[test]
fn a_stop_may_come_at_every_point_and_the_worker_die_at_every_other() {
    for life in LIVES.iter().filter(|life| life.is_stoppable()) {
        let points = points(life);
        for stop in 1..=points {
            // Every third death, shifted with the stop: all of them over all stops.
            let deaths = (0..=points + 8).filter(|death| *death == 0 || (death + stop) % 3 == 0);
            for death in deaths {
                let cut = Cut {
                    death: (death > 0).then_some(death),
                    stop: Some(stop),
                };
                let (_, broken) = lived(life, cut);
                assert!(broken.is_empty(), "{} with {cut:?}: {broken:#?}", life.name);
            }
        }
    }
}

/// In real time, on the real database: many lives at once, most of which wait for a lease to lapse.
#[test]
fn a_worker_may_die_at_every_point_of_every_life_on_sqlite() {
    let cuts = LIVES
        .iter()
        .flat_map(|life| (1..=points(life)).map(move |point| (life, point)));
    let lives = stream::iter(cuts.collect::<Vec<_>>()).map(|(life, point)| async move {
        let store = SqliteStore::open_in_memory().await.expect("a database in memory");
        let cut = Cut {
            death: Some(point),
            stop: None,
        };
        lead(life, Ground::Real(Arc::new(store)), cut).await.1
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let broken = runtime.block_on(lives.buffer_unordered(24).collect::<Vec<_>>());
    let broken: Vec<_> = broken.into_iter().flatten().collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

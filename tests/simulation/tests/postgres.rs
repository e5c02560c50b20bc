//! The worker dies at each point of each life on `PostgreSQL`, and another one finishes it.

use std::{process::ExitCode, sync::Arc};

use futures_util::{StreamExt as _, stream};
use occ_conformance::{Case, run};
use occ_core::store::postgres::PostgresStore;
use occ_simulation::crash::{Cut, Ground, LIVES, Life, lead};
use occ_test_support::postgres::{Database, absent};

fn main() -> ExitCode {
    let name = "postgres::a_worker_may_die_at_every_point_of_every_life";
    run([match absent() {
        None => Case::new(name, every_point),
        Some(reason) => Case::skipped(name, reason),
    }])
}

/// In real time: many lives at once, most of which wait for a lease to lapse, each on a database of its own.
async fn every_point() {
    let points = stream::iter(LIVES).map(|life| async move { (life, cut(life, None).await) });
    let points: Vec<_> = points.buffer_unordered(8).collect().await;
    let mut broken = Vec::new();
    let mut cuts = Vec::new();
    for (life, (points, uncut)) in points {
        assert!(points >= 6, "{} has its points", life.name);
        broken.extend(uncut);
        cuts.extend((1..=points).map(|point| (life, point)));
    }
    let lives = stream::iter(cuts).map(|(life, point)| async move { cut(life, Some(point)).await.1 });
    let cut: Vec<_> = lives.buffer_unordered(24).collect().await;
    broken.extend(cut.into_iter().flatten());
    assert!(broken.is_empty(), "{broken:#?}");
}

async fn cut(life: &Life, death: Option<u64>) -> (u64, Vec<String>) {
    let database = Database::fresh().await;
    let store = PostgresStore::open(&database.settings().with_connections(4)).await;
    let store = store.expect("the store opens");
    let cut = Cut { death, stop: None };
    let led = lead(life, Ground::Real(Arc::new(store.clone())), cut).await;
    store.close().await;
    led
}

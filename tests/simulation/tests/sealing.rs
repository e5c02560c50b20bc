//! The audit's sealer: prompt while things happen, and hardly there while nothing does.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use occ_core::{audit::sealing::keep_sealing, store::Store};
use occ_simulation::memory::MemoryStore;
use occ_test_support::drivers::{RecordingStore, Watch, World};

#[derive(Default)]
struct Looks(AtomicUsize);

impl Watch for Looks {
    fn called(&self, method: &'static str) {
        if method == "seal_audit" {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_sealer_asks_hardly_anything_and_still_seals_what_comes() {
    let world = World::builder().store(Arc::new(MemoryStore::default())).build().await;
    let (looks, store) = (
        Arc::new(Looks::default()),
        Arc::new(RecordingStore::around(world.store.clone())),
    );
    store.watch(Arc::clone(&looks) as _);
    let sealer = tokio::spawn(keep_sealing(Arc::clone(&store) as Arc<dyn Store>));
    tokio::time::sleep(Duration::from_mins(1)).await;
    looks.0.store(0, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(10)).await;
    let asked = looks.0.load(Ordering::Relaxed);
    assert!(asked <= 40, "{asked} questions in ten quiet minutes");

    let before = store.sealed_audit(0, 1000).await.expect("a read").len();
    world.deployable("one").await;
    tokio::time::sleep(Duration::from_secs(17)).await;
    let after = store.sealed_audit(0, 1000).await.expect("a read").len();
    assert!(after > before, "{after}");
    sealer.abort();
}

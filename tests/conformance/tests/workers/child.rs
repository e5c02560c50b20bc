//! This program as a worker, with a Compute that runs nothing and says what it is asked.

use std::{
    io::{BufRead as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use occ_core::{
    driver::RevisionObservation,
    store::{
        Store,
        postgres::{PostgresSettings, PostgresStore},
    },
    work::Policy,
    worker::{Worker, WorkerHandle},
};
use occ_test_support::drivers::{NullCompute, drivers_over};
use tokio::sync::{mpsc, watch};

use crate::{siege, space};

pub const ROLE: &str = "OCC_WORKERS_TEST_ROLE";
pub const PLACE: &str = "OCC_WORKERS_TEST_PLACE";
pub const FILES: &str = "OCC_WORKERS_TEST_FILES";

/// How long claims last: longer than what a busy machine keeps a renewal waiting.
pub const LEASE: Duration = Duration::from_secs(10);
/// What this process is for.
pub enum Role {
    /// A worker over the database of a URL, whose preparations wait at a gate.
    Worker(String),
    /// One whose runtime is shared with all of its like.
    Besieged(String),
    /// A whole control plane over a file.
    Embedded(PathBuf),
}

pub fn role() -> Option<Role> {
    let role = std::env::var(ROLE).ok()?;
    let place = std::env::var(PLACE).expect("a place");
    Some(match role.as_str() {
        "worker" => Role::Worker(place),
        "besieged" => Role::Besieged(place),
        _ => Role::Embedded(place.into()),
    })
}

pub fn run(role: Role) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        match role {
            Role::Worker(url) => gated(&url).await,
            Role::Besieged(url) => siege::besieged(&url).await,
            Role::Embedded(file) => space::embedded(&file).await,
        }
    });
    ExitCode::SUCCESS
}

pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever listened may be gone.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// The lines of the input, until it ends.
pub fn orders() -> mpsc::UnboundedReceiver<String> {
    let (order, orders) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let _ = order.send(line);
        }
    });
    orders
}

/// Says `prepare ID` and `activate ID`; a preparation ends once the gate is open, which the line `open` opens.
fn behind(gate: &watch::Receiver<bool>) -> NullCompute {
    let compute = NullCompute::default();
    let gate = gate.clone();
    compute.prepare.every(move |target| {
        let mut gate = gate.clone();
        async move {
            say(&format!("prepare {}", target.id));
            let _ = gate.wait_for(|open| *open).await;
            Ok(RevisionObservation::ready(&target))
        }
    });
    compute.activate.every(|target| async move {
        say(&format!("activate {}", target.id));
        Ok(RevisionObservation::ready(&target))
    });
    compute
}

/// Where drivers keep their files.
pub fn files() -> PathBuf {
    std::env::var_os(FILES).expect("a directory").into()
}

/// A worker that has begun, and says so.
pub async fn worker(settings: &PostgresSettings, compute: NullCompute, policy: Policy) -> WorkerHandle {
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(settings).await.expect("the store opens"));
    let drivers = drivers_over(&store, &files(), compute);
    let worker = Worker::new(store, Arc::new(drivers), policy).start();
    say("ready");
    worker
}

async fn gated(url: &str) {
    let settings = PostgresSettings::from_url(url).expect("a URL");
    let (open, gate) = watch::channel(false);
    let policy = Policy {
        lease: LEASE,
        concurrency: 1000,
        ..Policy::default()
    };
    let worker = worker(&settings, behind(&gate), policy).await;
    let mut orders = orders();
    while let Some(order) = orders.recv().await {
        if order == "open" {
            open.send_replace(true);
        } else {
            let clock = UNIX_EPOCH.elapsed().expect("after 1970");
            say(&format!("clock {}", clock.as_millis()));
        }
    }
    worker.shutdown().await;
}

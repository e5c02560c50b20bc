//! This program as a worker, with a Compute that runs nothing and says what it is asked.

use std::{
    io::{BufRead as _, Write as _},
    path::{Path, PathBuf},
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
    worker::Worker,
};
use occ_test_support::drivers::{NullCompute, drivers_over};
use tokio::sync::{mpsc, watch};

use crate::space;

pub const ROLE: &str = "OCC_WORKERS_TEST_ROLE";
pub const PLACE: &str = "OCC_WORKERS_TEST_PLACE";
pub const FILES: &str = "OCC_WORKERS_TEST_FILES";

/// How long claims last: longer than what a busy machine keeps a renewal waiting.
pub const LEASE: Duration = Duration::from_secs(10);
/// More than any test lets one worker do.
const CALLS: usize = 4000;

/// What this process is for.
pub enum Role {
    /// A worker over the database of a URL.
    Worker(String),
    /// A whole control plane over a file.
    Embedded(PathBuf),
}

pub fn role() -> Option<Role> {
    let role = std::env::var(ROLE).ok()?;
    let place = std::env::var(PLACE).expect("a place");
    Some(match role.as_str() {
        "worker" => Role::Worker(place),
        _ => Role::Embedded(place.into()),
    })
}

pub fn run(role: Role) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        match role {
            Role::Worker(url) => work(&url).await,
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
fn gated(gate: &watch::Receiver<bool>) -> NullCompute {
    let compute = NullCompute::default();
    for _ in 0..CALLS {
        let mut gate = gate.clone();
        compute.prepare.during(move |target| async move {
            say(&format!("prepare {}", target.id));
            let _ = gate.wait_for(|open| *open).await;
            Ok(RevisionObservation::ready(&target))
        });
        compute.activate.with(|target| {
            say(&format!("activate {}", target.id));
            Ok(RevisionObservation::ready(&target))
        });
    }
    compute
}

async fn work(url: &str) {
    let settings = PostgresSettings::from_url(url).expect("a URL");
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&settings).await.expect("the store opens"));
    let files = std::env::var_os(FILES).expect("a directory");
    let (open, gate) = watch::channel(false);
    let drivers = drivers_over(&store, Path::new(&files), gated(&gate));
    let policy = Policy {
        lease: LEASE,
        concurrency: 1000,
        ..Policy::default()
    };
    let worker = Worker::new(store, Arc::new(drivers), policy).start();
    say("ready");
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

//! The suite that every Compute passes, with the real supervisor.

#[path = "compute/scene/supervisor.rs"]
mod supervisor;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use async_trait::async_trait;
use occ_compute_process as _;
use occ_conformance::compute::{self, Foreign, Inventory, Subject, plan::PYTHON};
use occ_core::{
    driver::{AgentRef, ComputeDriver, DriverKind},
    iam::NoPolicy,
    registry::{Built, HostServices, Registry},
};
use occ_runtime::identity::{ProcessIdentity, Signal};

/// A data directory of its own.
struct Directory(tempfile::TempDir);

impl Subject for Directory {
    fn driver(&self) -> Arc<dyn ComputeDriver> {
        let settings = serde_json::json!({
            "supervisor": supervisor::program(),
            "tools": { PYTHON: "/usr/bin/python3" },
        });
        let host = HostServices::new(self.0.path().to_owned(), Arc::new(NoPolicy));
        let registry = Registry::linked().expect("one driver is linked");
        let registration = registry.find(DriverKind::Compute, "process").expect("it is linked");
        match (registration.build)("process-1", settings, &host) {
            Ok(Built::Compute(driver)) => driver,
            Ok(_) => unreachable!("it is registered as a Compute"),
            Err(error) => panic!("{error}"),
        }
    }

    fn inventory(&self) -> Option<&dyn Inventory> {
        Some(self)
    }

    fn foreign(&self) -> Option<&dyn Foreign> {
        Some(self)
    }
}

impl Drop for Directory {
    /// A rule that was broken leaves what it started: it is found by its locks, and ended with all that is below it.
    fn drop(&mut self) {
        let mut items = Vec::new();
        collect(self.0.path(), &mut items);
        for (name, _) in items.iter().filter(|(name, _)| name.ends_with("lock")) {
            if let Some(supervisor) = ProcessIdentity::read(Path::new(name)) {
                let _ = supervisor.signal(Signal::Kill);
            }
        }
    }
}

#[async_trait]
impl Inventory for Directory {
    async fn items(&self) -> Vec<(String, Vec<u8>)> {
        let mut items = Vec::new();
        collect(self.0.path(), &mut items);
        items.sort();
        items
    }
}

/// Every directory and file below; one that goes meanwhile is not there.
fn collect(directory: &Path, items: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            items.push((name, Vec::new()));
            collect(&path, items);
        } else if let Ok(content) = fs::read(&path) {
            items.push((name, content));
        }
    }
}

#[async_trait]
impl Foreign for Directory {
    async fn plant(&self, agent: &AgentRef) {
        let path: PathBuf = [
            "compute/process-1/namespaces",
            &agent.namespace_id.to_string(),
            "agents",
            &agent.id.to_string(),
        ]
        .iter()
        .collect();
        let directory = self.0.path().join(path);
        fs::create_dir_all(&directory).expect("the Namespace is provided");
        fs::write(directory.join("agent.json"), r#"{"owner":"somebody else"}"#).expect("it is writable");
        fs::write(directory.join("theirs"), "to be left alone").expect("it is writable");
    }
}

fn main() -> ExitCode {
    let fresh = || Directory(tempfile::tempdir().expect("a directory can be made"));
    occ_conformance::run(compute::suite(fresh))
}

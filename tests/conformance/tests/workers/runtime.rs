//! A Compute whose runtime is a directory that every worker's process shares. The kernel sees two of them work on one Agent.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use occ_core::{
    driver::{RevisionObservation, RevisionRef, Stop},
    id::AgentId,
};
use occ_test_support::drivers::NullCompute;

use crate::child::say;

/// The longest effect.
const LONGEST: Duration = Duration::from_millis(40);

/// What runs of each Agent: a file for each version that runs, and one that names the version that is routed to.
#[derive(Clone)]
pub struct Runtime(Arc<PathBuf>);

impl Runtime {
    pub fn new(files: &Path) -> Self {
        Self(Arc::new(files.join("runtime")))
    }

    /// A Compute over it. It says `overlap ID` when somebody else is at work on the Agent.
    pub fn compute(&self) -> NullCompute {
        let compute = NullCompute::default();
        let own = self.clone();
        compute.prepare.every(move |target| {
            let own = own.clone();
            async move {
                let _lane = own.at_work(&target).await;
                fs::write(own.version(&target), "").expect("it runs");
                Ok(RevisionObservation::ready(&target))
            }
        });
        let own = self.clone();
        compute.activate.every(move |target| {
            let own = own.clone();
            async move {
                let _lane = own.at_work(&target).await;
                assert!(
                    own.version(&target).exists(),
                    "{} is activated and does not run",
                    target.id
                );
                fs::write(own.route(target.agent.id), target.id.to_string()).expect("it is routed to");
                Ok(RevisionObservation::ready(&target))
            }
        });
        for script in [&compute.stop, &compute.retire] {
            let own = self.clone();
            script.every(move |target| {
                let own = own.clone();
                async move {
                    let _lane = own.at_work(&target).await;
                    let _ = fs::remove_file(own.version(&target));
                    Ok(Stop::Stopped)
                }
            });
        }
        compute
    }

    /// The versions that run, and the one that is routed to.
    pub fn of(&self, agent: AgentId) -> (BTreeSet<String>, Option<String>) {
        let running = fs::read_dir(self.0.join(agent.to_string()).join("running"));
        let name = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        let running = running.map(|entries| entries.filter_map(name).collect());
        (running.unwrap_or_default(), fs::read_to_string(self.route(agent)).ok())
    }

    /// The lane of the Agent, for as long as an effect takes. A process that dies gives it up.
    async fn at_work(&self, target: &RevisionRef) -> File {
        let place = self.0.join(target.agent.id.to_string());
        fs::create_dir_all(place.join("running")).expect("a directory");
        let lane = File::create(place.join("lane")).expect("a file");
        if lane.try_lock().is_err() {
            say(&format!("overlap {}", target.agent.id));
        }
        tokio::time::sleep(LONGEST.mul_f64(occ_core::randomness::unit())).await;
        lane
    }

    fn version(&self, target: &RevisionRef) -> PathBuf {
        let place = self.0.join(target.agent.id.to_string());
        place.join("running").join(target.id.to_string())
    }

    fn route(&self, agent: AgentId) -> PathBuf {
        self.0.join(agent.to_string()).join("routed")
    }
}

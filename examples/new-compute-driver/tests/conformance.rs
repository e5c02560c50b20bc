//! The driver against the suite of its contract. What it does not have is skipped, by name.

use std::{process::ExitCode, sync::Arc};

use occ_conformance::compute::{Subject, suite};
use occ_core::{
    driver::{CONTRACT_VERSION, ComputeDriver, DriverIdentity, DriverKind},
    iam::NoPolicy,
    registry::{DriverFactory as _, HostServices},
};
use occ_example_new_compute_driver::{LoggingCompute, Settings};

struct Logging;

impl Subject for Logging {
    fn driver(&self) -> Arc<dyn ComputeDriver> {
        let identity = DriverIdentity {
            kind: DriverKind::Compute,
            id: "logging".to_owned(),
            implementation: LoggingCompute::IMPLEMENTATION.to_owned(),
            contract: CONTRACT_VERSION,
        };
        let host = HostServices::new(std::env::temp_dir(), Arc::new(NoPolicy));
        Arc::new(LoggingCompute::build(identity, Settings {}, &host).expect("it needs nothing"))
    }
}

fn main() -> ExitCode {
    occ_conformance::run(suite(|| Logging))
}

//! The driver against the suite of its contract.

use std::{process::ExitCode, sync::Arc};

use occ_configuration_local as _;
use occ_conformance::configuration::{Subject, suite};
use occ_core::{
    driver::{ConfigurationDriver, DriverKind},
    iam::NoPolicy,
    registry::{Built, HostServices, Registry},
};

struct Local;

impl Subject for Local {
    fn driver(&self) -> Arc<dyn ConfigurationDriver> {
        // It keeps everything in the Installation's store, and nothing here.
        let host = HostServices::new(std::env::temp_dir(), Arc::new(NoPolicy));
        let registry = Registry::linked().expect("one driver is linked");
        let registration = registry.find(DriverKind::Configuration, "local").expect("it is linked");
        match (registration.build)("configuration-local", serde_json::json!({}), &host) {
            Ok(Built::Configuration(driver)) => driver,
            _ => panic!("it is built without settings"),
        }
    }
}

fn main() -> ExitCode {
    occ_conformance::run(suite(|| Local))
}

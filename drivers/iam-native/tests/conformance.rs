//! The driver against the suite of its contract, which holds the model of the native policy.

use std::{process::ExitCode, sync::Arc};

use occ_conformance::iam::{Subject, suite};
use occ_core::{
    driver::{DriverKind, IamDriver},
    iam::PolicyReader,
    registry::{Built, HostServices, Registry},
};
use occ_iam_native as _;

struct Native;

impl Subject for Native {
    fn driver(&self, policy: Arc<dyn PolicyReader>) -> Arc<dyn IamDriver> {
        let host = HostServices::new(std::env::temp_dir(), policy);
        let registry = Registry::linked().expect("one driver is linked");
        let registration = registry.find(DriverKind::Iam, "native").expect("it is linked");
        match (registration.build)("iam-native", serde_json::json!({}), &host) {
            Ok(Built::Iam(driver)) => driver,
            _ => panic!("it is built without settings"),
        }
    }
}

fn main() -> ExitCode {
    occ_conformance::run(suite(|| Native))
}

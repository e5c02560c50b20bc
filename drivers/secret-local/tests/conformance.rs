//! The driver against the suite of its contract.

use std::{process::ExitCode, sync::Arc};

use occ_conformance::secret::{Damage, RecordDamage, Subject, suite};
use occ_core::{
    driver::{DriverKind, SecretDriver},
    iam::NoPolicy,
    registry::{Built, HostServices, Registry},
};
use occ_secret_local as _;
use tempfile::TempDir;

struct Local {
    data: TempDir,
}

impl Local {
    fn build(&self, id: &str) -> Arc<dyn SecretDriver> {
        let host = HostServices::new(self.data.path().to_owned(), Arc::new(NoPolicy));
        let registry = Registry::linked().expect("one driver is linked");
        let registration = registry.find(DriverKind::Secret, "local").expect("it is linked");
        match (registration.build)(id, serde_json::json!({}), &host) {
            Ok(Built::Secret(driver)) => driver,
            _ => panic!("it is built without settings"),
        }
    }
}

impl Subject for Local {
    fn driver(&self) -> Arc<dyn SecretDriver> {
        self.build("secret-local")
    }

    fn another(&self) -> Option<Arc<dyn SecretDriver>> {
        Some(self.build("another"))
    }

    fn damage(&self) -> Option<&dyn Damage> {
        Some(&RecordDamage)
    }
}

fn main() -> ExitCode {
    occ_conformance::run(suite(|| Local {
        data: TempDir::new().expect("a directory"),
    }))
}

//! The driver against the suite of its contract, with policies that grant one person everything.

use std::{fs, process::ExitCode, sync::Arc};

use occ_conformance::iam::{Subject, suite};
use occ_core::{
    driver::{DriverKind, IamDriver},
    iam::PolicyReader,
    registry::{Built, HostServices, Registry},
};
use occ_iam_cedar as _;
use tempfile::TempDir;

struct Cedar {
    files: TempDir,
}

impl Subject for Cedar {
    fn driver(&self, policy: Arc<dyn PolicyReader>) -> Arc<dyn IamDriver> {
        let policies = self.files.path().join("policies.cedar");
        let text = r#"@id("ada-may-everything") permit(principal == Person::"ada", action, resource);"#;
        fs::write(&policies, text).expect("it is written");
        let host = HostServices::new(std::env::temp_dir(), policy);
        let registry = Registry::linked().expect("one driver is linked");
        let registration = registry.find(DriverKind::Iam, "cedar").expect("it is linked");
        match (registration.build)("iam-cedar", serde_json::json!({ "policies": policies }), &host) {
            Ok(Built::Iam(driver)) => driver,
            _ => panic!("it is built"),
        }
    }

    fn decides_by_native_policy(&self) -> bool {
        false
    }
}

fn main() -> ExitCode {
    occ_conformance::run(suite(|| Cedar {
        files: tempfile::tempdir().expect("a directory"),
    }))
}

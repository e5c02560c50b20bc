//! What `occ drivers` prints.

use occ_core::{
    driver::DriverKind,
    installation::{InstallationFile, compose, linked_drivers},
    registry::Registry,
};
use serde_json::json;

use crate::fixtures::{file_with, host};

#[test]
fn selected_drivers_are_described_with_what_they_can_do() {
    let text = file_with(&[("      tools:", "      hookHost: true\n      tools:")]);
    let file = InstallationFile::parse(&text, "occ.yaml").unwrap();
    let rows = compose(&file, &Registry::linked().unwrap(), &host())
        .unwrap()
        .describe();
    let kinds: Vec<_> = rows.iter().map(|row| (row.kind, row.id.as_str())).collect();
    assert_eq!(
        kinds,
        [
            (DriverKind::Configuration, "cfg-main"),
            (DriverKind::Iam, "iam-main"),
            (DriverKind::Secret, "sec-main"),
            (DriverKind::Compute, "local"),
            (DriverKind::Harness, "openclaw"),
            (DriverKind::Harness, "codex"),
        ]
    );
    assert_eq!(
        serde_json::to_value(&rows[3]).unwrap(),
        json!({
            "kind": "compute",
            "id": "local",
            "driver": "stub",
            "implementation": "test/stub",
            "package": concat!("occ-core ", env!("CARGO_PKG_VERSION")),
            "capabilities": ["hook_host"],
        })
    );
}

#[test]
fn linked_drivers_are_listed_with_the_schema_of_their_settings() {
    let linked = linked_drivers(&Registry::linked().unwrap());
    let names: Vec<_> = linked.iter().map(|l| (l.kind, l.driver)).collect();
    assert_eq!(
        names,
        [
            (DriverKind::Configuration, "stub"),
            (DriverKind::Iam, "stub"),
            (DriverKind::Compute, "stub"),
            (DriverKind::Secret, "stub"),
            (DriverKind::Sandbox, "stub"),
            (DriverKind::Harness, "impostor"),
            (DriverKind::Harness, "stub"),
            (DriverKind::ServiceAccount, "stub"),
            (DriverKind::Plugin, "stub"),
            (DriverKind::CredentialGateway, "stub"),
        ]
    );
    let iam = serde_json::to_value(&linked[1]).unwrap();
    assert_eq!(
        iam["settings"]["properties"]["hooks"]["description"],
        "Whether it brings hooks."
    );
    assert_eq!(iam["settings"]["additionalProperties"], false);
    assert_eq!(iam["contract"], "1.0");
}

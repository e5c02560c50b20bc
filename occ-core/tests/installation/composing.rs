//! Composition: from a file, and by hand.

use std::sync::Arc;

use occ_core::{
    driver::{CONTRACT_VERSION, DriverIdentity, DriverKind},
    installation::{CompositionError, Drivers, DriversBuilder, InstallationFile, compose},
    registry::{Built, DriverFactory, Registry},
    resource::BackendKind,
};
use serde::Deserialize as _;
use serde_json::json;

use crate::fixtures::{
    StubAccounts, StubCompute, StubConfiguration, StubGateway, StubHarness, StubIam, StubSandbox, StubSecret,
    file_with, host,
};

fn composed(text: &str) -> Drivers {
    let file = InstallationFile::parse(text, "occ.yaml").unwrap();
    compose(&file, &Registry::linked().unwrap(), &host()).unwrap()
}

fn made<D: DriverFactory>(kind: DriverKind, id: &str, settings: serde_json::Value) -> Arc<D> {
    let identity = DriverIdentity {
        kind,
        id: id.to_owned(),
        implementation: D::IMPLEMENTATION.to_owned(),
        contract: CONTRACT_VERSION,
    };
    Arc::new(D::build(identity, D::Settings::deserialize(settings).unwrap(), &host()).unwrap())
}

fn harness(id: &str) -> Arc<StubHarness> {
    made(DriverKind::Harness, id, json!({}))
}

fn complete() -> DriversBuilder {
    Drivers::builder()
        .configuration(made::<StubConfiguration>(DriverKind::Configuration, "cfg", json!({})))
        .iam(made::<StubIam>(DriverKind::Iam, "iam", json!({})))
        .secret(made::<StubSecret>(DriverKind::Secret, "sec", json!({})))
        .compute(made::<StubCompute>(DriverKind::Compute, "cmp", json!({})))
        .harness(harness("openclaw"))
}

#[test]
fn a_file_becomes_drivers_that_carry_its_ids() {
    let drivers = composed(&file_with(&[]));
    assert_eq!(drivers.configuration.identity().id, "cfg-main");
    assert_eq!(drivers.iam.identity().id, "iam-main");
    assert_eq!(drivers.secret.identity().id, "sec-main");
    assert_eq!(drivers.compute.identity().id, "local");
    assert!(drivers.sandbox.is_none());
    assert_eq!(
        drivers.harness("codex").map(|h| h.identity().id.as_str()),
        Some("codex")
    );
    assert!(drivers.harness("hermes").is_none());
    assert!(drivers.lifecycle_hooks().is_empty());
}

#[test]
fn hooks_of_other_drivers_are_listed_for_a_compute_that_takes_them() {
    let text = file_with(&[
        (
            "    configuration: {}\n  secret",
            "    configuration: { hooks: true }\n  secret",
        ),
        ("      tools:", "      hookHost: true\n      tools:"),
        (
            "  harness:",
            "  sandbox: { id: box, driver: stub, configuration: { facets: [networking] } }\n  harness:",
        ),
    ]);
    let drivers = composed(&text);
    assert_eq!(drivers.sandbox.as_ref().unwrap().identity().id, "box");
    assert_eq!(drivers.lifecycle_hooks().len(), 2);
}

#[test]
fn an_embedder_composes_by_hand() {
    let drivers = complete().harness(harness("codex")).build().unwrap();
    assert_eq!(drivers.harnesses.len(), 2);
    assert!(
        drivers
            .describe()
            .iter()
            .all(|row| row.driver.is_none() && row.package.is_none())
    );
}

#[test]
fn every_required_kind_that_is_missing_is_named() {
    let missing = |builder: DriversBuilder| builder.build().map(|_| ()).unwrap_err();
    let none = Drivers::builder();
    assert_eq!(
        missing(none.clone()),
        CompositionError::Missing {
            kind: DriverKind::Harness
        }
    );

    let some = none.harness(harness("openclaw"));
    assert_eq!(
        missing(some.clone()),
        CompositionError::Missing {
            kind: DriverKind::Configuration
        }
    );
    let some = some.configuration(made::<StubConfiguration>(DriverKind::Configuration, "cfg", json!({})));
    assert_eq!(
        missing(some.clone()),
        CompositionError::Missing { kind: DriverKind::Iam }
    );
    let some = some.iam(made::<StubIam>(DriverKind::Iam, "iam", json!({})));
    assert_eq!(
        missing(some.clone()),
        CompositionError::Missing {
            kind: DriverKind::Secret
        }
    );
    let some = some.secret(made::<StubSecret>(DriverKind::Secret, "sec", json!({})));
    assert_eq!(
        missing(some.clone()),
        CompositionError::Missing {
            kind: DriverKind::Compute
        }
    );
    let some = some.compute(made::<StubCompute>(DriverKind::Compute, "cmp", json!({})));
    assert!(some.build().is_ok());
}

#[test]
fn two_harnesses_with_one_id_are_refused() {
    let refused = complete().harness(harness("openclaw")).build().map(|_| ()).unwrap_err();
    assert_eq!(
        refused,
        CompositionError::DuplicateHarness {
            id: "openclaw".to_owned()
        }
    );
}

#[test]
fn a_driver_under_the_wrong_kind_or_a_bad_id_is_refused() {
    let wrong = complete().secret(made::<StubSecret>(DriverKind::Iam, "sec", json!({})));
    assert_eq!(
        wrong.build().map(|_| ()).unwrap_err(),
        CompositionError::Kind {
            slot: DriverKind::Secret,
            found: DriverKind::Iam
        }
    );
    for id in ["", "Upper", "a/b", "-a", ".", "é", &"i".repeat(64)] {
        let bad = complete().harness(harness(id)).build().map(|_| ()).unwrap_err();
        assert_eq!(
            bad,
            CompositionError::Id {
                kind: DriverKind::Harness
            },
            "{id}"
        );
    }
    for id in ["a", "0", "open-claw_2.x", &"i".repeat(63)] {
        assert!(complete().harness(harness(id)).build().is_ok(), "{id}");
    }
}

#[test]
fn a_sandbox_needs_a_compute_that_hosts_hooks() {
    let sandbox = || made::<StubSandbox>(DriverKind::Sandbox, "box", json!({ "facets": ["process"] }));
    let refused = complete().sandbox(sandbox()).build().map(|_| ()).unwrap_err();
    assert_eq!(
        refused,
        CompositionError::Sandbox {
            sandbox: "box".to_owned(),
            compute: "cmp".to_owned()
        }
    );

    let host = made::<StubCompute>(DriverKind::Compute, "cmp", json!({ "hookHost": true }));
    assert!(complete().compute(host).sandbox(sandbox()).build().is_ok());
}

#[test]
fn what_a_factory_built_goes_where_its_kind_belongs() {
    let drivers = complete().built(Built::Harness(harness("codex"))).build().unwrap();
    assert!(drivers.harness("codex").is_some());
}

#[test]
fn a_service_account_driver_needs_a_backend_of_its_type() {
    let selected = "  service_account: { id: accounts, driver: stub }\n  harness:";
    let with = file_with(&[
        ("logging:", "backend: [{ id: workspace, type: chatgpt }]\nlogging:"),
        ("  harness:", selected),
    ]);
    let drivers = composed(&with);
    let driver = drivers.service_account.clone().unwrap();
    assert_eq!(driver.identity().id, "accounts");
    assert_eq!(drivers.backend_of(&*driver).unwrap().id.as_str(), "workspace");
    assert_eq!(drivers.describe().last().unwrap().kind, DriverKind::ServiceAccount);

    let accounts = made::<StubAccounts>(DriverKind::ServiceAccount, "accounts", json!({}));
    let refused = complete().service_account(accounts).build().map(|_| ()).unwrap_err();
    assert_eq!(
        refused,
        CompositionError::Backend {
            kind: DriverKind::ServiceAccount,
            backend: BackendKind::Chatgpt,
        }
    );
    assert_eq!(
        refused.to_string(),
        "the service_account driver needs a backend of the type chatgpt"
    );
}

#[test]
fn a_plugin_driver_is_selected_by_the_file() {
    let selected = "  plugin: { id: plugins, driver: stub }\n  harness:";
    let drivers = composed(&file_with(&[("  harness:", selected)]));
    assert_eq!(drivers.plugin.as_ref().unwrap().identity().id, "plugins");
    let row = drivers.describe().pop().unwrap();
    assert_eq!((row.kind, row.id.as_str()), (DriverKind::Plugin, "plugins"));
    assert!(row.capabilities.is_empty());
}

#[test]
fn a_credential_gateway_needs_a_sandbox() {
    let gateway = || made::<StubGateway>(DriverKind::CredentialGateway, "broker", json!({}));
    let refused = complete()
        .credential_gateway(gateway())
        .build()
        .map(|_| ())
        .unwrap_err();
    assert_eq!(
        refused,
        CompositionError::Gateway {
            gateway: "broker".to_owned()
        }
    );
    let host = made::<StubCompute>(DriverKind::Compute, "cmp", json!({ "hookHost": true }));
    let sandbox = made::<StubSandbox>(DriverKind::Sandbox, "box", json!({ "facets": ["process"] }));
    let complete = complete().compute(host).sandbox(sandbox).credential_gateway(gateway());
    assert_eq!(complete.build().unwrap().gateway_id(), Some("broker"));
}

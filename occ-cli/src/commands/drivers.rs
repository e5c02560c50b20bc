//! `occ drivers`

use clap::Args;
use occ_core::{
    driver::{Capability, capabilities},
    iam::NoPolicy,
    installation::{LinkedDriver, linked_drivers},
    registry::{Built, HostServices, Registration, Registry},
};
use serde::Serialize;
use serde_json::json;

use super::Context;
use crate::exit::{Done, Failure};

/// The drivers that this binary has linked, and what each can do. Needs no server.
#[derive(Debug, Args)]
#[command(after_help = "With --output json each driver also has the JSON Schema of its settings.")]
pub(crate) struct Drivers {}

/// A linked driver, with what it can do beyond its kind's duties.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(flatten)]
    linked: LinkedDriver,
    /// Null when the driver cannot be built without settings, so that it could not be asked.
    capabilities: Option<Vec<Capability>>,
}

pub(crate) fn run(cx: &Context<'_>) -> Done {
    let registry = Registry::linked().map_err(Failure::startup)?;
    let abilities = registry.registrations().iter().map(abilities);
    let rows: Vec<Row> = linked_drivers(&registry)
        .into_iter()
        .zip(abilities)
        .map(|(linked, capabilities)| Row { linked, capabilities })
        .collect();
    let columns = [
        "KIND",
        "DRIVER",
        "IMPLEMENTATION",
        "PACKAGE",
        "CONTRACT",
        "CAPABILITIES",
    ];
    cx.output.list(&rows, &columns, |row| {
        let linked = &row.linked;
        vec![
            linked.kind.to_string(),
            linked.driver.to_owned(),
            linked.implementation.to_owned(),
            linked.package.to_owned(),
            linked.contract.clone(),
            row.capabilities.as_ref().map_or_else(
                || "needs settings to say".to_owned(),
                |all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            ),
        ]
    })
}

/// Asks a driver itself: building one causes no effect outside this process.
fn abilities(registration: &Registration) -> Option<Vec<Capability>> {
    let nowhere = std::env::temp_dir().join(format!("occ-drivers-{}", std::process::id()));
    let host = HostServices::new(nowhere, std::sync::Arc::new(NoPolicy));
    let built = (registration.build)(registration.driver, json!({}), &host).ok()?;
    Some(match built {
        Built::Compute(driver) => capabilities(&*driver),
        Built::Sandbox(driver) => capabilities(&*driver),
        Built::Secret(driver) => capabilities(&*driver),
        Built::Plugin(driver) => capabilities(&*driver),
        Built::Configuration(_)
        | Built::Iam(_)
        | Built::Harness(_)
        | Built::ServiceAccount(_)
        | Built::CredentialGateway(_) => Vec::new(),
    })
}

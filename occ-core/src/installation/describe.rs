//! What is linked and what is selected, for people and programs.

use serde::Serialize;
use serde_json::Value;

use crate::{
    driver::{Capability, DriverIdentity, DriverKind},
    registry::{Registration, Registry},
};

/// Where a composed driver came from.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) kind: DriverKind,
    pub(super) id: String,
    pub(super) driver: &'static str,
    pub(super) package: &'static str,
}

/// A selected driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DriverRow {
    /// Its kind.
    pub kind: DriverKind,
    /// The operator's name for it.
    pub id: String,
    /// The name by which it was selected; none when an embedder made it.
    pub driver: Option<&'static str>,
    /// Who wrote it.
    pub implementation: String,
    /// The crate that registered it, and its version; none when an embedder made it.
    pub package: Option<&'static str>,
    /// The optional abilities that it has.
    pub capabilities: Vec<Capability>,
}

impl DriverRow {
    pub(super) fn new(identity: &DriverIdentity, sources: &[Source], capabilities: Vec<Capability>) -> Self {
        let source = sources
            .iter()
            .find(|s| (s.kind, &s.id) == (identity.kind, &identity.id));
        Self {
            kind: identity.kind,
            id: identity.id.clone(),
            driver: source.map(|s| s.driver),
            implementation: identity.implementation.clone(),
            package: source.map(|s| s.package),
            capabilities,
        }
    }
}

/// A driver that can be selected.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkedDriver {
    /// Its kind.
    pub kind: DriverKind,
    /// The name to select it by.
    pub driver: &'static str,
    /// Who wrote it.
    pub implementation: &'static str,
    /// The crate that registers it, and its version.
    pub package: &'static str,
    /// The contract that it was written for, such as `1.0`.
    pub contract: String,
    /// JSON Schema of its settings.
    pub settings: Value,
}

impl From<&Registration> for LinkedDriver {
    fn from(registration: &Registration) -> Self {
        Self {
            kind: registration.kind,
            driver: registration.driver,
            implementation: registration.implementation,
            package: registration.package,
            contract: registration.contract.to_string(),
            settings: (registration.schema)().to_value(),
        }
    }
}

/// Every driver that an Installation file can select, by kind and name.
pub fn linked_drivers(registry: &Registry) -> Vec<LinkedDriver> {
    registry.registrations().iter().map(LinkedDriver::from).collect()
}

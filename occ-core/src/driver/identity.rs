//! Who a driver is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kinds of driver that an Installation selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// Keeps Configuration documents.
    Configuration,
    /// Decides who may do what.
    Iam,
    /// Runs workloads.
    Compute,
    /// Keeps secret bytes.
    Secret,
    /// Wraps or hosts dedicated Harnesses.
    Sandbox,
    /// Turns a revision into a plan.
    Harness,
    /// Has a provider issue tokens of service accounts.
    ServiceAccount,
    /// Knows a catalogue of plugins.
    Plugin,
    /// Keeps credentials and mediates their use.
    CredentialGateway,
}

impl DriverKind {
    /// Every kind, in the order in which drivers are built.
    pub const ALL: [Self; 9] = [
        Self::Configuration,
        Self::Iam,
        Self::Secret,
        Self::Compute,
        Self::Sandbox,
        Self::Harness,
        Self::ServiceAccount,
        Self::Plugin,
        Self::CredentialGateway,
    ];

    /// The word in the Installation file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Iam => "iam",
            Self::Compute => "compute",
            Self::Secret => "secret",
            Self::Sandbox => "sandbox",
            Self::Harness => "harness",
            Self::ServiceAccount => "service_account",
            Self::Plugin => "plugin",
            Self::CredentialGateway => "credential_gateway",
        }
    }
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The version of the contracts in this crate. A driver is linked when its major is the same and its minor is not newer.
pub const CONTRACT_VERSION: ContractVersion = ContractVersion { major: 1, minor: 0 };

/// A contract version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ContractVersion {
    /// Grows when an implementation must change.
    pub major: u16,
    /// Grows when the contract only gains something optional.
    pub minor: u16,
}

impl ContractVersion {
    /// Whether an engine with `self` can use a driver that was written for `driver`.
    pub const fn accepts(self, driver: Self) -> bool {
        self.major == driver.major && driver.minor <= self.minor
    }
}

impl fmt::Display for ContractVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Who a driver instance is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriverIdentity {
    /// Its kind.
    pub kind: DriverKind,
    /// The operator's name for this instance.
    pub id: String,
    /// Who wrote it, such as `occ/process`: a compatibility line that an upgrade keeps while it can operate older objects.
    pub implementation: String,
    /// The contract that it was written for.
    pub contract: ContractVersion,
}

//! Which drivers do not work together (spec/contracts 2.8, 2.9).

use crate::{driver::DriverKind, resource::BackendKind};

/// Why drivers do not make an Installation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompositionError {
    /// A required kind is missing.
    #[error(
        "no {kind} driver is given; an Installation needs one each of configuration, iam, secret and compute, and at least one harness"
    )]
    Missing {
        /// The kind.
        kind: DriverKind,
    },
    /// A driver says of itself that it is of another kind.
    #[error("the {slot} driver says that it is a {found} driver")]
    Kind {
        /// What it was given as.
        slot: DriverKind,
        /// What its identity says.
        found: DriverKind,
    },
    /// An id is not of the accepted form.
    #[error(
        "the id of the {kind} driver is not of the accepted form: \
         1 to 63 lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit"
    )]
    Id {
        /// The kind of the driver.
        kind: DriverKind,
    },
    /// Two Harnesses have one id.
    #[error("two harnesses have the id \"{id}\"; every harness needs its own")]
    DuplicateHarness {
        /// The id.
        id: String,
    },
    /// The Compute cannot take a Sandbox.
    #[error(
        "sandbox \"{sandbox}\" needs a compute driver that hosts hooks (capability hook_host); compute \"{compute}\" does not"
    )]
    Sandbox {
        /// The Sandbox's id.
        sandbox: String,
        /// The Compute's id.
        compute: String,
    },
    /// The Compute cannot take another driver's hooks.
    #[error(
        "the {kind} driver brings hooks around workloads, and compute \"{compute}\" cannot take them (capability hook_host)"
    )]
    Hooks {
        /// The kind of the driver that brings them.
        kind: DriverKind,
        /// The Compute's id.
        compute: String,
    },
    /// The Sandbox confines nothing, or names a facet twice.
    #[error("sandbox \"{sandbox}\" must name what it confines: at least one facet, and each once")]
    Facets {
        /// The Sandbox's id.
        sandbox: String,
    },
    /// The Sandbox's home for the Harness is no absolute, normalized path.
    #[error(
        "sandbox \"{sandbox}\" must give the harness a home that is an absolute path without empty, `.` or `..` parts"
    )]
    HarnessHome {
        /// The Sandbox's id.
        sandbox: String,
    },
    /// The driver works for a Backend of a type that none has.
    #[error("the {kind} driver needs a backend of the type {backend}")]
    Backend {
        /// The kind of the driver.
        kind: DriverKind,
        /// The type of the Backend.
        backend: BackendKind,
    },
    /// Nothing holds a workload to its placeholders.
    #[error(
        "credential gateway \"{gateway}\" needs a sandbox: nothing else holds a workload to what the gateway mediates"
    )]
    Gateway {
        /// The gateway's id.
        gateway: String,
    },
    /// The Compute wants maintenance all the time.
    #[error("compute \"{compute}\" must give a maintenance interval above zero")]
    MaintenanceInterval {
        /// The Compute's id.
        compute: String,
    },
}

impl CompositionError {
    /// The kind of the driver that is at fault, or missing.
    pub const fn kind(&self) -> DriverKind {
        match self {
            Self::Missing { kind }
            | Self::Kind { slot: kind, .. }
            | Self::Id { kind }
            | Self::Hooks { kind, .. }
            | Self::Backend { kind, .. } => *kind,
            Self::Gateway { .. } => DriverKind::CredentialGateway,
            Self::DuplicateHarness { .. } => DriverKind::Harness,
            Self::Sandbox { .. } | Self::Facets { .. } | Self::HarnessHome { .. } => DriverKind::Sandbox,
            Self::MaintenanceInterval { .. } => DriverKind::Compute,
        }
    }
}

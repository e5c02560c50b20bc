//! Registration: how a driver crate makes itself known, and how an installation finds it.
//!
//! A driver crate calls one macro; the `inventory` crate collects the records of every crate that is linked. A crate that no code
//! names is not linked at all, so an installation's `main.rs` names each: `use occ_compute_process as _;`. What a library loaded
//! at run time registers is not seen here (it has an inventory of its own); such drivers are installed explicitly with
//! [`Registry::install`].

mod closed;
mod factory;
mod wording;

pub use factory::{BuildError, DriverFactory, HostServices};

use std::sync::Arc;

use schemars::Schema;
use serde_json::Value;

use crate::driver::{
    CONTRACT_VERSION, ComputeDriver, ConfigurationDriver, ContractVersion, CredentialGateway, DriverIdentity,
    DriverKind, Harness, IamDriver, PluginDriver, SandboxDriver, SecretDriver, ServiceAccountDriver,
};

/// What a factory builds, by kind.
#[derive(Clone)]
pub enum Built {
    /// A Compute Driver.
    Compute(Arc<dyn ComputeDriver>),
    /// A Sandbox Driver.
    Sandbox(Arc<dyn SandboxDriver>),
    /// A Secret Driver.
    Secret(Arc<dyn SecretDriver>),
    /// A Configuration Driver.
    Configuration(Arc<dyn ConfigurationDriver>),
    /// An IAM Driver.
    Iam(Arc<dyn IamDriver>),
    /// A Harness.
    Harness(Arc<dyn Harness>),
    /// A Service Account Driver.
    ServiceAccount(Arc<dyn ServiceAccountDriver>),
    /// A Plugin Driver.
    Plugin(Arc<dyn PluginDriver>),
    /// A Credential Gateway.
    CredentialGateway(Arc<dyn CredentialGateway>),
}

impl Built {
    /// Who the driver says that it is.
    pub fn identity(&self) -> &DriverIdentity {
        match self {
            Self::Compute(driver) => driver.identity(),
            Self::Sandbox(driver) => driver.identity(),
            Self::Secret(driver) => driver.identity(),
            Self::Configuration(driver) => driver.identity(),
            Self::Iam(driver) => driver.identity(),
            Self::Harness(harness) => harness.identity(),
            Self::ServiceAccount(driver) => driver.identity(),
            Self::Plugin(driver) => driver.identity(),
            Self::CredentialGateway(gateway) => gateway.identity(),
        }
    }
}

/// Builds a driver from its id and its settings.
pub type Build = fn(id: &str, settings: Value, host: &HostServices) -> Result<Built, BuildError>;

/// One linked driver.
#[derive(Clone)]
pub struct Registration {
    /// Its kind.
    pub kind: DriverKind,
    /// The name that the Installation file selects it by (`driver:`).
    pub driver: &'static str,
    /// Who wrote it; see [`DriverIdentity::implementation`](crate::driver::DriverIdentity).
    pub implementation: &'static str,
    /// The crate, and its version.
    pub package: &'static str,
    /// The contract that it was compiled against.
    pub contract: ContractVersion,
    /// JSON Schema of its settings: closed.
    pub schema: fn() -> Schema,
    /// Its factory.
    pub build: Build,
}

inventory::collect!(Registration);

/// The linked drivers do not make a registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two crates register the same name for one kind.
    #[error("{kind} driver \"{driver}\" is registered twice, by {first} and by {second}: link one of them")]
    Duplicate {
        /// The kind.
        kind: DriverKind,
        /// The name.
        driver: String,
        /// The crate that came first.
        first: String,
        /// The other crate.
        second: String,
    },
    /// The driver was compiled against contracts that this engine does not speak.
    #[error(
        "{kind} driver \"{driver}\" of {package} was written for contract {wanted}; this engine speaks {CONTRACT_VERSION}"
    )]
    Contract {
        /// The kind.
        kind: DriverKind,
        /// The name.
        driver: String,
        /// The crate.
        package: String,
        /// The contract that it wants.
        wanted: ContractVersion,
    },
    /// The driver's settings accept names that they do not know, so that a misspelt one would be ignored.
    #[error(
        "{kind} driver \"{driver}\" of {package} has open settings at \"{pointer}\" of their schema: \
         every struct needs #[serde(deny_unknown_fields)], and no setting may accept anything"
    )]
    OpenSettings {
        /// The kind.
        kind: DriverKind,
        /// The name.
        driver: String,
        /// The crate.
        package: String,
        /// A JSON pointer into the schema; empty for the settings as a whole.
        pointer: String,
    },
    /// No linked driver has this name.
    #[error(
        "no {kind} driver \"{driver}\" is linked; linked {kind} drivers: {linked}. \
         To link another, add its crate to the installation and name it in main.rs: use <crate> as _;"
    )]
    Unknown {
        /// The kind.
        kind: DriverKind,
        /// The name.
        driver: String,
        /// The linked names of that kind.
        linked: String,
    },
}

/// The drivers that an installation can select from.
#[derive(Clone, Default)]
pub struct Registry {
    registrations: Vec<Registration>,
}

impl Registry {
    /// A registry of every driver that is linked into this program.
    pub fn linked() -> Result<Self, RegistryError> {
        let mut registry = Self::default();
        for registration in inventory::iter::<Registration> {
            registry.install(registration.clone())?;
        }
        Ok(registry)
    }

    /// Adds one driver explicitly.
    pub fn install(&mut self, new: Registration) -> Result<(), RegistryError> {
        if !CONTRACT_VERSION.accepts(new.contract) {
            return Err(RegistryError::Contract {
                kind: new.kind,
                driver: new.driver.to_owned(),
                package: new.package.to_owned(),
                wanted: new.contract,
            });
        }
        if let Some(first) = self
            .registrations
            .iter()
            .find(|r| (r.kind, r.driver) == (new.kind, new.driver))
        {
            return Err(RegistryError::Duplicate {
                kind: new.kind,
                driver: new.driver.to_owned(),
                first: first.package.to_owned(),
                second: new.package.to_owned(),
            });
        }
        if let Some(pointer) = closed::open_object(&(new.schema)()) {
            return Err(RegistryError::OpenSettings {
                kind: new.kind,
                driver: new.driver.to_owned(),
                package: new.package.to_owned(),
                pointer,
            });
        }
        self.registrations.push(new);
        self.registrations.sort_by_key(|r| (r.kind, r.driver));
        Ok(())
    }

    /// Every registration, by kind and name.
    pub fn registrations(&self) -> &[Registration] {
        &self.registrations
    }

    /// The registration of this kind and name.
    pub fn find(&self, kind: DriverKind, driver: &str) -> Result<&Registration, RegistryError> {
        self.registrations
            .iter()
            .find(|r| r.kind == kind && r.driver == driver)
            .ok_or_else(|| RegistryError::Unknown {
                kind,
                driver: driver.to_owned(),
                linked: self.names(kind),
            })
    }

    fn names(&self, kind: DriverKind) -> String {
        let names: Vec<_> = self
            .registrations
            .iter()
            .filter(|r| r.kind == kind)
            .map(|r| r.driver)
            .collect();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    }
}

/// Expands to one registration; the kind macros call it.
#[doc(hidden)]
#[macro_export]
macro_rules! register_driver {
    ($kind:ident, $driver:ty) => {
        $crate::inventory::submit! {
            $crate::registry::Registration {
                kind: $crate::driver::DriverKind::$kind,
                driver: <$driver as $crate::registry::DriverFactory>::DRIVER,
                implementation: <$driver as $crate::registry::DriverFactory>::IMPLEMENTATION,
                package: concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")),
                contract: $crate::driver::CONTRACT_VERSION,
                schema: $crate::registry::settings_schema::<$driver>,
                build: |id, settings, host| {
                    $crate::registry::build_driver::<$driver>(
                        $crate::driver::DriverKind::$kind, id, settings, host,
                    )
                    .map(|driver| $crate::registry::Built::$kind(::std::sync::Arc::new(driver)))
                },
            }
        }
    };
}

macro_rules! kind_macros {
    ($($(#[$doc:meta])* $macro:ident = $kind:ident;)*) => {
        kind_macros!(@expand ($) $($(#[$doc])* $macro = $kind;)*);
    };
    (@expand ($dollar:tt) $($(#[$doc:meta])* $macro:ident = $kind:ident;)*) => {$(
        $(#[$doc])*
        #[macro_export]
        macro_rules! $macro {
            ($dollar driver:ty) => { $crate::register_driver!($kind, $dollar driver); };
        }
    )*};
}

kind_macros! {
    /// Registers a [`ComputeDriver`](crate::driver::ComputeDriver) that is a [`DriverFactory`](crate::registry::DriverFactory).
    register_compute = Compute;
    /// Registers a [`SandboxDriver`](crate::driver::SandboxDriver) that is a [`DriverFactory`](crate::registry::DriverFactory).
    register_sandbox = Sandbox;
    /// Registers a [`SecretDriver`](crate::driver::SecretDriver) that is a [`DriverFactory`](crate::registry::DriverFactory).
    register_secret = Secret;
    /// Registers a [`ConfigurationDriver`](crate::driver::ConfigurationDriver) that is a [`DriverFactory`](crate::registry::DriverFactory).
    register_configuration = Configuration;
    /// Registers an [`IamDriver`](crate::driver::IamDriver) that is a [`DriverFactory`](crate::registry::DriverFactory).
    register_iam = Iam;
    /// Registers a [`Harness`](crate::driver::Harness) that is a [`DriverFactory`](crate::registry::DriverFactory).
    register_harness = Harness;
    /// Registers a [`ServiceAccountDriver`](crate::driver::ServiceAccountDriver) that is a [`DriverFactory`](crate::registry::DriverFactory).
    register_service_account = ServiceAccount;
    /// Registers a [`PluginDriver`](crate::driver::PluginDriver) that is a [`DriverFactory`](crate::registry::DriverFactory).
    register_plugin = Plugin;
    /// Registers a [`CredentialGateway`](crate::driver::CredentialGateway) that is a [`DriverFactory`](crate::registry::DriverFactory).
    register_credential_gateway = CredentialGateway;
}

#[doc(hidden)]
pub use factory::{build_driver, settings_schema};

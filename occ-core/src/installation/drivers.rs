//! The composed drivers of an Installation.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Once},
};

use super::{
    CompositionError,
    describe::{DriverRow, Source},
};
use crate::{
    driver::{
        ComputeDriver, ConfigurationDriver, CredentialGateway, DriverKind, Harness, IamDriver, LifecycleHooks,
        PluginDriver, SandboxDriver, SecretDriver, ServiceAccountDriver, capabilities,
    },
    registry::Built,
    resource::{AccountBinding, Backend},
};

/// One driver a kind (Harnesses: at least one), checked to work together (spec/contracts 1.3, 2.9).
#[derive(Clone)]
pub struct Drivers {
    /// Keeps Configuration documents.
    pub configuration: Arc<dyn ConfigurationDriver>,
    /// Decides who may do what.
    pub iam: Arc<dyn IamDriver>,
    /// Keeps secret bytes.
    pub secret: Arc<dyn SecretDriver>,
    /// Runs workloads.
    pub compute: Arc<dyn ComputeDriver>,
    /// Wraps or hosts dedicated Harnesses.
    pub sandbox: Option<Arc<dyn SandboxDriver>>,
    /// The Harnesses, in selection order; each has its own id.
    pub harnesses: Vec<Arc<dyn Harness>>,
    /// Has a provider issue tokens of service accounts.
    pub service_account: Option<Arc<dyn ServiceAccountDriver>>,
    /// Knows a catalogue of plugins.
    pub plugin: Option<Arc<dyn PluginDriver>>,
    /// Keeps credentials and mediates their use.
    pub credential_gateway: Option<Arc<dyn CredentialGateway>>,
    backends: Vec<Backend>,
    sources: Vec<Source>,
    attached: Arc<Once>,
}

impl fmt::Debug for Drivers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.describe().iter().map(|row| (row.kind.as_str(), row.id.clone())))
            .finish()
    }
}

impl Drivers {
    /// Composes drivers by hand, as an embedder does.
    pub fn builder() -> DriversBuilder {
        DriversBuilder::default()
    }

    /// The Harness with this id.
    pub fn harness(&self, id: &str) -> Option<&Arc<dyn Harness>> {
        self.harnesses.iter().find(|harness| harness.identity().id == id)
    }

    /// The Backends that Agents may be associated with.
    pub fn backends(&self) -> &[Backend] {
        &self.backends
    }

    /// The Backend whose accounts the Service Account Driver makes.
    pub fn backend_of(&self, driver: &dyn ServiceAccountDriver) -> Option<&Backend> {
        self.backends.iter().find(|backend| backend.kind == driver.backend())
    }

    /// The selected Credential Gateway's id.
    pub fn gateway_id(&self) -> Option<&str> {
        let gateway = self.credential_gateway.as_deref();
        gateway.map(|gateway| gateway.identity().id.as_str())
    }

    /// Whether this is of the selected Service Account Driver, and of a Backend that is still configured.
    pub fn issues(&self, binding: &AccountBinding) -> bool {
        let driver = self.service_account.as_deref();
        driver.is_some_and(|driver| {
            let backend = self.backend_of(driver);
            driver.identity().id == binding.driver_id && backend.is_some_and(|found| found.id == binding.backend_id)
        })
    }

    /// The hooks that other drivers want around workloads, in selection order: configuration, sandbox, iam,
    /// credential gateway (spec/contracts 2.11).
    ///
    /// The Compute can take them: that was checked.
    pub fn lifecycle_hooks(&self) -> Vec<Arc<dyn LifecycleHooks>> {
        self.hooks().map(|(_, hooks)| hooks).collect()
    }

    /// Hands the hooks to the Compute, once for these drivers. Whoever drives work calls it before the first effect.
    pub fn attach_hooks(&self) {
        self.attached.call_once(|| {
            if let Some(host) = self.compute.hook_host() {
                host.attach(self.lifecycle_hooks());
            }
        });
    }

    fn hooks(&self) -> impl Iterator<Item = (DriverKind, Arc<dyn LifecycleHooks>)> {
        let sandbox = self.sandbox.as_ref().and_then(|s| s.lifecycle_hooks());
        let gateway = self.credential_gateway.as_ref().and_then(|g| g.lifecycle_hooks());
        [
            (DriverKind::Configuration, self.configuration.lifecycle_hooks()),
            (DriverKind::Sandbox, sandbox),
            (DriverKind::Iam, self.iam.lifecycle_hooks()),
            (DriverKind::CredentialGateway, gateway),
        ]
        .into_iter()
        .filter_map(|(kind, hooks)| Some((kind, hooks?)))
    }

    /// One row a driver, in the order in which they are built: what `occ drivers` prints.
    pub fn describe(&self) -> Vec<DriverRow> {
        let row = |identity, capabilities| DriverRow::new(identity, &self.sources, capabilities);
        let mut rows = vec![
            row(self.configuration.identity(), Vec::new()),
            row(self.iam.identity(), Vec::new()),
            row(self.secret.identity(), capabilities(&*self.secret)),
            row(self.compute.identity(), capabilities(&*self.compute)),
        ];
        rows.extend(
            self.sandbox
                .iter()
                .map(|sandbox| row(sandbox.identity(), capabilities(&**sandbox))),
        );
        rows.extend(self.harnesses.iter().map(|harness| row(harness.identity(), Vec::new())));
        let accounts = self.service_account.iter();
        rows.extend(accounts.map(|driver| row(driver.identity(), Vec::new())));
        let plugins = self.plugin.iter();
        rows.extend(plugins.map(|driver| row(driver.identity(), capabilities(&**driver))));
        let gateways = self.credential_gateway.iter();
        rows.extend(gateways.map(|gateway| row(gateway.identity(), Vec::new())));
        rows
    }

    fn check(self) -> Result<Self, CompositionError> {
        for (kind, identity) in self.identities() {
            if identity.kind != kind {
                return Err(CompositionError::Kind {
                    slot: kind,
                    found: identity.kind,
                });
            }
            if !super::shape::is_driver_id(&identity.id) {
                return Err(CompositionError::Id { kind });
            }
        }
        let mut ids = BTreeSet::new();
        for harness in &self.harnesses {
            let id = &harness.identity().id;
            if !ids.insert(id) {
                return Err(CompositionError::DuplicateHarness { id: id.clone() });
            }
        }
        self.check_sandbox()?;
        if let (Some(gateway), None) = (&self.credential_gateway, &self.sandbox) {
            return Err(CompositionError::Gateway {
                gateway: gateway.identity().id.clone(),
            });
        }
        if let Some(driver) = &self.service_account
            && self.backend_of(&**driver).is_none()
        {
            return Err(CompositionError::Backend {
                kind: DriverKind::ServiceAccount,
                backend: driver.backend(),
            });
        }
        if let (None, Some((kind, _))) = (self.compute.hook_host(), self.hooks().next()) {
            return Err(CompositionError::Hooks {
                kind,
                compute: self.compute.identity().id.clone(),
            });
        }
        if self.compute.maintenance().is_some_and(|m| m.interval().is_zero()) {
            return Err(CompositionError::MaintenanceInterval {
                compute: self.compute.identity().id.clone(),
            });
        }
        Ok(self)
    }

    fn check_sandbox(&self) -> Result<(), CompositionError> {
        let Some(sandbox) = &self.sandbox else { return Ok(()) };
        let id = || sandbox.identity().id.clone();
        if self.compute.hook_host().is_none() {
            return Err(CompositionError::Sandbox {
                sandbox: id(),
                compute: self.compute.identity().id.clone(),
            });
        }
        let facets = sandbox.facets();
        if facets.is_empty() || facets.iter().collect::<BTreeSet<_>>().len() != facets.len() {
            return Err(CompositionError::Facets { sandbox: id() });
        }
        let home = sandbox.harness_home();
        let normal = home
            .strip_prefix('/')
            .is_some_and(|below| below.split('/').all(|s| !matches!(s, "" | "." | "..")));
        if normal {
            Ok(())
        } else {
            Err(CompositionError::HarnessHome { sandbox: id() })
        }
    }

    fn identities(&self) -> impl Iterator<Item = (DriverKind, &crate::driver::DriverIdentity)> {
        [
            (DriverKind::Configuration, self.configuration.identity()),
            (DriverKind::Iam, self.iam.identity()),
            (DriverKind::Secret, self.secret.identity()),
            (DriverKind::Compute, self.compute.identity()),
        ]
        .into_iter()
        .chain(self.sandbox.iter().map(|s| (DriverKind::Sandbox, s.identity())))
        .chain(self.harnesses.iter().map(|h| (DriverKind::Harness, h.identity())))
        .chain(
            self.service_account
                .iter()
                .map(|s| (DriverKind::ServiceAccount, s.identity())),
        )
        .chain(self.plugin.iter().map(|p| (DriverKind::Plugin, p.identity())))
        .chain(
            self.credential_gateway
                .iter()
                .map(|g| (DriverKind::CredentialGateway, g.identity())),
        )
    }
}

/// Collects drivers; a second one of a kind replaces the first, except Harnesses.
#[derive(Clone, Default)]
pub struct DriversBuilder {
    configuration: Option<Arc<dyn ConfigurationDriver>>,
    iam: Option<Arc<dyn IamDriver>>,
    secret: Option<Arc<dyn SecretDriver>>,
    compute: Option<Arc<dyn ComputeDriver>>,
    sandbox: Option<Arc<dyn SandboxDriver>>,
    harnesses: Vec<Arc<dyn Harness>>,
    service_account: Option<Arc<dyn ServiceAccountDriver>>,
    plugin: Option<Arc<dyn PluginDriver>>,
    credential_gateway: Option<Arc<dyn CredentialGateway>>,
    backends: Vec<Backend>,
    sources: Vec<Source>,
}

impl DriversBuilder {
    /// The Configuration Driver. Required.
    #[must_use]
    pub fn configuration(mut self, driver: Arc<dyn ConfigurationDriver>) -> Self {
        self.configuration = Some(driver);
        self
    }

    /// The IAM Driver. Required.
    #[must_use]
    pub fn iam(mut self, driver: Arc<dyn IamDriver>) -> Self {
        self.iam = Some(driver);
        self
    }

    /// The Secret Driver. Required.
    #[must_use]
    pub fn secret(mut self, driver: Arc<dyn SecretDriver>) -> Self {
        self.secret = Some(driver);
        self
    }

    /// The Compute Driver. Required.
    #[must_use]
    pub fn compute(mut self, driver: Arc<dyn ComputeDriver>) -> Self {
        self.compute = Some(driver);
        self
    }

    /// The Sandbox Driver.
    #[must_use]
    pub fn sandbox(mut self, driver: Arc<dyn SandboxDriver>) -> Self {
        self.sandbox = Some(driver);
        self
    }

    /// A Harness; at least one is required.
    #[must_use]
    pub fn harness(mut self, harness: Arc<dyn Harness>) -> Self {
        self.harnesses.push(harness);
        self
    }

    /// The Service Account Driver; a Backend of its type is required with it.
    #[must_use]
    pub fn service_account(mut self, driver: Arc<dyn ServiceAccountDriver>) -> Self {
        self.service_account = Some(driver);
        self
    }

    /// The Plugin Driver.
    #[must_use]
    pub fn plugin(mut self, driver: Arc<dyn PluginDriver>) -> Self {
        self.plugin = Some(driver);
        self
    }

    /// The Credential Gateway; a Sandbox Driver is required with it.
    #[must_use]
    pub fn credential_gateway(mut self, gateway: Arc<dyn CredentialGateway>) -> Self {
        self.credential_gateway = Some(gateway);
        self
    }

    /// A Backend that Agents may be associated with.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backends.push(backend);
        self
    }

    /// A driver of any kind, as a [factory](crate::registry::Registration) built it.
    #[must_use]
    pub fn built(self, driver: Built) -> Self {
        match driver {
            Built::Configuration(driver) => self.configuration(driver),
            Built::Iam(driver) => self.iam(driver),
            Built::Secret(driver) => self.secret(driver),
            Built::Compute(driver) => self.compute(driver),
            Built::Sandbox(driver) => self.sandbox(driver),
            Built::Harness(harness) => self.harness(harness),
            Built::ServiceAccount(driver) => self.service_account(driver),
            Built::Plugin(driver) => self.plugin(driver),
            Built::CredentialGateway(gateway) => self.credential_gateway(gateway),
        }
    }

    pub(super) fn source(mut self, source: Source) -> Self {
        self.sources.push(source);
        self
    }

    /// The composed drivers, if every required kind is there and they work together.
    pub fn build(self) -> Result<Drivers, CompositionError> {
        let missing = |kind| CompositionError::Missing { kind };
        if self.harnesses.is_empty() {
            return Err(missing(DriverKind::Harness));
        }
        Drivers {
            configuration: self.configuration.ok_or(missing(DriverKind::Configuration))?,
            iam: self.iam.ok_or(missing(DriverKind::Iam))?,
            secret: self.secret.ok_or(missing(DriverKind::Secret))?,
            compute: self.compute.ok_or(missing(DriverKind::Compute))?,
            sandbox: self.sandbox,
            harnesses: self.harnesses,
            service_account: self.service_account,
            plugin: self.plugin,
            credential_gateway: self.credential_gateway,
            backends: self.backends,
            sources: self.sources,
            attached: Arc::new(Once::new()),
        }
        .check()
    }
}

//! A control plane on this host: its data directory, its drivers, its administrator's key.

mod data_dir;
mod database;
mod key_file;
mod tools;

use std::{net::SocketAddr, path::Path, sync::Arc};

use occ_core::{
    admission::Refusal,
    control::{Bootstrap, Caller, ControlPlane, CreateServiceKey},
    driver::OperationContext,
    id::RequestId,
    installation::{Drivers, InstallationFile, compose, stock_yaml},
    reason::ApiCode,
    registry::{HostServices, Registry},
    resource::PrincipalId,
    store::Store,
};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use data_dir::{DataDir, DirLock, Role};
pub(crate) use database::{Database, DatabaseArgs};
pub(crate) use key_file::read_key;
pub(crate) use tools::Tools;

use crate::exit::{Done, Failure};

/// An opened control plane. Nothing runs yet.
pub(crate) struct Host {
    pub data: DataDir,
    pub store: Arc<dyn Store>,
    pub plane: ControlPlane,
    pub file: InstallationFile,
    opened: database::Opened,
    _locks: Vec<DirLock>,
}

impl Host {
    /// Opens the data directory for these roles and composes the Installation. Writes nothing before everything was checked
    /// that can be checked without writing.
    pub(crate) async fn open(
        data: DataDir,
        database: &Database,
        config: Option<&Path>,
        roles: &[Role],
        tools: &Tools,
    ) -> Done<Self> {
        refuse_instead_of_ending()?;
        let locks = roles.iter().map(|role| data.lock(*role)).collect::<Done<Vec<_>>>()?;
        let _alone = data.lock_set_up()?;
        let file = installation(&data, config, tools)?;
        let registry = Registry::linked().map_err(Failure::startup)?;
        let opened = database.open(&data).await?;
        let store = opened.store();
        let services = HostServices::new(data.drivers(), Arc::clone(&store) as _);
        let drivers = Arc::new(compose(&file, &registry, &services).map_err(Failure::startup)?);
        preflight(&drivers).await?;
        let plane = ControlPlane::new(Arc::clone(&store), drivers);
        Ok(Self {
            data,
            store,
            plane,
            file,
            opened,
            _locks: locks,
        })
    }

    /// Sets the Installation up when it is new, and makes sure that its administrator's key is on disk.
    pub(crate) async fn bootstrap(&self) -> Done {
        let _alone = self.data.lock_set_up()?;
        let known = self.store.installation().await.map_err(Failure::startup)?.is_some();
        if !known {
            if self.data.was_set_up() {
                return Err(self.data.database_gone());
            }
            return self.set_up().await;
        }
        if self.data.bootstrap_pending() {
            if self.data.admin_key().exists() {
                return self.data.clear_bootstrap();
            }
            // The first start was cut off between the commit and the key file: nobody has seen the first key.
            let administrator = self.data.administrator()?;
            return self.issue_admin_key(&Caller::new(administrator)).await;
        }
        Ok(())
    }

    /// What the next start needs is on disk before the commit; the key, which only the commit makes, right after it.
    async fn set_up(&self) -> Done {
        let name = |text: &str| text.parse().map_err(Failure::startup);
        let input = Bootstrap {
            name: name("local")?,
            administrator: name("administrator")?,
        };
        let administrator: PrincipalId = format!("prn_{}", RequestId::random().uuid())
            .parse()
            .map_err(Failure::startup)?;
        self.data.mark_bootstrap()?;
        self.data.write_administrator(&administrator)?;
        let bootstrapped = self.plane.bootstrap_as(administrator, input).await;
        let bootstrapped = match bootstrapped {
            // Another host came first, with another data directory: its administrator has the key.
            Err(refusal) if refusal.code() == ApiCode::InstallationExists => return self.data.clear_bootstrap(),
            bootstrapped => bootstrapped.map_err(|refusal| self.cannot(refusal))?,
        };
        self.data.write_admin_key(&bootstrapped.key.value)?;
        self.data.clear_bootstrap()
    }

    /// Why the store took nothing. To a database, a full disk is one of the ways in which it is away.
    fn cannot(&self, refusal: Refusal) -> Failure {
        if self.data.is_full() {
            self.data.full()
        } else {
            Failure::startup(refusal)
        }
    }

    async fn issue_admin_key(&self, administrator: &Caller) -> Done {
        let input = CreateServiceKey {
            principal_id: administrator.principal.clone(),
            name: "administrator".parse().map_err(Failure::startup)?,
            namespace_id: None,
            expires_in: Some(31_536_000),
        };
        let issued = self
            .plane
            .create_service_key(administrator, input)
            .await
            .map_err(|refusal| self.cannot(refusal))?;
        self.data.write_admin_key(&issued.value)?;
        self.data.clear_bootstrap()
    }

    /// Makes a new key for the administrator: for whoever owns the data directory and lost the old one.
    pub(crate) async fn renew_admin_key(&self) -> Done {
        let administrator = Caller::new(self.data.administrator()?);
        self.issue_admin_key(&administrator).await
    }

    /// Closes the store: a clean end leaves no log to recover.
    pub(crate) async fn close(self) {
        self.opened.close().await;
    }
}

/// The Installation file: the given one, or the data directory's own, which the first start writes.
fn installation(data: &DataDir, config: Option<&Path>, tools: &Tools) -> Done<InstallationFile> {
    if let Some(path) = config {
        return InstallationFile::read(path).map_err(Failure::startup);
    }
    let path = data.installation();
    if !path.exists() {
        data.write_installation(&stock_yaml(&tools.paths()?))?;
    }
    InstallationFile::read(&path).map_err(Failure::startup)
}

/// A write beyond the limit of a file's size then fails like one to a full disk; without a handler it ends the process.
fn refuse_instead_of_ending() -> Done {
    let number = rustix::process::Signal::XFSZ.as_raw();
    // The handler stays when this is dropped.
    drop(signal(SignalKind::from_raw(number)).map_err(|error| Failure::startup(error.kind()))?);
    Ok(())
}

async fn preflight(drivers: &Drivers) -> Done {
    let cx = OperationContext::default();
    drivers.secret.preflight(&cx).await.map_err(|error| {
        Failure::startup(format!(
            "the Secret Driver {} cannot work here: {error}",
            drivers.secret.identity().id
        ))
    })?;
    if let Some(driver) = &drivers.service_account {
        driver.preflight(&cx).await.map_err(|error| {
            Failure::startup(format!(
                "the Service Account Driver {} cannot work here: {error}",
                driver.identity().id
            ))
        })?;
    }
    if let Some(gateway) = &drivers.credential_gateway {
        gateway.preflight(&cx).await.map_err(|error| {
            Failure::startup(format!(
                "the Credential Gateway {} cannot work here: {error}",
                gateway.identity().id
            ))
        })?;
    }
    let warnings = drivers.compute.preflight(&cx).await.map_err(|error| {
        Failure::startup(format!(
            "the Compute Driver {} cannot work here: {error}",
            drivers.compute.identity().id
        ))
    })?;
    for warning in warnings {
        tracing::warn!(
            code = warning.code,
            message = warning.message,
            "compute.preflight-warning"
        );
    }
    Ok(())
}

/// Where a client on this host finds the API.
pub(crate) fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

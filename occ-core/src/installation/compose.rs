//! From an Installation file to drivers.

use super::{Drivers, InstallationError, InstallationFile, Path, Position, Selection, describe::Source};
use crate::{
    driver::DriverIdentity,
    registry::{BuildError, Built, HostServices, Registration, Registry},
};

/// Looks every selected driver up, builds it from its settings, and checks that they work together (spec/contracts 2.6-2.9, 2.11).
///
/// Causes no effect outside this process: whether the drivers can work at all is what preflight asks.
pub fn compose(
    file: &InstallationFile,
    registry: &Registry,
    host: &HostServices,
) -> Result<Drivers, InstallationError> {
    let mut drivers = Drivers::builder();
    for selection in file.selections() {
        let registration = registry.find(selection.kind, &selection.driver).map_err(|source| {
            let place = file.place(selection.path.key("driver"), selection.driver_at);
            InstallationError::Unlinked {
                place,
                source: Box::new(source),
            }
        })?;
        let built = build(file, selection, registration, host)?;
        drivers = drivers.built(built).source(Source {
            kind: selection.kind,
            id: selection.id.clone(),
            driver: registration.driver,
            package: registration.package,
        });
    }
    for backend in file.backends() {
        drivers = drivers.backend(backend.clone());
    }
    drivers.build().map_err(|source| {
        let at_fault = file.selections().iter().find(|s| s.kind == source.kind());
        let (path, at) = at_fault.map_or_else(|| (Path::default(), Position::START), |s| (s.path.clone(), s.at));
        InstallationError::Composition {
            place: file.place(path, at),
            source,
        }
    })
}

fn build(
    file: &InstallationFile,
    selection: &Selection,
    registration: &Registration,
    host: &HostServices,
) -> Result<Built, InstallationError> {
    let built = (registration.build)(&selection.id, selection.settings(), host).map_err(|error| match error {
        BuildError::Setting { path, expected } => {
            let base = selection.path.key("configuration");
            let (at, path) = selection.settings.locate(&base, &path);
            InstallationError::Setting {
                place: file.place(path, at),
                expected,
            }
        }
        BuildError::Unavailable(reason) => InstallationError::Unavailable {
            place: file.place(selection.path.clone(), selection.at),
            reason,
        },
    })?;
    match differs(built.identity(), selection, registration) {
        None => Ok(built),
        Some(part) => Err(InstallationError::Identity {
            place: file.place(selection.path.clone(), selection.at),
            package: registration.package.to_owned(),
            part,
        }),
    }
}

fn differs(identity: &DriverIdentity, selection: &Selection, registration: &Registration) -> Option<&'static str> {
    [
        ("kind", identity.kind == selection.kind),
        ("id", identity.id == selection.id),
        ("implementation", identity.implementation == registration.implementation),
    ]
    .into_iter()
    .find_map(|(part, same)| (!same).then_some(part))
}

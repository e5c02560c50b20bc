//! Whether the programs of a component exist, before any of them is started.

use std::{
    fs,
    path::{Path, PathBuf},
};

use occ_core::reason::{PreparationReason, PreparationStage, RuntimeCode, Token};
use rustix::fs::Access;

use super::{End, Held};
use crate::spec::{EnvSource, Environment, LaunchSpec};

/// Holds when a program or package is missing or may not be executed.
pub fn check(spec: &LaunchSpec) -> Result<(), End> {
    let probe = spec.probe.as_ref().map(|probe| (&probe.command, &probe.environment));
    let workspace = spec
        .workspace
        .as_ref()
        .map(|workspace| (&workspace.command, &workspace.environment));
    let commands = [Some((&spec.command, &spec.environment)), probe, workspace];
    let programs = commands
        .into_iter()
        .flatten()
        .all(|(command, environment)| command.first().is_some_and(|program| executable(program, environment)));
    if programs && spec.requires.iter().all(|path| fs::metadata(path).is_ok()) {
        return Ok(());
    }
    let held = Held::new(&spec.component, Token::known("startup"), RuntimeCode::Unavailable, None);
    Err(held
        .because(PreparationStage::Launch, PreparationReason::ExecutableMissing, None)
        .into())
}

fn executable(program: &str, environment: &Environment) -> bool {
    if program.contains('/') {
        return is_executable(Path::new(program));
    }
    let path = match environment.get("PATH") {
        Some(EnvSource::Text(path)) => path,
        Some(EnvSource::Secret(_)) | None => return false,
    };
    path.split(':')
        .any(|directory| is_executable(&PathBuf::from(directory).join(program)))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file()) && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

//! Where this host's programs for workloads are.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use crate::exit::{Done, Failure};

/// Paths that the environment gives: `OCC_NODE` and `OCC_OPENCLAW`, else what `PATH` has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tools {
    node: Option<PathBuf>,
    openclaw: Option<PathBuf>,
}

impl Tools {
    pub(crate) fn find() -> Self {
        Self {
            node: named("OCC_NODE").or_else(|| on_path("node")),
            openclaw: named("OCC_OPENCLAW").or_else(|| on_path("openclaw").and_then(|path| path.canonicalize().ok())),
        }
    }

    /// For the stock Installation file, by tool name.
    pub(crate) fn paths(&self) -> Done<BTreeMap<String, String>> {
        let mut paths = BTreeMap::new();
        for (name, variable, path) in [
            ("node", "OCC_NODE", &self.node),
            ("openclaw", "OCC_OPENCLAW", &self.openclaw),
        ] {
            let path = path.as_deref().ok_or_else(|| {
                Failure::startup(format!(
                    "{name} was not found: set {variable} to its path, or write an Installation file and pass --config"
                ))
            })?;
            if !is_file(path) {
                return Err(Failure::startup(format!(
                    "{variable} must be the absolute path of a file: {name} is not there"
                )));
            }
            let text = path.to_str().ok_or_else(|| {
                Failure::startup(format!(
                    "the path of {name} is not UTF-8 text: set {variable} to one that is"
                ))
            })?;
            paths.insert(name.to_owned(), text.to_owned());
        }
        Ok(paths)
    }
}

fn named(variable: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn on_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| is_file(path))
}

fn is_file(path: &Path) -> bool {
    path.is_absolute() && path.is_file()
}

//! The driver's settings.

use std::path::{Path, PathBuf};

use occ_core::registry::BuildError;
use schemars::JsonSchema;
use serde::Deserialize;

/// Settings of [`SecretLocal`](crate::SecretLocal).
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// The key file: an absolute path. When not set, `<data directory>/secret/<driver id>/keys.json`.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
}

impl Settings {
    /// The path of the key file of the driver instance `id`.
    pub(crate) fn key_file(self, id: &str, data_dir: &Path) -> Result<PathBuf, BuildError> {
        match self.key_file {
            Some(path) if path.is_absolute() && path.file_name().is_some() => Ok(path),
            Some(_) => Err(BuildError::setting("/keyFile", "expected the absolute path of a file")),
            // The id becomes a folder; an id such as `..` would leave the data directory.
            None if plain(id) => Ok(data_dir.join("secret").join(id).join("keys.json")),
            None => Err(BuildError::setting(
                "/keyFile",
                "required when the driver's id is not made of letters, digits, '.', '_' and '-' alone, or starts with '.'",
            )),
        }
    }
}

fn plain(id: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    !id.is_empty() && !id.starts_with('.') && id.bytes().all(allowed)
}

//! The driver's settings.

use std::path::PathBuf;

use occ_core::registry::BuildError;
use schemars::JsonSchema;
use serde::Deserialize;

/// Settings of [`CedarIam`](crate::CedarIam).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// The policies in Cedar's language: the absolute path of a file.
    pub policies: PathBuf,
    /// People and their groups in Cedar's JSON form of entities: the absolute path of a file. Without it nobody is in a group.
    #[serde(default)]
    pub entities: Option<PathBuf>,
}

impl Settings {
    /// Paths that mean the same file wherever the control plane was started.
    pub(crate) fn checked(self) -> Result<Self, BuildError> {
        let absolute = |path: &PathBuf| path.is_absolute() && path.file_name().is_some();
        let entities = self.entities.as_ref();
        for (setting, good) in [
            ("/policies", absolute(&self.policies)),
            ("/entities", entities.is_none_or(absolute)),
        ] {
            if !good {
                return Err(BuildError::setting(setting, "expected the absolute path of a file"));
            }
        }
        Ok(self)
    }
}

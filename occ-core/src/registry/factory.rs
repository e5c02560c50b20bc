//! How a driver is built from its settings.

use std::{path::PathBuf, sync::Arc};

use schemars::{JsonSchema, Schema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::wording;
use crate::{
    driver::{CONTRACT_VERSION, DriverIdentity, DriverKind},
    iam::PolicyReader,
    time::{Clock, SystemClock},
};

/// What the Installation offers every driver when it is built.
#[derive(Clone)]
pub struct HostServices {
    /// Where drivers may keep files: each makes a folder of its own kind and id below it.
    pub data_dir: PathBuf,
    /// The Installation's identities and native policy, for IAM drivers.
    pub policy: Arc<dyn PolicyReader>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl HostServices {
    /// Services with the machine's clock.
    pub fn new(data_dir: PathBuf, policy: Arc<dyn PolicyReader>) -> Self {
        Self {
            data_dir,
            policy,
            clock: Arc::new(SystemClock),
        }
    }
}

/// A driver could not be built. Names the setting, never its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A setting is missing, unknown or of the wrong form.
    #[error("{path}: {expected}")]
    Setting {
        /// Where in the driver's settings, such as `/tools/node`; empty for the settings as a whole.
        path: String,
        /// What is wrong and what is accepted.
        expected: String,
    },
    /// The driver cannot work here.
    #[error("{0}")]
    Unavailable(String),
}

impl BuildError {
    /// A fault in the setting at `path` (a JSON pointer).
    pub fn setting(path: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Setting {
            path: path.into(),
            expected: expected.into(),
        }
    }
}

/// A driver that can be built from settings.
pub trait DriverFactory: Sized {
    /// The name that the Installation file selects it by.
    const DRIVER: &'static str;
    /// See [`DriverIdentity::implementation`].
    const IMPLEMENTATION: &'static str;
    /// Its settings; must be closed (`#[serde(deny_unknown_fields)]`).
    type Settings: DeserializeOwned + JsonSchema;

    /// Builds it. Must not touch the network or any workload: that is what preflight is for.
    fn build(identity: DriverIdentity, settings: Self::Settings, host: &HostServices) -> Result<Self, BuildError>;
}

#[doc(hidden)]
pub fn settings_schema<D: DriverFactory>() -> Schema {
    schema_for!(D::Settings)
}

#[doc(hidden)]
pub fn build_driver<D: DriverFactory>(
    kind: DriverKind,
    id: &str,
    settings: Value,
    host: &HostServices,
) -> Result<D, BuildError> {
    let settings = serde_path_to_error::deserialize(settings).map_err(|error| BuildError::Setting {
        path: wording::pointer(error.path()),
        expected: wording::value_free(&error.inner().to_string()),
    })?;
    let identity = DriverIdentity {
        kind,
        id: id.to_owned(),
        implementation: D::IMPLEMENTATION.to_owned(),
        contract: CONTRACT_VERSION,
    };
    D::build(identity, settings, host)
}

//! The Harness's settings.

use occ_core::registry::BuildError;
use schemars::JsonSchema;
use serde::Deserialize;

/// Settings of [OpenClaw](crate::OpenClaw).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// How much gateways log. At `info` and below, OpenClaw logs what agents answer.
    pub log_level: LogLevel,
    /// How long the check of the model may wait, in seconds, besides 45 seconds of CPU time. For machines that are busy with other
    /// work when gateways start.
    #[schemars(range(min = 1, max = 600))]
    pub probe_timeout_seconds: u32,
}

impl Default for Settings {
    fn default() -> Self {
        // spec/drivers 7.1
        Self {
            log_level: LogLevel::default(),
            probe_timeout_seconds: 90,
        }
    }
}

impl Settings {
    /// Checks what the types alone do not say.
    pub(crate) fn check(self) -> Result<Self, BuildError> {
        if (1..=600).contains(&self.probe_timeout_seconds) {
            Ok(self)
        } else {
            Err(BuildError::setting("/probeTimeoutSeconds", "expected 1 to 600"))
        }
    }
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Everything that helps to find a fault.
    Debug,
    /// What happens.
    #[default]
    Info,
    /// What may be wrong.
    Warn,
    /// What is wrong.
    Error,
}

impl LogLevel {
    /// The word in a native document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

//! The closed settings of an instance.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use occ_core::registry::BuildError;
use schemars::JsonSchema;
use serde::Deserialize;

/// What an operator may say of process Compute. Every field has a default; with none, plans without tools can run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// Absolute paths of the programs and packages that plans ask for by name, such as `node` and `openclaw`.
    pub tools: BTreeMap<String, PathBuf>,
    /// Absolute path of the `occ-runtime` program. Omitted: the one beside the running program.
    pub supervisor: Option<PathBuf>,
    /// Limits of each component. Omitted ones are not set.
    pub limits: Limits,
    /// How component output is kept.
    pub log: Log,
    /// Caps the time that a plan gives its components to end by themselves, in seconds.
    #[schemars(range(min = 1, max = 3600))]
    pub stop_grace_seconds: Option<u32>,
    /// Loopback ports that gateways may have. Omitted: any that is free.
    pub port_range: Option<PortRange>,
}

/// Limits of one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Open files of each of its processes.
    #[schemars(range(min = 64))]
    pub open_files: Option<u64>,
    /// Processes and threads of the whole component; without a delegated cgroup v2, of the user.
    #[schemars(range(min = 16))]
    pub processes: Option<u64>,
    /// Memory of the whole component, in bytes; without a delegated cgroup v2, private memory of each of its processes.
    #[schemars(range(min = 67_108_864))]
    pub memory_bytes: Option<u64>,
}

/// How component output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Log {
    /// A log file is rotated when it reaches this size, in bytes.
    #[schemars(range(min = 4096, max = 1_073_741_824))]
    pub max_bytes: u64,
    /// How many rotated files are kept besides the current one.
    #[schemars(range(min = 0, max = 100))]
    pub keep: u8,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            max_bytes: 10 * 1024 * 1024,
            keep: 5,
        }
    }
}

/// A range of ports, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PortRange {
    /// The first port.
    #[schemars(range(min = 1024))]
    pub start: u16,
    /// The last port.
    #[schemars(range(min = 1024))]
    pub end: u16,
}

impl Settings {
    /// Checks what the types alone do not say. A refusal names the setting and what is accepted, never the value.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        for (name, path) in &self.tools {
            absolute(&format!("/tools/{name}"), path)?;
        }
        if let Some(path) = &self.supervisor {
            absolute("/supervisor", path)?;
        }
        at_least("/limits/openFiles", self.limits.open_files, 64)?;
        at_least("/limits/processes", self.limits.processes, 16)?;
        at_least("/limits/memoryBytes", self.limits.memory_bytes, 64 * 1024 * 1024)?;
        if !(4096..=1024 * 1024 * 1024).contains(&self.log.max_bytes) {
            return Err(BuildError::setting("/log/maxBytes", "expected 4096 to 1073741824"));
        }
        if self.log.keep > 100 {
            return Err(BuildError::setting("/log/keep", "expected 0 to 100"));
        }
        if self
            .stop_grace_seconds
            .is_some_and(|seconds| !(1..=3600).contains(&seconds))
        {
            return Err(BuildError::setting("/stopGraceSeconds", "expected 1 to 3600"));
        }
        match self.port_range {
            Some(range) if range.start < 1024 => Err(BuildError::setting("/portRange/start", "expected 1024 or more")),
            Some(range) if range.end < range.start => {
                Err(BuildError::setting("/portRange/end", "expected the start or more"))
            }
            _ => Ok(()),
        }
    }
}

fn absolute(setting: &str, path: &Path) -> Result<(), BuildError> {
    if path.is_absolute() {
        Ok(())
    } else {
        Err(BuildError::setting(setting, "expected an absolute path"))
    }
}

fn at_least(setting: &str, value: Option<u64>, least: u64) -> Result<(), BuildError> {
    match value {
        Some(value) if value < least => Err(BuildError::setting(setting, format!("expected {least} or more"))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: serde_json::Value) -> String {
        let settings: Settings = serde_json::from_value(json).expect("the shape is right");
        settings.check().expect_err("the value is not").to_string()
    }

    #[test]
    fn no_settings_are_enough() {
        let settings: Settings = serde_json::from_str("{}").unwrap();
        assert_eq!(settings.check(), Ok(()));
        assert_eq!(
            settings.log,
            Log {
                max_bytes: 10 * 1024 * 1024,
                keep: 5
            }
        );
    }

    #[test]
    fn a_refusal_names_the_setting_and_not_the_value() {
        for (json, path) in [
            (serde_json::json!({ "tools": { "node": "canary/node" } }), "/tools/node"),
            (serde_json::json!({ "supervisor": "canary" }), "/supervisor"),
            (
                serde_json::json!({ "limits": { "openFiles": 13 } }),
                "/limits/openFiles",
            ),
            (
                serde_json::json!({ "limits": { "memoryBytes": 1300 } }),
                "/limits/memoryBytes",
            ),
            (serde_json::json!({ "log": { "maxBytes": 13 } }), "/log/maxBytes"),
            (serde_json::json!({ "stopGraceSeconds": 0 }), "/stopGraceSeconds"),
            (
                serde_json::json!({ "portRange": { "start": 2000, "end": 1999 } }),
                "/portRange/end",
            ),
            (
                serde_json::json!({ "portRange": { "start": 80, "end": 1999 } }),
                "/portRange/start",
            ),
        ] {
            let message = refused(json);
            assert!(message.starts_with(path), "{message}");
            assert!(!message.contains("canary") && !message.contains("13"), "{message}");
        }
    }

    #[test]
    fn an_unknown_setting_is_refused() {
        assert!(serde_json::from_value::<Settings>(serde_json::json!({ "tool": {} })).is_err());
        assert!(serde_json::from_value::<Settings>(serde_json::json!({ "log": { "maxbytes": 1 } })).is_err());
    }
}

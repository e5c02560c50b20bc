//! The capability table: derived from what a driver implements, never declared.

use std::fmt;

use serde::{Serialize, Serializer};

use super::{ComputeDriver, PluginDriver, SandboxDriver, SecretDriver};

/// An optional ability that a driver turned out to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability(&'static str);

impl Capability {
    /// The name, in snake case.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Serialize for Capability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

/// Drivers whose optional abilities can be listed. Admission, the conformance kit and the docs use this same list.
pub trait Capabilities {
    /// Each optional ability of the kind, and whether this driver has it.
    fn table(&self) -> Vec<(Capability, bool)>;
}

/// The abilities that a driver has.
pub fn capabilities(driver: &(impl Capabilities + ?Sized)) -> Vec<Capability> {
    driver
        .table()
        .into_iter()
        .filter_map(|(capability, present)| present.then_some(capability))
        .collect()
}

impl Capabilities for dyn ComputeDriver + '_ {
    fn table(&self) -> Vec<(Capability, bool)> {
        vec![
            (Capability("runtime_credentials"), self.runtime_credentials().is_some()),
            (Capability("gateway_access"), self.gateway_access().is_some()),
            (Capability("workspace_setup"), self.workspace_setup().is_some()),
            (Capability("live_workspace"), self.live_workspace().is_some()),
            (Capability("diagnostics"), self.diagnostics().is_some()),
            (Capability("logs"), self.logs().is_some()),
            (Capability("images"), self.images().is_some()),
            (Capability("agent_binding"), self.agent_binding().is_some()),
            (Capability("maintenance"), self.maintenance().is_some()),
            (Capability("namespace_adoption"), self.namespace_adoption().is_some()),
            (Capability("hook_host"), self.hook_host().is_some()),
        ]
    }
}

impl Capabilities for dyn SecretDriver + '_ {
    fn table(&self) -> Vec<(Capability, bool)> {
        vec![(Capability("compare_and_swap"), self.compare_and_swap().is_some())]
    }
}

impl Capabilities for dyn PluginDriver + '_ {
    fn table(&self) -> Vec<(Capability, bool)> {
        vec![(Capability("details"), self.details().is_some())]
    }
}

impl Capabilities for dyn SandboxDriver + '_ {
    fn table(&self) -> Vec<(Capability, bool)> {
        vec![
            (Capability("harness_host"), self.harness_host().is_some()),
            (Capability("sandbox_logs"), self.sandbox_logs().is_some()),
        ]
    }
}

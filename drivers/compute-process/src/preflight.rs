//! Whether this Compute can work at all.

use occ_core::driver::{Fault, FaultKind, PreflightWarning};
use rustix::fs::Access;

use crate::{cgroup, error::Result, place::Instance, storage};

/// Looks at the supervisor, the data directory and the tools.
pub(crate) fn preflight(instance: &Instance) -> Result<Vec<PreflightWarning>> {
    let program = std::fs::metadata(&instance.supervisor).is_ok_and(|found| found.is_file());
    if !program || rustix::fs::access(&instance.supervisor, Access::EXEC_OK).is_err() {
        return Err(Fault::new(
            "find an executable occ-runtime beside this program, or at the path of the setting supervisor",
            FaultKind::Missing,
        )
        .into());
    }
    storage::private_dirs(instance.root.dir())?;
    storage::trial(&instance.root.dir().join("writable"))?;

    let mut warnings = Vec::new();
    let missing = instance
        .settings
        .tools
        .iter()
        .filter(|(_, path)| std::fs::metadata(path).is_err());
    let missing: Vec<_> = missing.map(|(name, _)| name.as_str()).collect();
    if !missing.is_empty() {
        tracing::warn!(tools = missing.join(","), "compute-process.tool-missing");
        warnings.push(PreflightWarning {
            code: "TOOL_MISSING",
            message: "A path of the setting tools does not exist. Versions that need it will fail with EXECUTABLE_MISSING.",
        });
    }
    let limits = &instance.settings.limits;
    let needed = limits.processes.is_some() || limits.memory_bytes.is_some();
    if needed && cgroup::delegated(limits).is_none() {
        warnings.push(PreflightWarning {
            code: "CGROUP_NOT_DELEGATED",
            message: "No cgroup v2 is delegated (systemd: Delegate=memory pids, DelegateSubgroup=control). \
                      limits.memoryBytes holds for each process, and limits.processes for all processes of the user, \
                      but not for root.",
        });
    }
    Ok(warnings)
}

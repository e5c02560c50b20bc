//! A control group for each component, where the operator delegated some (cgroup v2).
//!
//! A group that has groups below it may hold no process. So the control plane must run in a group of its own below the
//! delegated one (systemd: `Delegate=memory pids` and `DelegateSubgroup=control`), and components get groups beside it.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::{
    error::{Error, Result},
    settings::Limits,
    storage,
};

const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const PREFIX: &str = "occ-";

/// A group below which groups may be made, with the controllers that the limits need.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Delegated(PathBuf);

/// The delegated group; `None` when no limit needs one, or none was delegated.
pub(crate) fn delegated(limits: &Limits) -> Option<Delegated> {
    let mount = MOUNTS
        .iter()
        .map(Path::new)
        .find(|mount| mount.join("cgroup.controllers").exists())?;
    let memberships = fs::read_to_string("/proc/self/cgroup").ok()?;
    find(mount, &memberships, limits, is_delegated)
}

fn find(mount: &Path, memberships: &str, limits: &Limits, trusted: impl Fn(&Path) -> bool) -> Option<Delegated> {
    let wanted: Vec<_> = controllers(limits).collect();
    let own = memberships.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let parent = mount.join(own).parent().filter(|_| !own.is_empty())?.to_owned();
    let words = |file: &str| fs::read_to_string(parent.join(file)).unwrap_or_default();
    let has = |file: &str, controller: &str| words(file).split_ascii_whitespace().any(|word| word == controller);
    if wanted.is_empty()
        || !trusted(&parent)
        || !words("cgroup.procs").trim().is_empty()
        || !wanted.iter().all(|controller| has("cgroup.controllers", controller))
    {
        return None;
    }
    for controller in wanted {
        if !has("cgroup.subtree_control", controller) {
            fs::write(parent.join("cgroup.subtree_control"), format!("+{controller}")).ok()?;
        }
    }
    Some(Delegated(parent))
}

fn controllers(limits: &Limits) -> impl Iterator<Item = &'static str> {
    let memory = limits.memory_bytes.map(|_| "memory");
    let processes = limits.processes.map(|_| "pids");
    memory.into_iter().chain(processes)
}

/// Whether the group was given to this user: root may write to every group, and that is no delegation.
fn is_delegated(group: &Path) -> bool {
    let marked = ["user.delegate", "trusted.delegate"].iter().any(|name| {
        let mut value = [0; 8];
        rustix::fs::getxattr(group, *name, &mut value).is_ok_and(|length| value.get(..length) == Some(b"1"))
    });
    let user = rustix::process::geteuid().as_raw();
    marked || (user != 0 && fs::metadata(group).is_ok_and(|found| found.uid() == user))
}

impl Delegated {
    /// Makes a component's group, or finds it, and sets its limits.
    pub(crate) fn claim(&self, name: &str, limits: &Limits) -> Result<PathBuf> {
        let group = self.0.join(format!("{PREFIX}{name}"));
        match fs::create_dir(&group) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(Error::storage("make a control group")(error));
            }
            _ => {}
        }
        for (file, limit) in [("memory.max", limits.memory_bytes), ("pids.max", limits.processes)] {
            if let Some(limit) = limit {
                fs::write(group.join(file), limit.to_string()).map_err(Error::storage("limit a control group"))?;
            }
        }
        Ok(group)
    }
}

/// Removes a component's group; one that is absent, still used, or not of this form stays as it is.
pub(crate) fn remove(group: &str) {
    let group = Path::new(group);
    let ours = group
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    if ours && MOUNTS.iter().any(|mount| group.starts_with(mount)) {
        // The kernel removes a group only when no process is in it.
        if let Err(error) = fs::remove_dir(group)
            && !storage::absent(&error)
        {
            tracing::debug!(kind = %error.kind(), "compute-process.cgroup-kept");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        open_files: None,
        processes: Some(100),
        memory_bytes: Some(1 << 30),
    };

    /// Plain files in place of the kernel's: what is read and written is the same.
    fn groups(controllers: &str, enabled: &str, processes: &str) -> tempfile::TempDir {
        let mount = tempfile::tempdir().unwrap();
        let service = mount.path().join("occ.service");
        fs::create_dir_all(service.join("control")).unwrap();
        fs::write(service.join("cgroup.controllers"), controllers).unwrap();
        fs::write(service.join("cgroup.subtree_control"), enabled).unwrap();
        fs::write(service.join("cgroup.procs"), processes).unwrap();
        mount
    }

    fn found(mount: &tempfile::TempDir, own: &str, trusted: bool) -> Option<Delegated> {
        find(mount.path(), &format!("4:memory:/\n0::{own}\n"), &LIMITS, |_| trusted)
    }

    #[test]
    fn a_group_beside_the_control_planes_is_limited() {
        let mount = groups("cpu memory pids", "memory pids", "");
        let delegated = found(&mount, "/occ.service/control", true).unwrap();
        for _ in 0..2 {
            let group = delegated.claim("agent", &LIMITS).unwrap();
            assert_eq!(group, mount.path().join("occ.service/occ-agent"));
            assert_eq!(
                fs::read_to_string(group.join("memory.max")).unwrap(),
                (1 << 30).to_string()
            );
            assert_eq!(fs::read_to_string(group.join("pids.max")).unwrap(), "100");
        }
    }

    #[test]
    fn nothing_is_taken_that_was_not_given() {
        let all = "memory pids";
        assert_eq!(
            found(&groups(all, all, ""), "/occ.service/control", false),
            None,
            "not delegated"
        );
        assert_eq!(
            found(&groups(all, all, "17\n"), "/occ.service/control", true),
            None,
            "processes in it"
        );
        assert_eq!(
            found(&groups("memory", "memory", ""), "/occ.service/control", true),
            None,
            "no pids controller"
        );
        assert_eq!(
            found(&groups(all, all, ""), "/", true),
            None,
            "the root has nothing above it"
        );
        let none = Limits {
            open_files: Some(100),
            ..Limits::default()
        };
        let mount = groups(all, all, "");
        assert_eq!(
            find(mount.path(), "0::/occ.service/control", &none, |_| true),
            None,
            "no limit needs it"
        );
    }
}

//! Where everything lies: paths from ids only (driver author's guide, rule 2).

use std::path::{Path, PathBuf};

use occ_core::id::{AgentId, NamespaceId, RevisionId};

/// The directory of one instance of this driver.
#[derive(Debug, Clone)]
pub(crate) struct Root(PathBuf);

impl Root {
    pub(crate) fn new(data_dir: &Path, instance: &str) -> Self {
        Self(data_dir.join("compute").join(instance).join("namespaces"))
    }

    /// The directory that holds the Namespaces.
    pub(crate) fn dir(&self) -> &Path {
        &self.0
    }

    pub(crate) fn namespace(&self, id: NamespaceId) -> NamespacePaths {
        NamespacePaths {
            dir: self.0.join(id.to_string()),
        }
    }
}

/// The places of one Namespace.
#[derive(Debug, Clone)]
pub(crate) struct NamespacePaths {
    pub(crate) dir: PathBuf,
}

impl NamespacePaths {
    pub(crate) fn marker(&self) -> PathBuf {
        self.dir.join("namespace.json")
    }

    pub(crate) fn agents(&self) -> PathBuf {
        self.dir.join("agents")
    }

    pub(crate) fn agent(&self, id: AgentId) -> AgentPaths {
        AgentPaths {
            dir: self.agents().join(id.to_string()),
        }
    }
}

/// The places of one Agent.
#[derive(Debug, Clone)]
pub(crate) struct AgentPaths {
    pub(crate) dir: PathBuf,
}

impl AgentPaths {
    pub(crate) fn marker(&self) -> PathBuf {
        self.dir.join("agent.json")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.join("workspace")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    pub(crate) fn credentials(&self) -> PathBuf {
        self.dir.join("credentials")
    }

    pub(crate) fn password(&self) -> PathBuf {
        self.credentials().join("gateway-password")
    }

    /// Held by the supervisor for as long as it lives: at most one gateway an Agent.
    pub(crate) fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }

    pub(crate) fn ports(&self) -> PathBuf {
        self.dir.join("ports.json")
    }

    /// Names the version that is on the route.
    pub(crate) fn active(&self) -> PathBuf {
        self.dir.join("active")
    }

    pub(crate) fn revisions(&self) -> PathBuf {
        self.dir.join("revisions")
    }

    pub(crate) fn revision(&self, id: RevisionId) -> RevisionPaths {
        RevisionPaths {
            dir: self.revisions().join(id.to_string()),
        }
    }
}

/// The places of one version.
#[derive(Debug, Clone)]
pub(crate) struct RevisionPaths {
    pub(crate) dir: PathBuf,
}

impl RevisionPaths {
    pub(crate) fn marker(&self) -> PathBuf {
        self.dir.join("revision.json")
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.dir.join("files")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// The run that serves. All versions of an Agent share its lock.
    pub(crate) fn serving(&self, agent: &AgentPaths) -> RunPaths {
        RunPaths {
            spec: self.dir.join("spec.json"),
            status: self.dir.join("status.json"),
            stopping: self.dir.join("stopping.json"),
            lock: agent.lock(),
            log: self.logs().join("component.log"),
        }
    }

    /// The run that only checks the version, beside another one that serves. It has a lock of its own.
    pub(crate) fn checking(&self) -> RunPaths {
        RunPaths {
            spec: self.dir.join("check-spec.json"),
            status: self.dir.join("check-status.json"),
            stopping: self.dir.join("check-stopping.json"),
            lock: self.dir.join("check-lock"),
            log: self.logs().join("check.log"),
        }
    }
}

/// The files of one supervisor's run.
#[derive(Debug, Clone)]
pub(crate) struct RunPaths {
    /// What it is told.
    pub(crate) spec: PathBuf,
    /// What it says.
    pub(crate) status: PathBuf,
    /// When it was told to end, so that one that does not end can be killed.
    pub(crate) stopping: PathBuf,
    /// Held while it lives.
    pub(crate) lock: PathBuf,
    /// Its component's output.
    pub(crate) log: PathBuf,
}

/// Beside a run's lock: held while any process of the component lives, also without its supervisor.
pub(crate) fn tree_lock(lock: &Path) -> PathBuf {
    with_suffix(lock, ".tree")
}

/// Beside a run's lock: held while a launch is under way, until the supervisor has its own lock.
pub(crate) fn launch_lock(lock: &Path) -> PathBuf {
    with_suffix(lock, ".launch")
}

/// The path with more at the end of its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(suffix);
    name.into()
}

/// Beside `dir`, where its successor is built before it takes the name. Its leading dot keeps it from being an id.
pub(crate) fn unfinished(dir: &Path) -> PathBuf {
    beside(dir, "new")
}

/// Beside `dir`, where it is taken apart after it lost its name.
pub(crate) fn discarded(dir: &Path) -> PathBuf {
    beside(dir, "old")
}

fn beside(dir: &Path, suffix: &str) -> PathBuf {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    dir.with_file_name(format!(".{name}.{suffix}"))
}

//! What a supervisor is told: one component, fully resolved, without a secret byte.
//!
//! A Compute makes it with [`LaunchSpec::from_component`], writes it to a file that its owner alone may read, and runs
//! `occ-runtime launch --spec FILE`. The secrets travel on standard input as one JSON object from slot key
//! ([`secret_key`]) to value, so that no file, argument or environment of the supervisor holds them.

mod resolve;

use std::{collections::BTreeMap, net::SocketAddr, path::Path};

use occ_core::{
    id::{AgentId, NamespaceId, RevisionId},
    reason::Token,
    resource::{WorkspaceFiles, WorkspaceSetup},
};
use serde::{Deserialize, Serialize};

pub use resolve::{Files, Placement, files, secret_key, secrets};

use crate::identity::read_bounded;

/// Longest spec that is read, in bytes: a Configuration of 1 MiB and four workspace files, escaped, fit.
pub const SPEC_MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Where the value of an environment variable comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum EnvSource {
    /// From here; no secret.
    Text(String),
    /// From the secret of this slot key.
    Secret(String),
}

/// A whole environment by name.
pub type Environment = BTreeMap<String, EnvSource>;

/// One component with all that its supervisor needs. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LaunchSpec {
    /// The version that the component belongs to.
    pub revision_id: RevisionId,
    /// The component's name.
    pub component: Token,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its whole environment.
    pub environment: Environment,
    /// The directory that it starts in.
    pub working_directory: String,
    /// Programs and packages that must exist before anything is started.
    pub requires: Vec<String>,
    /// The supervisor's own files.
    pub files: Files,
    /// How the log is kept.
    pub log: LogPolicy,
    /// How the component shows that it serves.
    pub readiness: Readiness,
    /// The check of the model that runs before it.
    pub probe: Option<Probe>,
    /// The native initialization of the workspace.
    pub workspace: Option<Workspace>,
    /// What the component's processes may use.
    pub limits: Limits,
    /// How long after SIGTERM its whole tree is killed, in milliseconds.
    pub stop_grace_ms: u64,
    /// Where the status is also served over HTTP.
    pub status_listen: Option<SocketAddr>,
    /// Only checks what can be checked without writing to the workspace or starting the component, says
    /// [`State::Checked`](crate::status::State::Checked) or the held failure, and ends. Beside a predecessor that serves.
    #[serde(default)]
    pub check_only: bool,
}

/// How the log file is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogPolicy {
    /// A file that has grown to this many bytes is set aside as `FILE.1`.
    pub max_bytes: u64,
    /// How many set-aside files are kept: `FILE.1` is the youngest.
    pub keep: u32,
}

impl Default for LogPolicy {
    /// 10 MiB, and three older ones.
    fn default() -> Self {
        Self {
            max_bytes: 10 * 1024 * 1024,
            keep: 3,
        }
    }
}

/// How a component shows that it serves: `GET` answers 200 with a JSON body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Readiness {
    /// A loopback URL.
    pub url: String,
    /// How long the component may take from launch to its first 200, in milliseconds.
    pub start_timeout_ms: u64,
}

/// A resolved model check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Probe {
    /// How to read the output.
    pub reader: String,
    /// What the reader compares it with.
    pub expect: BTreeMap<String, String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its whole environment.
    pub environment: Environment,
    /// The check's own directory: made before it, removed after it, and never shared.
    pub directory: String,
    /// Files of the check by their path below its state directory.
    pub files: BTreeMap<String, String>,
    /// Wall time that it may take on an idle CPU, in milliseconds.
    pub base_timeout_ms: u64,
    /// CPU time that it may need, in milliseconds.
    pub cpu_budget_ms: u64,
}

/// A resolved workspace initialization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workspace {
    /// The native command that creates stock files where they are missing.
    pub command: Vec<String>,
    /// Its whole environment.
    pub environment: Environment,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u64,
    /// The workspace.
    pub directory: String,
    /// Where the stock texts lie.
    pub templates: String,
    /// The initial files, or the record that they were applied.
    pub setup: Option<WorkspaceSetup>,
    /// The owning Namespace, for the marker.
    pub namespace_id: NamespaceId,
    /// The Agent, for the marker.
    pub agent_id: AgentId,
}

/// What a component's processes may use. An omitted limit is the one that the supervisor itself has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Open files of a process (`RLIMIT_NOFILE`).
    pub open_files: Option<u64>,
    /// Processes and threads of the user (`RLIMIT_NPROC`).
    pub processes: Option<u64>,
    /// Private writable memory of a process, in bytes (`RLIMIT_DATA`: an address-space limit would stop runtimes that reserve
    /// much and touch little, as V8 does).
    pub memory_bytes: Option<u64>,
    /// A cgroup v2 directory that the Compute made and limited; the component's whole tree runs in it.
    pub cgroup: Option<String>,
}

/// A file that is no launch spec. Never holds a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSpec {
    /// It is absent, unreadable, no regular file, or longer than [`SPEC_MAX_BYTES`].
    #[error("the launch spec cannot be read, or is longer than 8 MiB")]
    Unreadable,
    /// It is not JSON of the wanted shape.
    #[error("the launch spec is not valid at line {line}, column {column}")]
    Malformed {
        /// Line, counted from 1.
        line: usize,
        /// Column, counted from 1.
        column: usize,
    },
    /// A member has a value that it may not have.
    #[error("the launch spec's {0} is not valid")]
    Member(&'static str),
}

impl LaunchSpec {
    /// Reads and checks a spec.
    pub fn read(path: &Path) -> Result<Self, InvalidSpec> {
        let bytes = read_bounded(path, SPEC_MAX_BYTES).ok_or(InvalidSpec::Unreadable)?;
        let spec: Self = serde_json::from_slice(&bytes).map_err(|e| InvalidSpec::Malformed {
            line: e.line(),
            column: e.column(),
        })?;
        spec.validate()?;
        Ok(spec)
    }

    /// Checks what the types alone do not say.
    pub fn validate(&self) -> Result<(), InvalidSpec> {
        let check = |ok: bool, member| {
            if ok { Ok(()) } else { Err(InvalidSpec::Member(member)) }
        };
        check(command_is_valid(&self.command), "command")?;
        check(environment_is_valid(&self.environment), "environment")?;
        check(self.working_directory.starts_with('/'), "workingDirectory")?;
        let files = &self.files;
        check(
            [&files.status, &files.lock, &files.log]
                .iter()
                .all(|path| path.starts_with('/')),
            "files",
        )?;
        check(self.log.max_bytes >= 4096 && self.log.keep <= 99, "log")?;
        check(self.readiness.url.starts_with("http://"), "readiness")?;
        if let Some(probe) = &self.probe {
            let names = probe.files.keys().all(|path| stays_below(path));
            check(
                command_is_valid(&probe.command)
                    && environment_is_valid(&probe.environment)
                    && probe.directory.starts_with('/')
                    && names,
                "probe",
            )?;
        }
        if let Some(workspace) = &self.workspace {
            let files = workspace.setup.as_ref().and_then(|setup| setup.files.as_ref());
            let mut contents = files.into_iter().flat_map(|files| files.0.values());
            check(
                command_is_valid(&workspace.command)
                    && environment_is_valid(&workspace.environment)
                    && workspace.directory.starts_with('/')
                    && contents.all(|content| WorkspaceFiles::check(content).is_ok()),
                "workspace",
            )?;
        }
        Ok(())
    }

    /// The slot keys of every secret that the spec refers to.
    pub fn secret_keys(&self) -> std::collections::BTreeSet<&str> {
        let environments = [
            Some(&self.environment),
            self.probe.as_ref().map(|probe| &probe.environment),
            self.workspace.as_ref().map(|workspace| &workspace.environment),
        ];
        let values = environments.into_iter().flatten().flat_map(BTreeMap::values);
        values
            .filter_map(|source| match source {
                EnvSource::Secret(key) => Some(key.as_str()),
                EnvSource::Text(_) => None,
            })
            .collect()
    }
}

/// Whether a relative path leads to a file below where it starts.
fn stays_below(path: &str) -> bool {
    let mut parts = path.split('/');
    !path.contains('\0') && parts.all(|part| !matches!(part, "" | "." | ".."))
}

fn command_is_valid(command: &[String]) -> bool {
    command.first().is_some_and(|program| !program.is_empty()) && command.iter().all(|text| !text.contains('\0'))
}

fn environment_is_valid(environment: &Environment) -> bool {
    environment.iter().all(|(name, source)| {
        let text_is_valid = match source {
            EnvSource::Text(text) => !text.contains('\0'),
            EnvSource::Secret(_) => true,
        };
        !name.is_empty() && !name.contains(['=', '\0']) && text_is_valid
    })
}

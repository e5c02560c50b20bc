//! One component of a workload.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Directory, Text};
use crate::{reason::Token, resource::EnvName};

/// What a component is for. Credentials follow the role: a dedicated gateway never receives the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// The Agent's gateway, with the Harness elsewhere.
    Gateway,
    /// The Harness alone.
    Harness,
    /// The gateway with its built-in Harness.
    Combined,
}

/// Which secret an environment variable receives. The Compute resolves it at launch; the plan holds no byte of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum SecretSlot {
    /// The model credential of the revision's `harnessAuth`.
    HarnessCredential,
    /// The gateway password that the Compute generated for the Agent.
    GatewayPassword,
    /// A Secret that the Configuration binds under this name.
    Binding(EnvName),
}

/// The value of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum EnvValue {
    /// A text that is no secret.
    Text(Text),
    /// A secret, by reference.
    Secret(SecretSlot),
}

/// A read-only file of the revision, below [`Directory::Files`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlannedFile {
    /// A plain file name; a file of a check may also lie below, by a relative path such as `agents/main/settings.json`.
    pub name: String,
    /// Its content; holds no secret.
    pub content: Text,
}

/// How the supervisor learns that a component serves: `GET` on loopback answers 200 with a JSON body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Readiness {
    /// The component's port by name.
    pub port: String,
    /// The path, such as `/readyz`.
    pub path: String,
    /// How long the component may take from launch to its first 200, in milliseconds.
    pub start_timeout_ms: u64,
}

/// A check of the model that runs before the component, in a directory of its own.
///
/// `reader` names how the supervisor reads the check's output; an id that it does not know ends as `WRAPPER_ERROR`. `report/1`
/// is for any Harness: the last line of standard output is `{"status": "ok" | "auth" | "timeout" | <ProbeStatus>}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Probe {
    /// How to read the output, such as `openclaw-models-status/1` or `report/1`.
    pub reader: String,
    /// What the reader compares the output with.
    pub expect: BTreeMap<String, String>,
    /// The command. [`Directory::Home`], [`Directory::State`] and [`Directory::Temporary`] are fresh and vanish after the check.
    pub command: Vec<Text>,
    /// The whole environment of the check.
    pub environment: BTreeMap<String, EnvValue>,
    /// Files of the check, below [`Directory::State`].
    pub files: Vec<PlannedFile>,
    /// Wall time that a check on an idle CPU may take, in milliseconds.
    pub base_timeout_ms: u64,
    /// CPU time that a check may need, in milliseconds; it is divided by the component's CPU quota and added.
    pub cpu_budget_ms: u64,
}

/// The native initialization of the workspace, and how initial files are applied (spec/engine 12, spec/drivers 1.14).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspaceInit {
    /// The native command that creates stock files where they are missing.
    pub command: Vec<Text>,
    /// Its whole environment.
    pub environment: BTreeMap<String, EnvValue>,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u64,
    /// Where the stock texts of the four files lie, for comparison; a path.
    pub templates: Text,
}

/// How a component is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopPolicy {
    /// How long after SIGTERM its whole tree is killed, in milliseconds.
    pub grace_ms: u64,
}

/// One process tree (or container) of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Component {
    /// Its name: `gateway` or `harness`; also the name in evidence and logs.
    pub name: Token,
    /// What it is for.
    pub role: Role,
    /// The program and its arguments.
    pub command: Vec<Text>,
    /// The whole environment besides what the Compute adds.
    pub environment: BTreeMap<String, EnvValue>,
    /// The revision's files for it.
    pub files: Vec<PlannedFile>,
    /// Names of the ports that it listens on; the Compute chooses the numbers.
    pub ports: Vec<String>,
    /// Directories that it is given.
    pub mounts: Vec<Directory>,
    /// The directory that it starts in.
    pub working_directory: Directory,
    /// How it shows that it serves.
    pub readiness: Readiness,
    /// The check of the model that runs before it.
    pub probe: Option<Probe>,
    /// The native initialization of the workspace.
    pub workspace: Option<WorkspaceInit>,
    /// How it is ended.
    pub stop: StopPolicy,
}

//! Safe facts about a failed preparation: `error.data.preparation` (seed: identities, reasons, scheduling, exits, timestamps).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Token, vocabulary};
use crate::time::Timestamp;

vocabulary! {
    /// Which part of a preparation failed.
    PreparationStage {
        Layout = "layout", "Directories, files or objects of the version.";
        WorkspaceSetup = "workspace_setup", "The initial workspace files.";
        Launch = "launch", "Starting the component.";
        Readiness = "readiness", "Waiting for the component to report ready.";
    }
}

vocabulary! {
    /// What was found.
    PreparationReason {
        ExecutableMissing = "EXECUTABLE_MISSING", "A program that the version needs does not exist or may not be executed.";
        ToolNotConfigured = "TOOL_NOT_CONFIGURED", "The Compute's settings name no path for a tool that the version needs.";
        ComponentExited = "COMPONENT_EXITED", "The component exited before it was ready.";
        PortUnavailable = "PORT_UNAVAILABLE", "No port could be given to the component.";
        StorageFull = "STORAGE_FULL", "There is no space left for the version's files.";
        StorageDenied = "STORAGE_DENIED", "The version's directories may not be written.";
        SupervisorMissing = "SUPERVISOR_MISSING", "The supervisor, occ-runtime, could not be started.";
        SetupConflict = "SETUP_CONFLICT", "A workspace file holds other content than the stock text or the submitted one.";
        SetupFailed = "SETUP_FAILED", "The native setup of the workspace failed.";
    }
}

/// What can be said of a failed preparation. Nothing in it is free text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Preparation {
    /// Which part failed.
    pub stage: PreparationStage,
    /// What was found.
    pub reason: PreparationReason,
    /// The component, when one is concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<Token>,
    /// Its exit status, when it exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<u8>,
    /// The signal that ended it, such as `SIGKILL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Token>,
    /// When it was found.
    pub at: Timestamp,
}

//! The four files of an Agent's workspace that OCC knows (seed: Agents, "Workspace files"; spec/engine 12).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Largest content of one file, in UTF-8 bytes.
pub const WORKSPACE_FILE_MAX_BYTES: usize = 16 * 1024;

/// A file that OCC may write into a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum WorkspaceFileName {
    /// `AGENTS.md`
    #[serde(rename = "AGENTS.md")]
    Agents,
    /// `SOUL.md`
    #[serde(rename = "SOUL.md")]
    Soul,
    /// `IDENTITY.md`
    #[serde(rename = "IDENTITY.md")]
    Identity,
    /// `USER.md`
    #[serde(rename = "USER.md")]
    User,
}

impl WorkspaceFileName {
    /// Every name.
    pub const ALL: [Self; 4] = [Self::Agents, Self::Soul, Self::Identity, Self::User];

    /// The file's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "AGENTS.md",
            Self::Soul => "SOUL.md",
            Self::Identity => "IDENTITY.md",
            Self::User => "USER.md",
        }
    }

    /// The name with this spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == text)
    }
}

/// A content that may not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWorkspaceFile {
    /// More than [`WORKSPACE_FILE_MAX_BYTES`].
    #[error("must fit within 16 KiB when encoded as UTF-8")]
    TooLong,
    /// Contains NUL.
    #[error("must not contain NUL")]
    Nul,
}

/// Contents by name. Omitted names keep what the native initialization wrote; an empty text makes an empty file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct WorkspaceFiles(pub BTreeMap<WorkspaceFileName, String>);

impl WorkspaceFiles {
    /// Checks one content.
    pub fn check(content: &str) -> Result<(), InvalidWorkspaceFile> {
        if content.len() > WORKSPACE_FILE_MAX_BYTES {
            Err(InvalidWorkspaceFile::TooLong)
        } else if content.contains('\0') {
            Err(InvalidWorkspaceFile::Nul)
        } else {
            Ok(())
        }
    }
}

/// Initial files that wait, privately, for the Agent's first deployment (spec/engine 1.14). In no response and in no revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspaceSetup {
    /// Identity of the setup; the durable marker in the workspace repeats it.
    pub id: Uuid,
    /// SHA-256 of the templates that the caller saw, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults_id: Option<String>,
    /// Contents to write. `None` exactly when the setup is completed: the staged bytes are then gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<WorkspaceFiles>,
}

impl WorkspaceSetup {
    /// Whether the files were applied once; they are then never applied again.
    pub const fn completed(&self) -> bool {
        self.files.is_none()
    }
}

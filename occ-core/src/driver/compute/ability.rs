//! The optional abilities of a Compute.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{AgentRef, RevisionRef};
use crate::{
    driver::{EffectResult, LifecycleHooks, OperationContext},
    reason::Token,
    resource::{Name, WorkspaceFileName},
    secret_value::SecretValue,
    time::Timestamp,
};

/// Generated transport credentials of an Agent, such as its gateway password. Provisioning without deletion cannot be written.
#[async_trait]
pub trait RuntimeCredentials: Send + Sync {
    /// Whether the Agent's credentials exist.
    async fn exist(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<bool>;

    /// Creates them if they do not exist; never overwrites.
    async fn provision(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<()>;

    /// Deletes them; absent is well.
    async fn delete(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<()>;
}

/// Where a gateway is and how one enters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayEndpoint {
    /// Its base URL, such as `http://127.0.0.1:40123`.
    pub url: String,
    /// A file on this host, readable by its owner alone, that holds the password; for a Compute whose users share its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<String>,
}

/// A private way to an Agent's gateway.
#[async_trait]
pub trait GatewayAccess: Send + Sync {
    /// Where the selected version's gateway is. `None` when this version has no route. No statement about its health.
    async fn endpoint(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Option<GatewayEndpoint>>;

    /// The gateway's password, for OCC's own calls to it.
    async fn password(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<Option<SecretValue>>;
}

/// Initial workspace files: [`RevisionContext::workspace_setup`](super::RevisionContext) is applied once, before anything runs.
#[async_trait]
pub trait WorkspaceSetupSupport: Send + Sync {
    /// Forgets staged contents of a completed setup, wherever the Compute passed them through.
    async fn discard(&self, cx: &OperationContext, agent: &AgentRef, setup: Uuid) -> EffectResult<()>;
}

/// The files of a selected version's live workspace (seed: Live file access).
#[async_trait]
pub trait LiveWorkspace: Send + Sync {
    /// The file's content; `None` when there is none. A content that is no text, or beyond 16 KiB, is a fault.
    async fn read(
        &self,
        cx: &OperationContext,
        revision: &RevisionRef,
        name: WorkspaceFileName,
    ) -> EffectResult<Option<String>>;

    /// Creates or replaces the file, as a whole.
    async fn write(
        &self,
        cx: &OperationContext,
        revision: &RevisionRef,
        name: WorkspaceFileName,
        content: &str,
    ) -> EffectResult<()>;
}

/// What one check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// It is as it should be.
    Succeeded,
    /// It is not.
    Failed,
    /// It could not be seen. Never read as success.
    Unknown,
}

/// One fresh check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// The component.
    pub component: Token,
    /// The check.
    pub check: Token,
    /// What it found.
    pub status: CheckStatus,
    /// A code, when it did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Token>,
    /// When.
    pub checked_at: Timestamp,
}

/// Fresh checks of a version; changes nothing and proves no model reply (seed: Current runtime diagnostics).
#[async_trait]
pub trait Diagnostics: Send + Sync {
    /// At most 32 checks.
    async fn diagnose(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Vec<Check>>;
}

/// Which log lines are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogQuery {
    /// The component; the gateway when not said.
    pub component: Option<Token>,
    /// The last so many lines, 1 to 1000.
    pub lines: u16,
}

/// Recent log lines of a version.
#[async_trait]
pub trait RuntimeLogs: Send + Sync {
    /// The last lines, oldest first, each at most 16 KiB; the engine redacts them.
    async fn read(&self, cx: &OperationContext, revision: &RevisionRef, query: &LogQuery) -> EffectResult<Vec<String>>;
}

/// An image that a version runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeImage {
    /// The component.
    pub component: String,
    /// The reference that was asked for.
    pub image: String,
    /// The content that runs.
    pub image_id: Option<String>,
}

/// The images that a version runs.
#[async_trait]
pub trait RuntimeImages: Send + Sync {
    /// One row a component.
    async fn images(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Vec<RuntimeImage>>;
}

/// A driver's own record of an Agent, rebuilt before every operation after authorization (spec/contracts 4.3, bindAgent).
#[async_trait]
pub trait AgentBinding: Send + Sync {
    /// Binds the Agent; repeatable.
    async fn bind(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<()>;
}

/// Periodic repetition of prepare and activate for the selected version.
pub trait Maintenance: Send + Sync {
    /// How often.
    fn interval(&self) -> Duration;
}

/// Knowing without a look that nothing changed: for a Compute that is told of every change, as by the watch of an API. Versions that
/// wait then cost next to nothing, however many they are.
pub trait RevisionWatch: Send + Sync {
    /// Whether what this Compute answered last about the version certainly still holds. Asked as often as the version would be looked
    /// at, so it is answered from memory. When in doubt it is `false`: then the version is looked at. It is looked at every five minutes
    /// all the same.
    fn unchanged(&self, revision: &RevisionRef) -> bool;
}

/// Adoption of an existing namespace of the Compute; the only case in which a driver touches what it did not create.
pub trait NamespaceAdoption: Send + Sync {
    /// Whether an existing namespace may have this name; pure.
    fn accepts(&self, name: &str) -> bool;
}

/// Takes other drivers' hooks around workloads (spec/contracts 7).
pub trait HookHost: Send + Sync {
    /// Called once, before any effect, with the hooks in selection order.
    fn attach(&self, hooks: Vec<std::sync::Arc<dyn LifecycleHooks>>);

    /// The Compute's namespace in which a Sandbox of this Namespace lives.
    fn sandbox_namespace(&self, namespace: &Name) -> Option<String>;
}

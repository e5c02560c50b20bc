//! The resources of an Installation, as they are stored and as callers see them (spec/engine 1).
//!
//! These types hold what is valid: a value that parsed needs no second look. Private parts (a Secret's locator, a
//! snapshot's driver ids) live in types of their own, so that a public view cannot carry them by accident.

mod account;
mod agent;
mod backend;
mod configuration;
mod harness_auth;
mod namespace;
mod owned;
mod plugin;
mod revision;
mod secret;
mod source;
mod text;
mod workspace_files;

pub use account::{Email, InvalidEmail};
pub use agent::{Agent, AgentCredentialSource, AgentStatus, DesiredRuntimeState, ExecutionMode};
pub use backend::{Backend, BackendKind};
pub use configuration::{Configuration, ConfigurationKind, Document, SecretBinding, SecretBindings, SecretDelivery};
pub use harness_auth::{
    HarnessAuth, HarnessAuthMethod, HarnessAuthSnapshot, SecretSnapshot, SecretSource, SecretSourceKind, TokenSource,
};
pub use namespace::{Installation, Namespace, NamespaceStatus};
pub use owned::{
    AccountBinding, AccountCredential, AccountCredentialKind, LaunchSettings, OwnedKind, Preset, ProviderAccount,
    ServiceAccount, TokenRequest,
};
pub use plugin::{Approval, Approver, InvalidPluginId, PluginId, PluginSelection, Plugins, Reviewer, ToolPolicy};
pub use revision::{AgentRevision, ComputeIdentity, HarnessIdentity, PluginDriverIdentity, PluginsSnapshot, Snapshot};
pub use secret::{BackendRef, Secret};
pub use source::{
    CredentialSource, InvalidWord, LoginMode, SourceField, SourceSnapshot, SourceState, SourceType, Telling,
    Withdrawal, WithdrawalState,
};
pub use text::{BackendId, EnvName, InvalidEnvName, InvalidName, Name, PrincipalId};
pub use workspace_files::{
    InvalidWorkspaceFile, WORKSPACE_FILE_MAX_BYTES, WorkspaceFileName, WorkspaceFiles, WorkspaceSetup,
};

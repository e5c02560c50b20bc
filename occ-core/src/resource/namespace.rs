//! Installation and Namespace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Name;
use crate::{
    id::{InstallationId, NamespaceId},
    time::Timestamp,
};

/// The Installation: exactly one a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Installation {
    /// Its id.
    pub id: InstallationId,
    /// Its name.
    pub name: Name,
    /// When the database was bootstrapped.
    pub created_at: Timestamp,
}

/// What a Namespace is going through (spec/engine 1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NamespaceStatus {
    /// Compute is being asked to provide it.
    Provisioning,
    /// Agents may be deployed.
    Ready,
    /// Compute refused it, or did not provide it in time.
    Failed,
    /// It is being removed.
    Deleting,
}

/// The owner of every tenant resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// Its id.
    pub id: NamespaceId,
    /// Its name: unique in the Installation, and not reusable after deletion.
    pub name: Name,
    /// A namespace of the Compute that is adopted instead of created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub existing_namespace: Option<String>,
    /// What it is going through.
    pub status: NamespaceStatus,
    /// When it was created.
    pub created_at: Timestamp,
}

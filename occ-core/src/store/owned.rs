//! How small resources are kept: one row each, their content as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::{
    driver::{ResourceKind, ResourceRef},
    id::{NamespaceId, SecretId},
    resource::{
        AccountBinding, AccountCredential, CredentialSource, Document, LaunchSettings, Name, OwnedKind, Preset,
        ServiceAccount, SourceField, SourceState, SourceType, Telling, Withdrawal,
    },
    time::Timestamp,
};

/// The row of a small resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRow {
    /// What kind it is.
    pub kind: OwnedKind,
    /// Its id.
    pub id: String,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// Its name, unique among those of its kind in the Namespace.
    pub name: Name,
    /// Its content.
    pub body: Document,
    /// The Secrets that its content names, for looking up from the Secret.
    pub secrets: Vec<SecretId>,
    /// Grows with each write.
    pub version: u64,
    /// When it was created.
    pub created_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AccountBody {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credential: Option<AccountCredential>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    binding: Option<AccountBinding>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deleting: bool,
}

fn body(content: &impl Serialize) -> Document {
    match serde_json::to_value(content) {
        Ok(serde_json::Value::Object(body)) => body,
        _ => Document::new(),
    }
}

impl From<&ServiceAccount> for OwnedRow {
    fn from(account: &ServiceAccount) -> Self {
        let credential = account.credential.clone();
        let binding = account.binding.clone();
        let deleting = account.deleting;
        Self {
            kind: OwnedKind::ServiceAccount,
            id: account.id.to_string(),
            namespace_id: account.namespace_id,
            name: account.name.clone(),
            secrets: credential.iter().map(|credential| credential.secret_id).collect(),
            body: body(&AccountBody {
                credential,
                binding,
                deleting,
            }),
            version: account.version,
            created_at: account.created_at,
        }
    }
}

impl TryFrom<OwnedRow> for ServiceAccount {
    type Error = StoreError;
    fn try_from(row: OwnedRow) -> Result<Self, StoreError> {
        let corrupt = StoreError::Corrupt("ServiceAccount");
        let body: AccountBody = serde_json::from_value(row.body.into()).map_err(|_| corrupt)?;
        Ok(Self {
            id: row.id.parse().map_err(|_| corrupt)?,
            namespace_id: row.namespace_id,
            name: row.name,
            credential: body.credential,
            binding: body.binding,
            deleting: body.deleting,
            version: row.version,
            created_at: row.created_at,
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SourceBody {
    gateway_id: String,
    #[serde(rename = "type")]
    kind: SourceType,
    config: BTreeMap<SourceField, String>,
    secrets: BTreeMap<SourceField, SecretId>,
    state: SourceState,
    #[serde(default)]
    registered: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tellings: Vec<Telling>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    withdrawals: Vec<Withdrawal>,
}

impl From<&CredentialSource> for OwnedRow {
    fn from(source: &CredentialSource) -> Self {
        let content = SourceBody {
            gateway_id: source.gateway_id.clone(),
            kind: source.kind.clone(),
            config: source.config.clone(),
            secrets: source.secrets.clone(),
            state: source.state,
            registered: source.registered,
            tellings: source.tellings.clone(),
            withdrawals: source.withdrawals.clone(),
        };
        let mut secrets: Vec<_> = source.secrets.values().copied().collect();
        secrets.sort_unstable();
        secrets.dedup();
        Self {
            kind: OwnedKind::CredentialSource,
            id: source.id.to_string(),
            namespace_id: source.namespace_id,
            name: source.name.clone(),
            secrets,
            body: body(&content),
            version: source.version,
            created_at: source.created_at,
        }
    }
}

impl TryFrom<OwnedRow> for CredentialSource {
    type Error = StoreError;
    fn try_from(row: OwnedRow) -> Result<Self, StoreError> {
        let corrupt = StoreError::Corrupt("CredentialSource");
        let body: SourceBody = serde_json::from_value(row.body.into()).map_err(|_| corrupt)?;
        Ok(Self {
            id: row.id.parse().map_err(|_| corrupt)?,
            namespace_id: row.namespace_id,
            name: row.name,
            gateway_id: body.gateway_id,
            kind: body.kind,
            config: body.config,
            secrets: body.secrets,
            state: body.state,
            registered: body.registered,
            tellings: body.tellings,
            withdrawals: body.withdrawals,
            version: row.version,
            created_at: row.created_at,
        })
    }
}

impl OwnedRow {
    /// It as something that is granted: a resource of this kind.
    pub(crate) fn resource(&self, kind: ResourceKind) -> ResourceRef {
        ResourceRef {
            kind,
            id: self.id.clone(),
            namespace_id: Some(self.namespace_id),
        }
    }

    /// A Preset's row.
    pub fn preset(preset: &Preset, version: u64) -> Self {
        Self {
            kind: OwnedKind::Preset,
            id: preset.id.to_string(),
            namespace_id: preset.namespace_id,
            name: preset.name.clone(),
            body: body(&preset.settings),
            // A Preset is copied, not consulted: what it names may go, and whoever uses it then is told.
            secrets: Vec::new(),
            version,
            created_at: preset.created_at,
        }
    }
}

impl TryFrom<OwnedRow> for Preset {
    type Error = StoreError;
    fn try_from(row: OwnedRow) -> Result<Self, StoreError> {
        let corrupt = StoreError::Corrupt("Preset");
        let settings: LaunchSettings = serde_json::from_value(row.body.into()).map_err(|_| corrupt)?;
        Ok(Self {
            id: row.id.parse().map_err(|_| corrupt)?,
            namespace_id: row.namespace_id,
            name: row.name,
            settings,
            created_at: row.created_at,
        })
    }
}

//! The Credential Gateway contract: keeps credentials and mediates their use, so that a workload holds placeholders only (spec/contracts
//! 11).

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DriverIdentity, EffectResult, LifecycleHooks, OperationContext, RevisionRef};
use crate::{
    id::{CredentialSourceId, NamespaceId},
    resource::{EnvName, LoginMode, Name, SourceField, SourceType},
    secret_value::SecretValue,
};

/// A type of source that a gateway knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceTypeInfo {
    /// Its name.
    pub kind: SourceType,
    /// Its settings, each required.
    pub config: Vec<SourceField>,
    /// Its credentials, each required.
    pub secrets: Vec<SourceField>,
    /// How a Harness logs in with it; none when it is no model credential.
    pub login_mode: Option<LoginMode>,
}

/// The source that an operation is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceIdentity {
    /// The source.
    pub id: CredentialSourceId,
    /// The owning Namespace.
    pub namespace_id: NamespaceId,
    /// Its name, for people.
    pub name: Name,
    /// What it is.
    pub kind: SourceType,
}

/// What a source is made of.
pub struct SourceContent<'a> {
    /// Its settings: exactly those of its type.
    pub config: &'a BTreeMap<SourceField, String>,
    /// Its credentials: exactly those of its type.
    pub secrets: &'a BTreeMap<SourceField, SecretValue>,
}

/// How a source is, as the gateway sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceCondition {
    /// It can be used.
    Ready,
    /// Not yet.
    Pending,
    /// It cannot, as it is.
    Failed,
    /// The gateway has none.
    Absent,
}

/// A source that a version may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The source.
    pub source: CredentialSourceId,
    /// What the Harness's environment receives: placeholders that mean nothing outside of the gateway.
    pub placeholders: BTreeMap<EnvName, String>,
}

/// How the use of a source by a version is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentCondition {
    /// The version can use it.
    Ready,
    /// Not yet.
    Pending,
    /// The gateway holds it back.
    Withheld,
    /// It cannot.
    Failed,
    /// It can no more: there is evidence.
    Revoked,
    /// The gateway knows of no such use.
    Absent,
}

/// A setting of a source that the gateway cannot accept. Holds no value of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRejection {
    /// The setting.
    pub field: SourceField,
    /// What is accepted, as a sentence.
    pub accepted: &'static str,
}

/// Keeps credentials and mediates their use.
#[async_trait]
pub trait CredentialGateway: Send + Sync {
    /// Who this instance is. A version freezes its id.
    fn identity(&self) -> &DriverIdentity;

    /// Looks whether the gateway can work at all; an error stops the start.
    async fn preflight(&self, _cx: &OperationContext) -> EffectResult<()> {
        Ok(())
    }

    /// The types of source that it knows.
    fn source_types(&self) -> &[SourceTypeInfo];

    /// Whether it accepts these settings, which are exactly those of the type; pure.
    fn validate(&self, _kind: &SourceType, _config: &BTreeMap<SourceField, String>) -> Result<(), SourceRejection> {
        Ok(())
    }

    /// Keeps a copy of the credentials. A repetition, or new content, replaces what it has of the same source.
    async fn register(
        &self,
        cx: &OperationContext,
        source: &SourceIdentity,
        content: SourceContent<'_>,
    ) -> EffectResult<SourceCondition>;

    /// How the source is now.
    async fn condition(&self, cx: &OperationContext, source: &SourceIdentity) -> EffectResult<SourceCondition>;

    /// Removes the source and its credentials; absent is well.
    async fn remove(&self, cx: &OperationContext, source: &SourceIdentity) -> EffectResult<()>;

    /// Lets a version use these sources: exactly one answer each. A repetition answers the same.
    async fn attach(
        &self,
        cx: &OperationContext,
        revision: &RevisionRef,
        sources: &[SourceIdentity],
    ) -> EffectResult<Vec<Attachment>>;

    /// Whether a version can use a source now; always looked at, never remembered.
    async fn attachment(
        &self,
        cx: &OperationContext,
        revision: &RevisionRef,
        source: &SourceIdentity,
    ) -> EffectResult<AttachmentCondition>;

    /// Ends a version's use of a source. Whether it has ended is what [`attachment`](Self::attachment) then shows.
    async fn withdraw(
        &self,
        cx: &OperationContext,
        revision: &RevisionRef,
        source: &SourceIdentity,
    ) -> EffectResult<()>;

    /// Hooks that it wants around workloads.
    fn lifecycle_hooks(&self) -> Option<Arc<dyn LifecycleHooks>> {
        None
    }
}

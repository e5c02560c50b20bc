//! Identities and the native policy that the Installation keeps (spec/engine 11).
//!
//! The records live in the store; what they mean is an IAM Driver's business. [`PolicyReader`] is how a driver reads them.

mod possible;

pub use possible::{InvalidRequest, check_request};

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    driver::{Action, EffectResult, Identity, ResourceKind},
    id::NamespaceId,
    resource::PrincipalId,
};

/// One permission of a Role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Permission {
    /// What is done.
    pub action: Action,
    /// To which kind of thing.
    pub kind: ResourceKind,
}

/// A named set of permissions; immutable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Role {
    /// Its id.
    pub id: String,
    /// The Namespace that it is confined to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<NamespaceId>,
    /// What it permits.
    pub permissions: Vec<Permission>,
}

/// Grants a Role to a subject; immutable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessBinding {
    /// Its id.
    pub id: String,
    /// The Namespace that it is confined to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<NamespaceId>,
    /// Who is granted.
    pub subject: Subject,
    /// What is granted.
    pub role_id: String,
    /// The exact resource that it is confined to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ExactResource>,
}

/// Who a binding grants to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "id", rename_all = "snake_case")]
pub enum Subject {
    /// A principal.
    Identity(PrincipalId),
    /// The human members of a group.
    Group(String),
}

/// An exact resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExactResource {
    /// Its kind.
    pub kind: ResourceKind,
    /// Its id.
    pub id: String,
}

/// Forbids, whatever is granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Restriction {
    /// Its id.
    pub id: String,
    /// The Namespace that it is confined to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<NamespaceId>,
    /// What is forbidden.
    pub action: Action,
    /// To which kind of thing.
    pub kind: ResourceKind,
    /// To which thing alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
}

/// All of the policy that can bear on one principal, read at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// The identity; `None` when there is none.
    pub identity: Option<Identity>,
    /// Groups that the principal is a direct member of.
    pub groups: Vec<String>,
    /// Bindings whose subject is the principal or one of those groups.
    pub bindings: Vec<AccessBinding>,
    /// The Roles that those bindings name.
    pub roles: Vec<Role>,
    /// Every Restriction.
    pub restrictions: Vec<Restriction>,
}

/// Reads identities and policy from the Installation's store.
#[async_trait]
pub trait PolicyReader: Send + Sync {
    /// What bears on this principal.
    async fn grants(&self, principal: &PrincipalId) -> EffectResult<Grants>;

    /// What bears on each of these. A store reads all of it at one moment.
    async fn grants_of(&self, principals: &[PrincipalId]) -> EffectResult<Vec<(PrincipalId, Grants)>> {
        let mut all = Vec::with_capacity(principals.len());
        for principal in principals {
            all.push((principal.clone(), self.grants(principal).await?));
        }
        Ok(all)
    }
}

#[async_trait]
impl<P: PolicyReader + ?Sized> PolicyReader for Arc<P> {
    async fn grants(&self, principal: &PrincipalId) -> EffectResult<Grants> {
        (**self).grants(principal).await
    }

    async fn grants_of(&self, principals: &[PrincipalId]) -> EffectResult<Vec<(PrincipalId, Grants)>> {
        (**self).grants_of(principals).await
    }
}

/// A policy that grants nothing; for tools and tests that build drivers without a store.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPolicy;

#[async_trait]
impl PolicyReader for NoPolicy {
    async fn grants(&self, _: &PrincipalId) -> EffectResult<Grants> {
        Ok(Grants::default())
    }
}

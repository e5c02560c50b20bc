//! Audit: what was done, by whom, on which decision; written in the same transaction as the deed (spec/engine 14).

pub mod chain;
pub(crate) mod credentials;
mod redaction;
#[cfg(feature = "engine")]
pub mod sealing;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    driver::{AccessRequest, Decision, ResourceRef},
    id::{AuditId, NamespaceId, RequestId},
    resource::PrincipalId,
};

/// What sort of event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// The Installation was set up.
    Bootstrap,
    /// Something was changed, or a change failed.
    Mutation,
    /// Somebody was refused.
    AuthorizationDenial,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditOutcome {
    /// It was done.
    Success,
    /// It was not done.
    Failure,
    /// It was refused.
    Denied,
}

/// One event. Details hold ids, codes and counts; never a secret, a document or a text of a caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// Its id.
    pub id: AuditId,
    /// What sort of event it is.
    pub kind: AuditKind,
    /// Who acted.
    pub actor: PrincipalId,
    /// What was done: `openclaw.agents.deploy`.
    pub action: String,
    /// To what.
    pub resource: ResourceRef,
    /// How it ended.
    pub outcome: AuditOutcome,
    /// The request that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// The question that was asked of the IAM Driver, and its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Authorization>,
    /// A code: `[A-Z0-9_]{1,64}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<String>,
    /// Ids, codes and counts.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authorization {
    /// The question.
    pub request: AccessRequest,
    /// The answer.
    pub decision: Decision,
}

impl AuditEvent {
    /// A success without details.
    pub fn mutation(actor: PrincipalId, action: &str, resource: ResourceRef) -> Self {
        Self {
            id: AuditId::random(),
            kind: AuditKind::Mutation,
            actor,
            action: action.to_owned(),
            resource,
            outcome: AuditOutcome::Success,
            request_id: None,
            authorization: None,
            reason_code: None,
            details: Map::new(),
        }
    }

    /// A refusal by the IAM Driver.
    pub fn denial(actor: PrincipalId, action: &str, authorization: Authorization) -> Self {
        Self {
            kind: AuditKind::AuthorizationDenial,
            outcome: AuditOutcome::Denied,
            resource: authorization.request.resource.clone(),
            authorization: Some(authorization.clone()),
            ..Self::mutation(actor, action, authorization.request.resource)
        }
    }

    /// The same with a detail, as far as it may be recorded.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), redaction::clean(key, value.into()));
        self
    }

    /// The same with a reason code.
    #[must_use]
    pub fn because(mut self, code: &str) -> Self {
        self.reason_code = Some(code.to_owned());
        self
    }

    /// The same, caused by this request and allowed by this decision.
    #[must_use]
    pub fn of(mut self, request: Option<RequestId>, authorization: Option<Authorization>) -> Self {
        self.request_id = request;
        self.authorization = authorization;
        self
    }

    /// The Namespace that the event belongs to.
    pub fn namespace_id(&self) -> Option<NamespaceId> {
        self.resource.namespace_id
    }
}

//! A change as `apply` takes it: JSON, and bytes beside it.

use std::time::Duration;

use serde_json::{Value, json};

use super::account;
use crate::{
    audit::AuditEvent,
    driver::StateWrite,
    iam::Subject,
    resource::{Agent, NamespaceStatus, WorkspaceSetup},
    store::{
        CommitError, ConfigurationRow, Expect, OwnedRow, Write,
        row::{
            resource::{plugins_of, secret_of, secrets_of, sources_of},
            settlement::{Next, Settlement},
            work::TargetColumns,
        },
    },
    time::Timestamp,
    trace::TraceContext,
    work::{ClaimToken, NewWork, Target},
};

pub(super) fn expect(expect: &Expect) -> Value {
    match expect {
        Expect::ClaimHeld(token) => json!({ "is": "claim_held", "token": token }),
        Expect::Namespace(id, version) => json!({ "is": "namespace", "id": id, "version": version }),
        Expect::NamespaceStatus(id, statuses) => json!({ "is": "namespace_status", "id": id, "statuses": statuses }),
        Expect::Agent(id, version) => json!({ "is": "agent", "id": id, "version": version }),
        Expect::AgentRuntime { agent, active, desired } => {
            json!({ "is": "agent_runtime", "id": agent, "active": active, "desired": desired })
        }
        Expect::Configuration(id, version) => json!({ "is": "configuration", "id": id, "version": version }),
        Expect::Secret(id, version) => json!({ "is": "secret", "id": id, "version": version }),
        Expect::RevisionCount(id, count) => json!({ "is": "revision_count", "id": id, "version": count }),
        Expect::ConfigurationDeleting(id) => json!({ "is": "configuration_deleting", "id": id }),
        Expect::Owned(id, version) => json!({ "is": "owned", "id": id, "version": version }),
        Expect::OwnedUnreferenced(id) => json!({ "is": "owned_unreferenced", "id": id }),
        Expect::NoAnswer(principal, key) => json!({ "is": "no_answer", "principal": principal, "key": key }),
        Expect::SecretUnreferenced(id) => json!({ "is": "secret_unreferenced", "id": id }),
        Expect::ConfigurationUnreferenced(id) => json!({ "is": "configuration_unreferenced", "id": id }),
        Expect::NamespaceEmpty(id) => json!({ "is": "namespace_empty", "id": id }),
        Expect::NoInstallation => json!({ "is": "no_installation" }),
        Expect::AccessBinding(id) => json!({ "is": "access_binding", "id": id }),
        Expect::Role(id) => json!({ "is": "role", "id": id }),
        Expect::RoleUnreferenced(id) => json!({ "is": "role_unreferenced", "id": id }),
        Expect::Account(id, version) => json!({ "is": "account", "id": id, "version": version }),
        Expect::WorkFailed(key) => json!({ "is": "work_failed", "key": key }),
        Expect::WorkActor(key, actor) => json!({ "is": "work_actor", "key": key, "actor": actor }),
    }
}

/// Everything but settlements, which rest on the claimed row.
// One short arm a write.
#[allow(clippy::too_many_lines)]
pub(super) fn write(write: &Write, bytes: &mut Vec<Vec<u8>>) -> Result<Value, CommitError> {
    let row = |op: &str, row: Value| json!({ "op": op, "row": row });
    let named = |op: &str, id: &dyn std::fmt::Display| json!({ "op": op, "id": id.to_string() });
    Ok(match write {
        Write::Installation(installation) => row(
            "installation",
            json!({
                "id": installation.id, "name": installation.name, "created_at": installation.created_at.as_millis(),
            }),
        ),
        Write::Principal(id, name) => row("principal", json!({ "id": id, "kind": "human", "name": name })),
        Write::Role(role) => row(
            "role",
            json!({ "id": role.id, "namespace_id": role.namespace_id, "permissions": role.permissions }),
        ),
        Write::AccessBinding(binding) => {
            let (kind, subject) = match &binding.subject {
                Subject::Identity(id) => ("identity", id.as_str()),
                Subject::Group(id) => ("group", id.as_str()),
            };
            let resource = binding.resource.as_ref();
            row(
                "access_binding",
                json!({
                    "id": binding.id, "namespace_id": binding.namespace_id, "subject_kind": kind, "subject_id": subject,
                    "role_id": binding.role_id, "resource_kind": resource.map(|resource| resource.kind.as_str()),
                    "resource_id": resource.map(|resource| &resource.id),
                }),
            )
        }
        Write::DeleteRole(id) => named("delete_role", id),
        Write::DeleteAccessBinding(id) => named("delete_access_binding", id),
        Write::ServiceKey(key) => row(
            "service_key",
            json!({
                "id": key.id, "principal_id": key.principal, "name": key.name, "secret_hash": key.secret_hash,
                "namespace_id": key.namespace_id, "expires_at": key.expires_at.map(Timestamp::as_millis),
            }),
        ),
        Write::RevokeServiceKey(id) => named("revoke_service_key", id),
        Write::Account(_)
        | Write::AccountCode(..)
        | Write::AccountPassword(..)
        | Write::AccountDisabled(..)
        | Write::Session(_)
        | Write::TouchSession(_)
        | Write::EndSession(_)
        | Write::EndSessions(_)
        | Write::FederatedIdentity { .. }
        | Write::UnlinkIdentities(_)
        | Write::AgentTokenKey(_) => account::write(write).ok_or(CommitError::Refused)?,
        Write::Namespace(namespace) => {
            // A Namespace that is born deleting would have no one to answer for it.
            if namespace.status == NamespaceStatus::Deleting {
                return Err(CommitError::Refused);
            }
            row(
                "namespace",
                json!({
                    "id": namespace.id, "name": namespace.name, "existing_namespace": namespace.existing_namespace,
                    "status": namespace.status, "created_at": namespace.created_at.as_millis(),
                }),
            )
        }
        Write::NamespaceStatus {
            id,
            status,
            deletion_actor,
        } => json!({ "op": "namespace_status", "id": id, "status": status, "actor": deletion_actor }),
        Write::NamespaceTombstone(id) => named("namespace_tombstone", id),
        Write::Configuration(configuration) => self::configuration("configuration", configuration),
        Write::UpdateConfiguration(configuration) => self::configuration("update_configuration", configuration),
        Write::DeleteConfiguration(id) => named("delete_configuration", id),
        Write::Secret(secret) | Write::UpdateSecret(secret) => row(
            if matches!(write, Write::Secret(_)) {
                "secret"
            } else {
                "update_secret"
            },
            json!({
                "id": secret.id, "namespace_id": secret.namespace_id, "name": secret.name, "driver_id": secret.driver_id,
                "backend_ref": secret.backend_ref, "version": secret.version, "deleting": secret.deleting,
                "created_at": secret.created_at.as_millis(),
            }),
        ),
        Write::DeleteSecret(id) => named("delete_secret", id),
        Write::Owned(owned) => self::owned("owned", owned),
        Write::UpdateOwned(owned) => self::owned("update_owned", owned),
        Write::DeleteOwned(kind, id) => json!({ "op": "delete_owned", "kind": kind, "id": id }),
        Write::Answer(first) => row(
            "answer",
            json!({
                "principal": first.principal, "key": first.key, "fingerprint": first.fingerprint, "answer": first.answer,
            }),
        ),
        Write::Agent(agent, None) => row("agent", self::agent(agent)),
        Write::Agent(agent, Some(setup)) => {
            json!({ "op": "agent", "row": self::agent(agent), "setup": self::setup(agent, setup) })
        }
        Write::UpdateAgent(agent) => row("update_agent", self::agent(agent)),
        Write::AgentState { id, desired, status } => {
            json!({ "op": "agent_state", "id": id, "desired": desired, "status": status })
        }
        Write::DropWorkspaceSetup(id) => named("drop_workspace_setup", id),
        Write::CompleteWorkspaceSetup(id) => named("complete_workspace_setup", id),
        Write::Revision {
            revision,
            bytes: snapshot,
        } => {
            bytes.push(snapshot.clone());
            json!({
                "op": "revision", "bytes": bytes.len(), "secrets": secrets_of(revision),
                "row": {
                    "id": revision.id, "namespace_id": revision.namespace_id, "agent_id": revision.agent_id,
                    "number": revision.revision, "digest": revision.digest,
                    "created_at": revision.created_at.as_millis(),
                },
            })
        }
        Write::ActiveRevision(agent, revision) => json!({ "op": "active_revision", "id": agent, "revision": revision }),
        Write::RevisionRetired(id) => named("revision_retired", id),
        Write::RemoveAgent(id) => named("remove_agent", id),
        Write::Enqueue(work) => row("enqueue", self::work(work, Duration::ZERO)),
        Write::EnqueueLater(work, delay) => row("enqueue", self::work(work, *delay)),
        Write::Requeue(work) => {
            let key = work.target.key();
            // How a deployment or a stop ended is never rewritten: those are repeated as new work.
            if matches!(
                work.target,
                Target::Revision { .. }
                    | Target::Maintenance { .. }
                    | Target::AgentStopped { .. }
                    | Target::CredentialsWithdrawn { .. }
            ) {
                return Err(CommitError::Conflict(Expect::WorkFailed(key)));
            }
            json!({
                "op": "requeue", "key": key, "actor": work.actor,
                "traceparent": work.trace.as_ref().map(TraceContext::parent),
                "tracestate": work.trace.as_ref().and_then(TraceContext::state),
            })
        }
        Write::Settle(..) => return Err(CommitError::Refused),
    })
}

/// A duration as the database counts it.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 2)
}

fn configuration(op: &str, row: &ConfigurationRow) -> Value {
    let mut secrets: Vec<_> = row.secret_bindings.values().map(|binding| binding.source.id).collect();
    secrets.sort_unstable();
    secrets.dedup();
    json!({
        "op": op, "secrets": secrets,
        "row": {
            "id": row.id, "namespace_id": row.namespace_id, "kind": row.kind, "generation": row.generation,
            "secret_bindings": row.secret_bindings, "deleting": row.deleting, "created_at": row.created_at.as_millis(),
        },
    })
}

fn owned(op: &str, row: &OwnedRow) -> Value {
    json!({
        "op": op, "secrets": row.secrets,
        "row": {
            "id": row.id, "kind": row.kind, "namespace_id": row.namespace_id, "name": row.name, "body": row.body,
            "version": row.version, "created_at": row.created_at.as_millis(),
        },
    })
}

/// An Agent's row.
pub(super) fn agent(agent: &Agent) -> Value {
    json!({
        "id": agent.id, "namespace_id": agent.namespace_id, "name": agent.name,
        "service_principal_id": agent.service_principal_id, "configuration_id": agent.configuration_id,
        "backend_id": agent.backend_id, "harness_auth": agent.harness_auth,
        "plugins": plugins_of(agent), "plugin_approvers": agent.plugin_approvers,
        "credential_sources": sources_of(agent),
        "secret_id": secret_of(agent.harness_auth.as_ref()), "execution_mode": agent.execution_mode,
        "desired": agent.desired_runtime_state, "active_revision_id": agent.active_revision_id, "status": agent.status,
        "created_at": agent.created_at.as_millis(),
    })
}

fn setup(agent: &Agent, setup: &WorkspaceSetup) -> Value {
    json!({ "agent_id": agent.id, "id": setup.id, "defaults_id": setup.defaults_id, "files": setup.files })
}

/// New work, due after so long.
pub(super) fn work(work: &NewWork, delay: Duration) -> Value {
    let columns = TargetColumns::of(&work.target);
    json!({
        "key": work.target.key(), "kind": columns.kind, "namespace_id": work.target.namespace(), "agent_id": columns.agent,
        "revision_id": columns.revision, "operation": columns.operation, "bucket": columns.bucket,
        "lane": work.target.lane().to_string(), "actor": work.actor, "delay": millis(delay),
        "traceparent": work.trace.as_ref().map(TraceContext::parent),
        "tracestate": work.trace.as_ref().and_then(TraceContext::state),
    })
}

/// A settlement of the claim with this token, or of work that nobody claimed.
pub(super) fn settlement(token: Option<ClaimToken>, settlement: &Settlement) -> Value {
    let mut settled = match &settlement.next {
        Next::Queued {
            attempts,
            extra_attempts,
            delay,
            last_attempt,
        } => json!({
            "op": "settle", "state": "queued", "attempts": attempts, "extra_attempts": extra_attempts,
            "delay": millis(*delay), "last_attempt": last_attempt,
            "news": settlement.event.is_some(),
        }),
        Next::Ended { state, code, result } => json!({
            "op": "settle", "state": state, "code": code,
            "result": serde_json::from_str::<Value>(result).unwrap_or_default(),
        }),
    };
    if let Some(token) = token {
        settled["token"] = json!(token);
    }
    settled
}

pub(super) fn state(write: &StateWrite, bytes: &mut Vec<Vec<u8>>) -> Value {
    let value = write.value.as_ref().map(|value| {
        bytes.push(value.clone());
        bytes.len()
    });
    json!({ "driver": write.driver, "key": write.key, "expected": write.expected, "bytes": value })
}

pub(super) fn event(event: &AuditEvent) -> Value {
    json!({
        "id": event.id, "kind": event.kind, "actor": event.actor, "action": event.action,
        "resource_kind": event.resource.kind.as_str(), "resource_id": event.resource.id,
        "namespace_id": event.namespace_id(), "outcome": event.outcome, "request_id": event.request_id,
        "authorization": event.authorization, "reason_code": event.reason_code, "details": event.details,
    })
}

//! Work, as its row has it.

use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::Value;

use super::{Columns, Corrupt, Row};
use crate::{
    id::{AgentId, NamespaceId, RevisionId},
    reason::{Failure, RuntimeFailure, Success},
    resource::PrincipalId,
    store::{DeploymentRow, LeftOver, WorkState},
    time::Timestamp,
    trace::TraceContext,
    work::{FailureData, LastAttempt, NewWork, Target, Warning},
};

/// The kind's word and the columns that only some kinds have.
pub(in crate::store) struct TargetColumns {
    pub kind: &'static str,
    pub agent: Option<String>,
    pub revision: Option<String>,
    pub operation: Option<String>,
    pub bucket: Option<u64>,
}

impl TargetColumns {
    pub(in crate::store) fn of(target: &Target) -> Self {
        let (operation, bucket) = match target {
            Target::AgentStopped { operation, .. } | Target::CredentialsWithdrawn { operation, .. } => {
                (Some(operation.to_string()), None)
            }
            Target::Maintenance { bucket, .. } => (None, Some(*bucket)),
            _ => (None, None),
        };
        Self {
            kind: target.kind(),
            agent: target.agent().map(|id| id.to_string()),
            revision: target.revision().map(|id| id.to_string()),
            operation,
            bucket,
        }
    }
}

fn target(row: &Columns<'_, impl Row>) -> Result<Target, Corrupt> {
    let namespace = row.parsed("namespace_id")?;
    Ok(match row.text("kind")?.as_str() {
        "namespace_ready" => Target::NamespaceReady { namespace },
        "namespace_deleted" => Target::NamespaceDeleted { namespace },
        "agent_stopped" => Target::AgentStopped {
            namespace,
            agent: row.parsed("agent_id")?,
            operation: row.parsed("operation")?,
        },
        "agent_deleted" => Target::AgentDeleted {
            namespace,
            agent: row.parsed("agent_id")?,
        },
        "revision" => Target::Revision {
            namespace,
            agent: row.parsed("agent_id")?,
            revision: row.parsed("revision_id")?,
        },
        "maintenance" => Target::Maintenance {
            namespace,
            agent: row.parsed("agent_id")?,
            revision: row.parsed("revision_id")?,
            bucket: row.number("bucket")?,
        },
        "credentials_withdrawn" => Target::CredentialsWithdrawn {
            namespace,
            agent: row.parsed("agent_id")?,
            revision: row.parsed("revision_id")?,
            operation: row.parsed("operation")?,
        },
        _ => return Err(row.corrupt()),
    })
}

/// Live work.
#[derive(Debug, Clone)]
pub(in crate::store) struct WorkRow {
    pub key: String,
    pub target: Target,
    pub actor: PrincipalId,
    pub attempts: u32,
    pub extra_attempts: u32,
    pub last_attempt: Option<LastAttempt>,
    pub created_at: Timestamp,
    pub trace: Option<TraceContext>,
}

/// What does not read as a context is none: nothing depends on a trace.
fn trace(row: &Columns<'_, impl Row>) -> Option<TraceContext> {
    let parent = row.optional_text("traceparent").ok()??;
    let state = row.optional_text("tracestate").ok().flatten();
    TraceContext::parse(&parent, state.as_deref())
}

impl WorkRow {
    pub(in crate::store) fn of(row: &impl Row) -> Result<Self, Corrupt> {
        let row = Columns { row, of: "work" };
        Ok(Self {
            key: row.text("key")?,
            target: target(&row)?,
            actor: row.parsed("actor")?,
            attempts: row.number("attempts")?,
            extra_attempts: row.number("extra_attempts")?,
            last_attempt: row.optional_json("last_attempt")?,
            created_at: row.moment("created_at")?,
            trace: trace(&row),
        })
    }

    /// `None` for a row that does not decode: one spoilt row must not keep the others from being worked off.
    pub(in crate::store) fn readable(row: &impl Row) -> Option<Self> {
        let read = Self::of(row);
        if read.is_err() {
            let work = Columns { row, of: "work" }.text("key").ok();
            tracing::error!(work, "a stored piece of work does not decode");
        }
        read.ok()
    }
}

/// The stored result of a success.
#[derive(serde::Serialize)]
pub(in crate::store) struct SuccessResult {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// A part of a stored result; none when it is not there or does not decode.
fn part<T: DeserializeOwned>(result: &Value, name: &str) -> Option<T> {
    T::deserialize(result.get(name)?).ok()
}

/// The facts of a failure, each as far as this version knows it: what another version wrote of them says less, and is no fault.
fn facts(result: &Value) -> FailureData {
    let evidence = part(result, "runtimeFailure").or_else(|| {
        // A cause that is not known takes nothing else with it.
        let mut without = result.get("runtimeFailure")?.clone();
        without.as_object_mut()?.remove("cause");
        RuntimeFailure::deserialize(without).ok()
    });
    FailureData {
        timeout_ms: part(result, "timeoutMs"),
        runtime_failure: evidence,
        preparation: part(result, "preparation"),
    }
}

fn warnings(result: &Value) -> Vec<Warning> {
    let all = result.get("warnings").and_then(Value::as_array);
    let read = all.into_iter().flatten().map(Warning::deserialize);
    read.filter_map(Result::ok).collect()
}

/// How work stands. With a column `held`: whether its lease is live, by the database's clock; lapsed, it reads as queued.
pub(in crate::store) fn state(row: &impl Row) -> Result<WorkState, Corrupt> {
    let row = Columns { row, of: "work" };
    Ok(match row.text("state")?.as_str() {
        "claimed" if row.flag("held")? => WorkState::Running {
            last_attempt: row.optional_json("last_attempt")?,
        },
        "queued" | "claimed" => WorkState::Queued {
            available_at: row.moment("available_at")?,
            last_attempt: row.optional_json("last_attempt")?,
        },
        "succeeded" | "failed" => over_with(&row)?,
        _ => return Err(row.corrupt()),
    })
}

/// How work ended. A code of another version is the default of its sort (spec/engine 8.2); a success that is not known is none.
fn over_with(row: &Columns<'_, impl Row>) -> Result<WorkState, Corrupt> {
    let code = row.text("code")?;
    let result: Value = row.json("result")?;
    let at = row.moment("completed_at")?;
    Ok(match Success::from_code(&code) {
        Some(code) if row.text("state")? == "succeeded" => WorkState::Succeeded {
            code,
            warnings: warnings(&result),
            at,
        },
        _ => WorkState::Failed {
            failure: Failure::read(&code),
            data: facts(&result),
            actor: row.parsed("actor")?,
            attempts: row.number("attempts")?,
            at,
        },
    })
}

/// Whether work is over.
pub(in crate::store) const fn over(state: &WorkState) -> bool {
    matches!(state, WorkState::Succeeded { .. } | WorkState::Failed { .. })
}

/// A deployment: the columns of its work, if it has any, with `live` and `active` of its version, and `cleanup_at`.
pub(in crate::store) fn deployment(
    row: &impl Row,
    namespace: NamespaceId,
    agent: AgentId,
    revision: RevisionId,
) -> Result<DeploymentRow, Corrupt> {
    let columns = Columns {
        row,
        of: "AgentRevision",
    };
    let work = match columns.optional_text("key")? {
        Some(_) => Some(state(row)?),
        None => None,
    };
    let over = work.as_ref().is_some_and(over);
    let left_over = if over && columns.flag("live")? && !columns.flag("active")? {
        let next_attempt_at = columns.optional_moment("cleanup_at")?;
        Some(LeftOver { next_attempt_at })
    } else {
        None
    };
    Ok(DeploymentRow {
        revision,
        agent,
        namespace,
        work,
        left_over,
    })
}

/// Maintenance of a selected version, for whoever deployed it. Its bucket is the present, so that each call asks for work of its own.
pub(in crate::store) fn selected(row: &impl Row) -> Result<NewWork, Corrupt> {
    let row = Columns {
        row,
        of: "selected version",
    };
    let target = Target::Maintenance {
        namespace: row.parsed("namespace_id")?,
        agent: row.parsed("id")?,
        revision: row.parsed("active_revision_id")?,
        bucket: row.number("present")?,
    };
    Ok(NewWork::new(target, row.parsed("actor")?))
}

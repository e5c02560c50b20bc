//! The change that callers wait for, in one statement.
//!
//! An admission writes five rows under five expectations; as one statement that costs little more than the rows, and several at once
//! are one statement too. It is the same change as any other: one that has another shape, and one of which something does not hold, is
//! [`apply`](super::commit)'s.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use sqlx::types::Json;

use super::{PostgresStore, arguments, change, fault::Fault, locks::Locks, together::committed};
use crate::{
    id::{AgentId, ConfigurationId, NamespaceId, SecretId},
    resource::NamespaceStatus,
    store::{Change, Expect, Write, row::resource::secrets_of},
    trace::TraceContext,
    work::Target,
};

const ADMIT: &str = "SELECT admit($1, $2, $3, $4)";

/// A change that is an admission and nothing else.
pub(super) struct Admission {
    locks: Locks,
    agent: AgentId,
    row: Value,
    bytes: Vec<u8>,
}

/// What it rests on.
#[derive(Default)]
struct Expected {
    namespace: Option<NamespaceId>,
    agent: Option<(AgentId, u64)>,
    earlier: Option<(AgentId, u64)>,
    configuration: Option<(ConfigurationId, u64)>,
    secrets: Vec<(SecretId, u64)>,
}

impl Expected {
    /// `None` when it is of another sort, or there twice.
    fn of(expects: &[Expect]) -> Option<Self> {
        let mut all = Self::default();
        for expect in expects {
            let first = match expect {
                Expect::NamespaceStatus(id, [NamespaceStatus::Ready]) => all.namespace.replace(*id).is_none(),
                Expect::Agent(id, version) => all.agent.replace((*id, *version)).is_none(),
                Expect::RevisionCount(id, count) => all.earlier.replace((*id, *count)).is_none(),
                Expect::Configuration(id, generation) => all.configuration.replace((*id, *generation)).is_none(),
                Expect::Secret(id, version) => {
                    all.secrets.push((*id, *version));
                    true
                }
                _ => false,
            };
            if !first {
                return None;
            }
        }
        Some(all)
    }
}

impl Admission {
    pub(super) fn of(change: &Change) -> Option<Self> {
        let (
            [
                Write::UpdateAgent(agent),
                Write::Revision { revision, bytes },
                Write::Enqueue(work),
            ],
            [event],
            [],
        ) = (&*change.writes, &*change.audit, &*change.state)
        else {
            return None;
        };
        let expected = Expected::of(&change.expect)?;
        let target = Target::Revision {
            namespace: agent.namespace_id,
            agent: agent.id,
            revision: revision.id,
        };
        let (of, version) = expected.agent?;
        let earlier = revision.revision.checked_sub(1)?;
        let whole = expected.namespace == Some(agent.namespace_id)
            && of == agent.id
            && expected.earlier == Some((agent.id, earlier))
            && revision.agent_id == agent.id
            && revision.namespace_id == agent.namespace_id
            && work.target == target;
        let secrets: Map<_, _> = expected
            .secrets
            .iter()
            .map(|(id, version)| (id.to_string(), json!(version)))
            .collect();
        whole.then(|| Self {
            locks: Locks::of(change),
            agent: agent.id,
            row: json!({
                "owner": agent.namespace_id, "agent": agent.id, "draft": change::agent(agent), "version": version,
                "configuration": expected.configuration.map(|(id, _)| id),
                "generation": expected.configuration.map(|(_, generation)| generation),
                "secrets": secrets, "earlier": earlier, "revision": revision.id, "digest": revision.digest,
                "frozen_at": revision.created_at.as_millis(), "frozen": secrets_of(revision),
                "key": work.target.key(), "actor": work.actor,
                "traceparent": work.trace.as_ref().map(TraceContext::parent),
                "tracestate": work.trace.as_ref().and_then(TraceContext::state),
                "event": change::event(event),
            }),
            bytes: bytes.clone(),
        })
    }
}

impl PostgresStore {
    /// Whether it was committed. Otherwise nothing was, and [`apply`](super::commit) says why.
    pub(super) async fn admit(&self, admission: Admission) -> Result<bool, Fault> {
        let answer = self.asked.admissions.ask(admission, |all| self.admit_all(all)).await;
        answer.unwrap_or(Err(Fault::Lost))
    }

    /// Of two admissions of one Agent the later one is left out: the earlier one changes what it rests on.
    async fn admit_all(&self, admissions: Vec<Admission>) -> Vec<Result<bool, Fault>> {
        let count = admissions.len();
        let (mut locks, mut agents) = (Locks::default(), HashSet::new());
        let (mut rows, mut snapshots) = (Vec::new(), Vec::new());
        for (number, mut admission) in admissions.into_iter().enumerate() {
            if agents.insert(admission.agent) {
                locks.join(admission.locks);
                admission.row["number"] = json!(number);
                rows.push(admission.row);
                admission.row = Value::Null;
            }
            snapshots.push(admission.bytes);
        }
        let sent = async {
            let (names, alone): (Vec<_>, Vec<_>) = locks.into_iter().unzip();
            let arguments = arguments![names, alone, Json(rows), snapshots];
            self.connections.once(ADMIT, arguments).await
        };
        committed(sent.await, count)
    }
}

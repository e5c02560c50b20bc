//! The change that callers wait for, in one statement.
//!
//! An admission writes five rows under five expectations; as one statement that costs little more than the rows. It is the same
//! change as any other: one that has another shape, and one of which something does not hold, is [`apply`](super::commit)'s.

use sqlx::{Row as _, types::Json};

use super::{PostgresStore, arguments, change, fault::Fault, locks::Locks};
use crate::{
    audit::AuditEvent,
    id::{AgentId, ConfigurationId, NamespaceId, SecretId},
    resource::{Agent, AgentRevision, NamespaceStatus},
    store::{Change, Expect, Write, row::resource::secrets_of},
    trace::TraceContext,
    work::{NewWork, Target},
};

const ADMIT: &str =
    "SELECT admit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";

/// A change that is an admission and nothing else.
pub(super) struct Admission<'a> {
    locks: Locks,
    expected: Expected,
    agent: &'a Agent,
    revision: &'a AgentRevision,
    bytes: &'a [u8],
    work: &'a NewWork,
    event: &'a AuditEvent,
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

impl<'a> Admission<'a> {
    pub(super) fn of(change: &'a Change) -> Option<Self> {
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
        let whole = expected.namespace == Some(agent.namespace_id)
            && expected.agent.is_some_and(|(id, _)| id == agent.id)
            && expected.earlier == Some((agent.id, revision.revision.checked_sub(1)?))
            && revision.agent_id == agent.id
            && revision.namespace_id == agent.namespace_id
            && work.target == target;
        whole.then(|| Self {
            locks: Locks::of(change),
            expected,
            agent,
            revision,
            bytes,
            work,
            event,
        })
    }
}

impl PostgresStore {
    /// Whether it was committed. Otherwise nothing was, and [`apply`](super::commit) says why.
    pub(super) async fn admit(&self, admission: Admission<'_>) -> Result<bool, Fault> {
        let Admission {
            locks,
            expected,
            agent,
            revision,
            bytes,
            work,
            event,
        } = admission;
        let (lock_names, lock_alone): (Vec<_>, Vec<_>) = locks.into_iter().unzip();
        let (secret_ids, secret_versions): (Vec<_>, Vec<_>) = expected
            .secrets
            .iter()
            .map(|(id, version)| (id.to_string(), number(*version)))
            .unzip();
        let frozen: Vec<_> = secrets_of(revision).into_iter().collect();
        let arguments = arguments![
            lock_names,
            lock_alone,
            agent.namespace_id.to_string(),
            agent.id.to_string(),
            Json(change::agent(agent)),
            expected.agent.map(|(_, version)| number(version)),
            expected.configuration.map(|(id, _)| id.to_string()),
            expected.configuration.map(|(_, generation)| number(generation)),
            secret_ids,
            secret_versions,
            expected.earlier.map(|(_, count)| number(count)),
            revision.id.to_string(),
            bytes.to_vec(),
            revision.digest.clone(),
            revision.created_at.as_millis(),
            frozen,
            work.target.key(),
            work.actor.as_str().to_owned(),
            work.trace.as_ref().map(TraceContext::parent),
            work.trace.as_ref().and_then(TraceContext::state),
            Json(change::event(event)),
        ];
        match self.connections.once(ADMIT, arguments).await {
            Ok(rows) => Ok(rows[0].try_get(0)?),
            // Nothing of it happened.
            Err(Fault::Refused(_)) => Ok(false),
            Err(fault) => Err(fault),
        }
    }
}

fn number(of: u64) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

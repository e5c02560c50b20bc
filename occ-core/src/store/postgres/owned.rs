//! Small resources, first answers, what is left of rows that do not decode, and the audit with its seals.

use serde_json::{Value, json};
use sqlx::types::Json;

use super::{
    PostgresStore, arguments,
    fault::Fault,
    record::{Record, collected, each, first, one, records, versions},
};
use crate::{
    audit::chain::{self, AuditQuery, AuditRecord},
    id::{AgentId, NamespaceId, RevisionId},
    resource::{OwnedKind, PrincipalId},
    store::{
        AgentRow, FirstAnswer, OwnedRow, SavedRevision, Slice,
        row::{Columns, audit, number, resource, word},
    },
};

const ONE: &str = records!(
    "owned",
    "SELECT * FROM owned WHERE id = $1 AND namespace_id = $2 AND kind = $3"
);
const ALL: &str = records!(
    "owned",
    "SELECT * FROM owned WHERE namespace_id = $1 AND kind = $2 AND (created_at, id) > ($3, $4)
    ORDER BY created_at, id LIMIT $5"
);
const ANSWER: &str = records!(
    "answer",
    "SELECT * FROM answers WHERE principal = $1 AND key = $2 AND created_at > occ.present() - 86400000"
);
const AGENTS: &str = records!(
    "agent",
    "SELECT * FROM agents WHERE namespace_id = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4"
);
const REVISION: &str = versions!("revision", "id = $1 AND agent_id = $2 AND namespace_id = $3");
const REVISIONS: &str = versions!(
    "revision",
    "agent_id = $1 AND namespace_id = $2 AND number > $3 ORDER BY number LIMIT $4"
);
/// Recorded events by an index: one plan serves all of a statement, so whatever has an index of its own has a statement of its own.
macro_rules! records_by {
    ($index:literal) => {
        records!(
            "audit",
            "SELECT a.*, s.position, s.hash FROM audit a LEFT JOIN audit_seals s ON s.sequence = a.sequence
            WHERE a.sequence < $1 AND ",
            $index,
            " AND ($2::text IS NULL OR a.namespace_id = $2) AND ($3::text IS NULL OR a.actor = $3)
                AND ($4::text IS NULL OR a.action = $4) AND ($5::text IS NULL OR a.resource_id = $5)
                AND ($6::text IS NULL OR a.outcome = $6)
            ORDER BY a.sequence DESC LIMIT $7"
        )
    };
}
const RECORDS: &str = records_by!("TRUE");
const RECORDS_OF_ACTOR: &str = records_by!("a.actor = $3");
const RECORDS_OF_RESOURCE: &str = records_by!("a.resource_id = $5");
const SEALED: &str = records!(
    "audit",
    "SELECT a.*, s.position, s.hash FROM audit_seals s JOIN audit a ON a.sequence = s.sequence
    WHERE s.position > $1 ORDER BY s.position LIMIT $2"
);
/// A transaction takes its sequence before it commits: what commits late is looked for among the latest ten thousand.
const UNSEALED: &str = concat!(
    records!("installation", "SELECT id FROM installation"),
    " UNION ALL ",
    records!(
        "last",
        "SELECT position, hash FROM audit_seals ORDER BY position DESC LIMIT 1"
    ),
    " UNION ALL ",
    records!(
        "audit",
        "SELECT a.*, NULL::bigint AS position, NULL::text AS hash FROM audit a
        WHERE a.sequence > coalesce((SELECT max(sequence) FROM audit_seals), 0) - 10000
            AND NOT EXISTS (SELECT 1 FROM audit_seals s WHERE s.sequence = a.sequence)
        ORDER BY a.sequence LIMIT $1"
    )
);

impl PostgresStore {
    pub(super) async fn read_owned(
        &self,
        namespace: NamespaceId,
        kind: OwnedKind,
        id: &str,
    ) -> Result<Option<OwnedRow>, Fault> {
        let arguments = arguments![id.to_owned(), namespace.to_string(), kind.as_str()];
        first(&self.connections.again(ONE, arguments).await?, resource::owned)
    }

    pub(super) async fn read_all_owned(
        &self,
        namespace: NamespaceId,
        kind: OwnedKind,
        slice: &Slice,
    ) -> Result<Vec<OwnedRow>, Fault> {
        let (order, id) = slice.place();
        let arguments = arguments![namespace.to_string(), kind.as_str(), order, id, i64::from(slice.limit)];
        collected(&self.connections.again(ALL, arguments).await?, resource::owned)
    }

    pub(super) async fn read_answer(&self, principal: &PrincipalId, key: &str) -> Result<Option<FirstAnswer>, Fault> {
        let arguments = arguments![principal.to_string(), key.to_owned()];
        first(&self.connections.again(ANSWER, arguments).await?, audit::answer)
    }

    pub(super) async fn read_agents_in(&self, namespace: NamespaceId, slice: &Slice) -> Result<Vec<AgentRow>, Fault> {
        let (order, id) = slice.place();
        let arguments = arguments![namespace.to_string(), order, id, i64::from(slice.limit)];
        collected(&self.connections.again(AGENTS, arguments).await?, resource::agent)
    }

    pub(super) async fn read_saved_revision(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> Result<Option<SavedRevision>, Fault> {
        let arguments = arguments![id.to_string(), agent.to_string(), namespace.to_string()];
        let rows = self.connections.again(REVISION, arguments).await?;
        first(&rows, resource::saved_revision)
    }

    pub(super) async fn read_saved_revisions(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        slice: &Slice,
    ) -> Result<Vec<SavedRevision>, Fault> {
        let (order, _) = slice.place();
        let arguments = arguments![agent.to_string(), namespace.to_string(), order, i64::from(slice.limit)];
        collected(
            &self.connections.again(REVISIONS, arguments).await?,
            resource::saved_revision,
        )
    }

    pub(super) async fn read_records(&self, query: &AuditQuery) -> Result<Vec<AuditRecord>, Fault> {
        let before = query.before.map_or(Ok(i64::MAX), number)?;
        let outcome = query.outcome.as_ref().map(word).transpose()?;
        let arguments = arguments![
            before,
            query.namespace.map(|id| id.to_string()),
            query.actor.as_ref().map(ToString::to_string),
            query.action.clone(),
            query.resource.clone(),
            outcome,
            i64::from(query.limit)
        ];
        let statement = match (&query.resource, &query.actor) {
            (Some(_), _) => RECORDS_OF_RESOURCE,
            (None, Some(_)) => RECORDS_OF_ACTOR,
            (None, None) => RECORDS,
        };
        collected(&self.connections.again(statement, arguments).await?, audit::record)
    }

    pub(super) async fn read_sealed(&self, after: u64, limit: u32) -> Result<Vec<AuditRecord>, Fault> {
        let arguments = arguments![number(after)?, i64::from(limit)];
        collected(&self.connections.again(SEALED, arguments).await?, audit::record)
    }

    pub(super) async fn seal(&self, limit: u32) -> Result<u32, Fault> {
        let rows = self.connections.again(UNSEALED, arguments![i64::from(limit)]).await?;
        let found = Record::all(&rows)?;
        let installation = one(&found, "installation", |row| {
            let of = "Installation";
            Columns { row, of }.parsed("id")
        })?;
        let records = each(&found, "audit", audit::record)?;
        let (Some(installation), false) = (installation, records.is_empty()) else {
            return Ok(0);
        };
        let last = one(&found, "last", |row| {
            let row = Columns { row, of: "seal" };
            Ok((row.number::<u64>("position")?, row.text("hash")?))
        })?;
        let (after, mut hash) = last.unwrap_or_else(|| (0, chain::root(installation)));
        let seals: Vec<Value> = (after + 1..)
            .zip(&records)
            .map(|(position, record)| {
                hash = chain::link(&hash, position, record.occurred_at, &record.event);
                json!([position, record.sequence, hash])
            })
            .collect();
        let arguments = arguments![number(after)?, Json(Value::from(seals))];
        let sealed = self.undone_whole("SELECT seal($1, $2)", arguments).await?;
        u32::try_from(sealed).map_err(|_| Fault::Corrupt("seal"))
    }
}

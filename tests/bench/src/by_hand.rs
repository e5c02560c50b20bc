//! What an admission is compared with: one statement that writes the same rows into the same tables, and checks nothing itself.

use occ_core::id::{AgentId, RevisionId};
use sqlx::{
    ConnectOptions as _, PgConnection, Row as _,
    postgres::PgConnectOptions,
    types::{Json, JsonValue},
};
use tokio::{task::JoinSet, time::Instant};
use uuid::Uuid;

use crate::{Error, measure};

/// The rows of an Agent's latest admission.
const ROWS: &str = r#"
SELECT r.namespace_id, r.number, r.snapshot, r.digest, r.created_at, w.actor, a.action, a.request_id, a."authorization",
    a.details, ARRAY(SELECT secret_id FROM occ.revision_secrets s WHERE s.revision_id = r.id) AS secrets
FROM occ.revisions r
JOIN occ.work w ON w.revision_id = r.id
JOIN occ.audit a ON a.resource_id = r.id
WHERE r.agent_id = $1 ORDER BY r.number DESC LIMIT 1"#;

/// The same rows once more, as the next version.
const WRITE: &str = r#"
WITH version AS (
    INSERT INTO occ.revisions (id, namespace_id, agent_id, number, snapshot, digest, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
), frozen AS (
    INSERT INTO occ.revision_secrets SELECT $1, secret FROM unnest($8::text[]) secret
), draft AS (
    UPDATE occ.agents SET version = version + 1, desired = 'running' WHERE id = $3
), queued AS (
    INSERT INTO occ.work (key, kind, namespace_id, agent_id, revision_id, lane, actor, available_at, created_at)
    VALUES ('agent_revision:' || $1 || ':reconcile', 'revision', $2, $3, $1, $3, $9, $7, $7)
)
INSERT INTO occ.audit (id, occurred_at, kind, actor, action, resource_kind, resource_id, namespace_id, outcome, request_id,
    "authorization", details)
VALUES ($10, $7, 'mutation', $9, $11, 'agent_revision', $1, $2, 'success', $12, $13, $14)"#;

/// So many, by so many callers at once, each on a connection of its own. Every Agent has been deployed before.
pub(crate) async fn per_second(url: &str, agents: &[AgentId], count: usize, callers: usize) -> Result<f64, Error> {
    let mut prepared = Vec::with_capacity(callers);
    for caller in 0..callers {
        let own = agents.iter().skip(caller).step_by(callers);
        prepared.push(Caller::new(url, own).await.map_err(|_| Error::ByHand)?);
    }
    let mut tasks = JoinSet::new();
    let begun = Instant::now();
    for (number, mut caller) in prepared.into_iter().enumerate() {
        let share = (number..count).step_by(callers).len();
        tasks.spawn(async move { caller.write(share).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(|_| Error::Stuck)?.map_err(|_| Error::ByHand)?;
    }
    Ok(measure::per_second(count, begun.elapsed()))
}

/// A connection, and the Agents whose versions it writes.
struct Caller {
    connection: PgConnection,
    agents: Vec<Rows>,
}

struct Rows {
    namespace: String,
    agent: String,
    number: i64,
    snapshot: Vec<u8>,
    digest: String,
    created_at: i64,
    secrets: Vec<String>,
    actor: String,
    action: String,
    request: Option<String>,
    authorization: Json<JsonValue>,
    details: Json<JsonValue>,
}

impl Caller {
    async fn new(url: &str, own: impl Iterator<Item = &AgentId>) -> Result<Self, sqlx::Error> {
        let options: PgConnectOptions = url.parse()?;
        let mut connection: PgConnection = options.disable_statement_logging().connect().await?;
        let mut agents = Vec::new();
        for agent in own {
            let row = sqlx::query(ROWS)
                .bind(agent.to_string())
                .fetch_one(&mut connection)
                .await?;
            agents.push(Rows {
                namespace: row.try_get("namespace_id")?,
                agent: agent.to_string(),
                number: row.try_get("number")?,
                snapshot: row.try_get("snapshot")?,
                digest: row.try_get("digest")?,
                created_at: row.try_get("created_at")?,
                secrets: row.try_get("secrets")?,
                actor: row.try_get("actor")?,
                action: row.try_get("action")?,
                request: row.try_get("request_id")?,
                authorization: row.try_get("authorization")?,
                details: row.try_get("details")?,
            });
        }
        Ok(Self { connection, agents })
    }

    async fn write(&mut self, count: usize) -> Result<(), sqlx::Error> {
        let agents = self.agents.len();
        for number in 0..count {
            let rows = &mut self.agents[number % agents];
            rows.number += 1;
            sqlx::query(WRITE)
                .bind(RevisionId::random().to_string())
                .bind(&rows.namespace)
                .bind(&rows.agent)
                .bind(rows.number)
                .bind(&rows.snapshot)
                .bind(&rows.digest)
                .bind(rows.created_at)
                .bind(&rows.secrets)
                .bind(&rows.actor)
                .bind(format!("aud_{}", Uuid::new_v4()))
                .bind(&rows.action)
                .bind(&rows.request)
                .bind(&rows.authorization)
                .bind(&rows.details)
                .execute(&mut self.connection)
                .await?;
        }
        Ok(())
    }
}

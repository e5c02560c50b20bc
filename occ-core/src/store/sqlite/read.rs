//! Reads of resources.

use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{fault::Fault, now};
use crate::{
    id::{AgentId, ConfigurationId, NamespaceId, SecretId},
    resource::{Installation, Secret},
    store::{
        AgentRow, ConfigurationRow, Consumers, NamespaceRow, Slice,
        row::{Columns, Corrupt, resource},
    },
    time::Timestamp,
};

/// A part of what a Namespace owns, by creation.
macro_rules! sliced {
    ($table:literal) => {
        concat!(
            "SELECT * FROM ",
            $table,
            " WHERE namespace_id = ? AND (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?"
        )
    };
}

/// Every row, decoded.
pub(super) fn collected<T>(
    rows: &[SqliteRow],
    decode: impl Fn(&SqliteRow) -> Result<T, Corrupt>,
) -> Result<Vec<T>, Fault> {
    Ok(rows.iter().map(decode).collect::<Result<_, _>>()?)
}

pub(super) async fn now(db: &mut SqliteConnection) -> Result<Timestamp, Fault> {
    let row = sqlx::query(concat!("SELECT ", now!())).fetch_one(db).await?;
    Ok(Timestamp::from_millis(row.try_get(0)?))
}

pub(super) async fn installation(db: &mut SqliteConnection) -> Result<Option<Installation>, Fault> {
    let row = sqlx::query("SELECT id, name, created_at FROM installation")
        .fetch_optional(db)
        .await?;
    Ok(row.as_ref().map(resource::installation).transpose()?)
}

pub(super) async fn namespace(db: &mut SqliteConnection, id: NamespaceId) -> Result<Option<NamespaceRow>, Fault> {
    let query = "SELECT * FROM namespaces WHERE id = ? AND status <> 'deleted'";
    let row = sqlx::query(query).bind(id.to_string()).fetch_optional(db).await?;
    Ok(row.as_ref().map(resource::namespace).transpose()?)
}

pub(super) async fn namespaces(db: &mut SqliteConnection, slice: &Slice) -> Result<Vec<NamespaceRow>, Fault> {
    let (order, id) = slice.place();
    let query = "SELECT * FROM namespaces WHERE status <> 'deleted' AND (created_at, id) > (?, ?)
        ORDER BY created_at, id LIMIT ?";
    let query = sqlx::query(query).bind(order).bind(id).bind(i64::from(slice.limit));
    let rows = query.fetch_all(db).await?;
    collected(&rows, resource::namespace)
}

pub(super) async fn namespace_contents(
    db: &mut SqliteConnection,
    id: NamespaceId,
    limit: u32,
) -> Result<Vec<(&'static str, String)>, Fault> {
    let query = "SELECT 'agent' AS kind, id FROM agents WHERE namespace_id = ?1
        UNION ALL SELECT 'configuration', id FROM configurations WHERE namespace_id = ?1
        UNION ALL SELECT 'secret', id FROM secrets WHERE namespace_id = ?1
        UNION ALL SELECT kind, id FROM owned WHERE namespace_id = ?1
        LIMIT ?2";
    let rows = sqlx::query(query)
        .bind(id.to_string())
        .bind(i64::from(limit))
        .fetch_all(db)
        .await?;
    collected(&rows, resource::content)
}

pub(super) async fn configuration(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    id: ConfigurationId,
) -> Result<Option<ConfigurationRow>, Fault> {
    let query = "SELECT * FROM configurations WHERE id = ? AND namespace_id = ?";
    let row = sqlx::query(query)
        .bind(id.to_string())
        .bind(namespace.to_string())
        .fetch_optional(db)
        .await?;
    Ok(row.as_ref().map(resource::configuration).transpose()?)
}

pub(super) async fn configurations(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    slice: &Slice,
) -> Result<Vec<ConfigurationRow>, Fault> {
    let rows = sqlx::query(sliced!("configurations"))
        .bind(namespace.to_string())
        .bind(slice.place().0)
        .bind(slice.place().1)
        .bind(i64::from(slice.limit))
        .fetch_all(db)
        .await?;
    collected(&rows, resource::configuration)
}

pub(super) async fn secret(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    id: SecretId,
) -> Result<Option<Secret>, Fault> {
    let query = "SELECT * FROM secrets WHERE id = ? AND namespace_id = ?";
    let row = sqlx::query(query)
        .bind(id.to_string())
        .bind(namespace.to_string())
        .fetch_optional(db)
        .await?;
    Ok(row.as_ref().map(resource::secret).transpose()?)
}

pub(super) async fn secrets(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    slice: &Slice,
) -> Result<Vec<Secret>, Fault> {
    let rows = sqlx::query(sliced!("secrets"))
        .bind(namespace.to_string())
        .bind(slice.place().0)
        .bind(slice.place().1)
        .bind(i64::from(slice.limit))
        .fetch_all(db)
        .await?;
    collected(&rows, resource::secret)
}

/// Agents whose draft, or whose selected or pending version, names the Secret `?1`. Looks at no finished version.
macro_rules! agents_of_secret {
    () => {
        "SELECT a.id, a.namespace_id FROM agents a
        WHERE a.namespace_id = (SELECT namespace_id FROM secrets WHERE id = ?1) AND (
            a.secret_id = ?1
            OR EXISTS (SELECT 1 FROM revision_secrets s WHERE s.revision_id = a.active_revision_id AND s.secret_id = ?1)
            OR EXISTS (
                SELECT 1 FROM work w JOIN revision_secrets s ON s.revision_id = w.revision_id AND s.secret_id = ?1
                WHERE w.lane = a.id AND w.state IN ('queued', 'claimed')
            )
        )"
    };
}
pub(super) use agents_of_secret;

pub(super) const SECRET_CONSUMERS: &str = concat!(
    "SELECT id FROM (",
    agents_of_secret!(),
    ") WHERE namespace_id = ?2 ORDER BY id"
);

pub(super) async fn secret_consumers(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    id: SecretId,
) -> Result<Consumers, Fault> {
    let agents = sqlx::query(SECRET_CONSUMERS)
        .bind(id.to_string())
        .bind(namespace.to_string())
        .fetch_all(&mut *db)
        .await?;
    let query = "SELECT c.id FROM configuration_secrets s JOIN configurations c ON c.id = s.configuration_id
        WHERE s.secret_id = ? AND c.namespace_id = ? ORDER BY c.id";
    let configurations = sqlx::query(query)
        .bind(id.to_string())
        .bind(namespace.to_string())
        .fetch_all(&mut *db)
        .await?;
    let query = "SELECT o.kind, o.id FROM owned_secrets s JOIN owned o ON o.id = s.owned_id
        WHERE s.secret_id = ? AND o.namespace_id = ? ORDER BY o.id";
    let owned = sqlx::query(query)
        .bind(id.to_string())
        .bind(namespace.to_string())
        .fetch_all(db)
        .await?;
    Ok(Consumers {
        owned: collected(&owned, |row| {
            let row = Columns { row, of: "resource" };
            Ok((row.word("kind")?, row.text("id")?))
        })?,
        agents: collected(&agents, |row| Columns { row, of: "Agent" }.parsed("id"))?,
        configurations: collected(&configurations, |row| {
            let of = "Configuration";
            Columns { row, of }.parsed("id")
        })?,
    })
}

pub(super) async fn configuration_consumers(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    id: ConfigurationId,
) -> Result<Vec<AgentId>, Fault> {
    let query = "SELECT id FROM agents WHERE configuration_id = ? AND namespace_id = ? ORDER BY created_at, id";
    let rows = sqlx::query(query)
        .bind(id.to_string())
        .bind(namespace.to_string())
        .fetch_all(db)
        .await?;
    collected(&rows, |row| Columns { row, of: "Agent" }.parsed("id"))
}

pub(super) async fn agent(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    id: AgentId,
) -> Result<Option<AgentRow>, Fault> {
    let query = "SELECT * FROM agents WHERE id = ? AND namespace_id = ?";
    let row = sqlx::query(query)
        .bind(id.to_string())
        .bind(namespace.to_string())
        .fetch_optional(db)
        .await?;
    Ok(row.as_ref().map(resource::agent).transpose()?)
}

pub(super) async fn agents(db: &mut SqliteConnection, namespace: NamespaceId) -> Result<Vec<AgentRow>, Fault> {
    let query = "SELECT * FROM agents WHERE namespace_id = ? ORDER BY created_at, id";
    let rows = sqlx::query(query).bind(namespace.to_string()).fetch_all(db).await?;
    collected(&rows, resource::agent)
}

pub(super) async fn agents_in(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    slice: &Slice,
) -> Result<Vec<AgentRow>, Fault> {
    let rows = sqlx::query(sliced!("agents"))
        .bind(namespace.to_string())
        .bind(slice.place().0)
        .bind(slice.place().1)
        .bind(i64::from(slice.limit))
        .fetch_all(db)
        .await?;
    collected(&rows, resource::agent)
}

//! Small resources, and the first answers of requests that named themselves.

use sqlx::SqliteConnection;

use super::{
    column::{json, number, word},
    fault::{Fault, Refused},
    now,
    read::collected,
};
use crate::{
    id::NamespaceId,
    resource::{OwnedKind, PrincipalId},
    store::{
        FirstAnswer, OwnedRow, Slice,
        row::{audit, resource},
    },
    time::Timestamp,
};

/// How long a first answer is kept, in milliseconds: a day.
macro_rules! kept {
    () => {
        "86400000"
    };
}

pub(super) async fn one(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    kind: OwnedKind,
    id: &str,
) -> Result<Option<OwnedRow>, Fault> {
    let query = "SELECT * FROM owned WHERE id = ? AND namespace_id = ? AND kind = ?";
    let row = sqlx::query(query)
        .bind(id)
        .bind(namespace.to_string())
        .bind(word(&kind)?)
        .fetch_optional(db)
        .await?;
    Ok(row.as_ref().map(resource::owned).transpose()?)
}

pub(super) async fn all(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    kind: OwnedKind,
    slice: &Slice,
) -> Result<Vec<OwnedRow>, Fault> {
    let query = "SELECT * FROM owned WHERE namespace_id = ? AND kind = ? AND (created_at, id) > (?, ?)
        ORDER BY created_at, id LIMIT ?";
    let rows = sqlx::query(query)
        .bind(namespace.to_string())
        .bind(word(&kind)?)
        .bind(slice.place().0)
        .bind(slice.place().1)
        .bind(i64::from(slice.limit))
        .fetch_all(db)
        .await?;
    collected(&rows, resource::owned)
}

pub(super) async fn insert(db: &mut SqliteConnection, row: &OwnedRow) -> Result<(), Refused> {
    let query =
        "INSERT INTO owned (id, kind, namespace_id, name, body, version, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)";
    sqlx::query(query)
        .bind(&row.id)
        .bind(word(&row.kind)?)
        .bind(row.namespace_id.to_string())
        .bind(row.name.as_str())
        .bind(json(&row.body)?)
        .bind(number(row.version)?)
        .bind(row.created_at.as_millis())
        .execute(&mut *db)
        .await?;
    secrets(db, row).await
}

pub(super) async fn update(db: &mut SqliteConnection, row: &OwnedRow) -> Result<(), Refused> {
    let query = "UPDATE owned SET name = ?, body = ?, version = ? WHERE id = ? AND namespace_id = ? AND kind = ?";
    let done = sqlx::query(query)
        .bind(row.name.as_str())
        .bind(json(&row.body)?)
        .bind(number(row.version)?)
        .bind(&row.id)
        .bind(row.namespace_id.to_string())
        .bind(word(&row.kind)?)
        .execute(&mut *db)
        .await?;
    if done.rows_affected() == 0 {
        return Err(Refused::missing("resource"));
    }
    secrets(db, row).await
}

async fn secrets(db: &mut SqliteConnection, row: &OwnedRow) -> Result<(), Refused> {
    sqlx::query("DELETE FROM owned_secrets WHERE owned_id = ?")
        .bind(&row.id)
        .execute(&mut *db)
        .await?;
    for secret in &row.secrets {
        let query = "INSERT INTO owned_secrets (owned_id, secret_id) VALUES (?, ?) ON CONFLICT DO NOTHING";
        sqlx::query(query)
            .bind(&row.id)
            .bind(secret.to_string())
            .execute(&mut *db)
            .await?;
    }
    Ok(())
}

/// The first answer under this key, within a day.
pub(super) const ANSWER: &str = concat!(
    "SELECT * FROM answers WHERE principal = ? AND key = ? AND created_at > ",
    now!(),
    " - ",
    kept!()
);

pub(super) async fn answer(
    db: &mut SqliteConnection,
    principal: &PrincipalId,
    key: &str,
) -> Result<Option<FirstAnswer>, Fault> {
    let row = sqlx::query(ANSWER)
        .bind(principal.as_str())
        .bind(key)
        .fetch_optional(db)
        .await?;
    Ok(row.as_ref().map(audit::answer).transpose()?)
}

pub(super) async fn keep(db: &mut SqliteConnection, at: Timestamp, first: &FirstAnswer) -> Result<(), Refused> {
    let query = concat!("DELETE FROM answers WHERE created_at <= ? - ", kept!());
    sqlx::query(query).bind(at.as_millis()).execute(&mut *db).await?;
    let query = "INSERT INTO answers (principal, key, fingerprint, answer, created_at) VALUES (?, ?, ?, ?, ?)";
    sqlx::query(query)
        .bind(first.principal.as_str())
        .bind(&first.key)
        .bind(&first.fingerprint)
        .bind(json(&first.answer)?)
        .bind(at.as_millis())
        .execute(db)
        .await?;
    Ok(())
}

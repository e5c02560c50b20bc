//! The audit's records and the chain of their seals.

use sqlx::{QueryBuilder, Sqlite, SqliteConnection};

use super::{
    column::{number, word},
    connection::Connections,
    fault::Fault,
    read::{self, collected},
};
use crate::{
    audit::chain::{self, AuditQuery, AuditRecord},
    store::{StoreError, StoreResult, row::audit},
};

const COLUMNS: &str = "SELECT a.*, s.position, s.hash FROM audit a LEFT JOIN audit_seals s ON s.sequence = a.sequence";

pub(super) async fn records(db: &mut SqliteConnection, query: &AuditQuery) -> Result<Vec<AuditRecord>, Fault> {
    let mut built = QueryBuilder::<Sqlite>::new(COLUMNS);
    built
        .push(" WHERE a.sequence < ")
        .push_bind(query.before.map_or(Ok(i64::MAX), number)?);
    let filters = [
        (" AND a.namespace_id = ", query.namespace.map(|id| id.to_string())),
        (" AND a.actor = ", query.actor.as_ref().map(ToString::to_string)),
        (" AND a.action = ", query.action.clone()),
        (" AND a.resource_id = ", query.resource.clone()),
        (" AND a.outcome = ", query.outcome.as_ref().map(word).transpose()?),
    ];
    for (filter, value) in filters {
        if let Some(value) = value {
            built.push(filter).push_bind(value);
        }
    }
    built
        .push(" ORDER BY a.sequence DESC LIMIT ")
        .push_bind(i64::from(query.limit));
    let rows = built.build().fetch_all(db).await?;
    collected(&rows, audit::record)
}

pub(super) async fn sealed(db: &mut SqliteConnection, after: u64, limit: u32) -> Result<Vec<AuditRecord>, Fault> {
    let query = "SELECT a.*, s.position, s.hash FROM audit_seals s JOIN audit a ON a.sequence = s.sequence
        WHERE s.position > ? ORDER BY s.position LIMIT ?";
    let rows = sqlx::query(query)
        .bind(number(after)?)
        .bind(i64::from(limit))
        .fetch_all(db)
        .await?;
    collected(&rows, audit::record)
}

/// Here one writer at a time commits, so that the order of the sequence is the order of the commits and nothing comes late.
pub(super) async fn seal(connections: &Connections, limit: u32) -> StoreResult<u32> {
    let mut transaction = connections.begin().await?;
    match seal_in(&mut transaction, limit).await {
        Ok(count) => {
            transaction.commit().await.map_err(|_| StoreError::Unavailable)?;
            Ok(count)
        }
        Err(fault) => {
            transaction.rollback().await;
            Err(fault.into())
        }
    }
}

/// Whether a record has no seal yet: looked up before the writer is taken.
pub(super) async fn is_due(db: &mut SqliteConnection) -> Result<bool, Fault> {
    let query = "SELECT coalesce((SELECT max(sequence) FROM audit), 0)
        > coalesce((SELECT max(sequence) FROM audit_seals), 0)";
    Ok(sqlx::query_scalar(query).fetch_one(db).await?)
}

async fn seal_in(db: &mut SqliteConnection, limit: u32) -> Result<u32, Fault> {
    let Some(installation) = read::installation(db).await? else {
        return Ok(0);
    };
    let query = "SELECT position, sequence, hash FROM audit_seals ORDER BY position DESC LIMIT 1";
    let last: Option<(i64, i64, String)> = sqlx::query_as(query).fetch_optional(&mut *db).await?;
    let (mut position, sequence, mut hash) = last.unwrap_or_else(|| (0, 0, chain::root(installation.id)));
    let query =
        "SELECT a.*, NULL AS position, NULL AS hash FROM audit a WHERE a.sequence > ? ORDER BY a.sequence LIMIT ?";
    let rows = sqlx::query(query)
        .bind(sequence)
        .bind(i64::from(limit))
        .fetch_all(&mut *db)
        .await?;
    let records = collected(&rows, audit::record)?;
    for record in &records {
        position += 1;
        let place = u64::try_from(position).map_err(|_| Fault::Corrupt("seal"))?;
        hash = chain::link(&hash, place, record.occurred_at, &record.event);
        let query = "INSERT INTO audit_seals (position, sequence, hash) VALUES (?, ?, ?)";
        sqlx::query(query)
            .bind(position)
            .bind(number(record.sequence)?)
            .bind(&hash)
            .execute(&mut *db)
            .await?;
    }
    u32::try_from(records.len()).map_err(|_| Fault::Corrupt("seal"))
}

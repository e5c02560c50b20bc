//! One change, one transaction.

use sqlx::SqliteConnection;
use uuid::Uuid;

use super::{
    SqliteStore,
    column::{json, number, word},
    connection::Uncommitted,
    expect,
    fault::Refused,
    read, write,
};
use crate::{
    audit::AuditEvent,
    driver::StateWrite,
    id::AuditId,
    store::{Change, CommitError, Write},
    time::Timestamp,
};

pub(super) async fn commit(store: &SqliteStore, change: Change) -> Result<(), CommitError> {
    let mut transaction = store
        .connections
        .begin()
        .await
        .map_err(|fault| CommitError::from(Refused::Fault(fault)))?;
    let marker = match apply(&mut transaction, &change).await {
        Ok(marker) => marker,
        Err(refused) => {
            transaction.rollback().await;
            return Err(refused.into());
        }
    };
    match transaction.commit().await {
        Ok(()) => {}
        Err(Uncommitted::Nothing(fault)) => return Err(Refused::Fault(fault).into()),
        Err(Uncommitted::Unknown(fault)) => {
            tracing::error!(?fault, "the outcome of a commit is looked up");
            look_up(store, &marker).await?;
        }
    }
    let wakes = |write: &Write| matches!(write, Write::Enqueue(_) | Write::Requeue(_) | Write::Settle(..));
    if change.writes.iter().any(wakes) {
        store.wake();
    }
    Ok(())
}

async fn apply(db: &mut SqliteConnection, change: &Change) -> Result<Marker, Refused> {
    let now = read::now(db).await?;
    for expected in &change.expect {
        if !expect::holds(db, now, expected).await? {
            return Err(Refused::conflict(expected.clone()));
        }
    }
    for write in &change.writes {
        write::apply(db, now, write).await?;
    }
    for record in &change.state {
        stage(db, record).await?;
    }
    for event in &change.audit {
        audit(db, now, event).await?;
    }
    Marker::set(db, change.audit.first()).await
}

/// What tells afterwards whether a change was committed.
enum Marker {
    /// Its first audit event.
    Event(AuditId),
    /// For a change without one: what it wrote over what.
    Written { ours: String, before: Option<String> },
}

impl Marker {
    async fn set(db: &mut SqliteConnection, event: Option<&AuditEvent>) -> Result<Self, Refused> {
        if let Some(event) = event {
            return Ok(Self::Event(event.id));
        }
        let before = sqlx::query_scalar("SELECT marker FROM commit_marker")
            .fetch_optional(&mut *db)
            .await?;
        let ours = Uuid::new_v4().to_string();
        let query = "INSERT INTO commit_marker (singleton, marker) VALUES (1, ?1)
            ON CONFLICT DO UPDATE SET marker = ?1";
        sqlx::query(query).bind(&ours).execute(db).await?;
        Ok(Self::Written { ours, before })
    }

    /// Whether it is there; `None` when a later change has hidden it.
    async fn found(&self, db: &mut SqliteConnection) -> Result<Option<bool>, sqlx::Error> {
        match self {
            Self::Event(id) => {
                let query = "SELECT EXISTS (SELECT 1 FROM audit WHERE id = ?)";
                Ok(Some(
                    sqlx::query_scalar(query).bind(id.to_string()).fetch_one(db).await?,
                ))
            }
            Self::Written { ours, before } => {
                let now: Option<String> = sqlx::query_scalar("SELECT marker FROM commit_marker")
                    .fetch_optional(db)
                    .await?;
                let ours = now.as_ref() == Some(ours);
                Ok((ours || now == *before).then_some(ours))
            }
        }
    }
}

/// A COMMIT failed in a way that leaves its effect open, such as a failed flush. A second transaction settles it: if it
/// commits, whatever the first left behind in the log is either below it or overwritten by it.
async fn look_up(store: &SqliteStore, marker: &Marker) -> Result<(), CommitError> {
    let mut transaction = store
        .connections
        .begin()
        .await
        .map_err(|_| CommitError::UnknownOutcome)?;
    let found = marker.found(&mut transaction).await;
    let touch = "UPDATE schema_version SET applied_at = applied_at";
    let touched = sqlx::query(touch).execute(&mut *transaction).await;
    let (Ok(Some(found)), Ok(_), Ok(())) = (found, touched, transaction.commit().await) else {
        return Err(CommitError::UnknownOutcome);
    };
    if found { Ok(()) } else { Err(CommitError::Unavailable) }
}

/// A driver's record, fenced by the version that was read.
async fn stage(db: &mut SqliteConnection, write: &StateWrite) -> Result<(), Refused> {
    let StateWrite {
        driver,
        key,
        expected,
        value,
    } = write;
    let expected = expected.map(number).transpose()?;
    let done = match (expected, value) {
        (None, Some(value)) => {
            let query = "INSERT INTO driver_state (driver, key, value, version) VALUES (?, ?, ?, 1)
                ON CONFLICT DO NOTHING";
            sqlx::query(query)
                .bind(driver)
                .bind(key)
                .bind(value)
                .execute(db)
                .await?
                .rows_affected()
                == 1
        }
        (Some(expected), Some(value)) => {
            let query = "UPDATE driver_state SET value = ?, version = version + 1
                WHERE driver = ? AND key = ? AND version = ?";
            let query = sqlx::query(query).bind(value).bind(driver).bind(key).bind(expected);
            query.execute(db).await?.rows_affected() == 1
        }
        (Some(expected), None) => {
            let query = "DELETE FROM driver_state WHERE driver = ? AND key = ? AND version = ?";
            sqlx::query(query)
                .bind(driver)
                .bind(key)
                .bind(expected)
                .execute(db)
                .await?
                .rows_affected()
                == 1
        }
        // The deletion of a record that must not exist.
        (None, None) => {
            let query = "SELECT NOT EXISTS (SELECT 1 FROM driver_state WHERE driver = ? AND key = ?)";
            sqlx::query_scalar(query).bind(driver).bind(key).fetch_one(db).await?
        }
    };
    if done {
        Ok(())
    } else {
        Err(Refused::Answer(CommitError::StateConflict))
    }
}

/// Records an event, as of now.
pub(super) async fn audit(db: &mut SqliteConnection, now: Timestamp, event: &AuditEvent) -> Result<(), Refused> {
    let query = "INSERT INTO audit (id, occurred_at, kind, actor, action, resource_kind, resource_id, namespace_id,
            outcome, request_id, authorization, reason_code, details)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    sqlx::query(query)
        .bind(event.id.to_string())
        .bind(now.as_millis())
        .bind(word(&event.kind)?)
        .bind(event.actor.as_str())
        .bind(&event.action)
        .bind(event.resource.kind.as_str())
        .bind(&event.resource.id)
        .bind(event.namespace_id().map(|id| id.to_string()))
        .bind(word(&event.outcome)?)
        .bind(event.request_id.map(|id| id.to_string()))
        .bind(event.authorization.as_ref().map(json).transpose()?)
        .bind(&event.reason_code)
        .bind(json(&event.details)?)
        .execute(db)
        .await?;
    Ok(())
}

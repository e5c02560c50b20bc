//! One change, one transaction.

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
use sqlx::SqliteConnection;

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
        let ours = crate::randomness::uuid().to_string();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        driver::ResourceRef,
        id::{InstallationId, ServiceKeyId},
        store::Store as _,
    };

    async fn store() -> SqliteStore {
        SqliteStore::open_in_memory().await.expect("a database in memory opens")
    }

    fn event() -> Change {
        let actor = "prn_operator".parse().expect("an id");
        Change::new().audit(AuditEvent::mutation(
            actor,
            "test",
            ResourceRef::installation(InstallationId::random()),
        ))
    }

    /// Applies a change and commits it, or does not.
    async fn applied(store: &SqliteStore, change: &Change, commits: bool) -> Marker {
        let mut transaction = store.connections.begin().await.expect("a transaction");
        let marker = apply(&mut transaction, change).await.expect("it applies");
        if commits {
            transaction.commit().await.expect("it commits");
        } else {
            transaction.rollback().await;
        }
        marker
    }

    #[tokio::test]
    async fn a_commit_of_open_outcome_is_looked_up() {
        let store = store().await;
        for change in [event(), Change::new()] {
            let committed = applied(&store, &change, true).await;
            assert_eq!(look_up(&store, &committed).await, Ok(()));
            let undone = applied(
                &store,
                &Change {
                    audit: event().audit,
                    ..change.clone()
                },
                false,
            )
            .await;
            assert_eq!(look_up(&store, &undone).await, Err(CommitError::Unavailable));
        }
        let undone = applied(&store, &Change::new(), false).await;
        assert_eq!(look_up(&store, &undone).await, Err(CommitError::Unavailable));
    }

    #[tokio::test]
    async fn what_a_later_change_hid_stays_unknown() {
        let store = store().await;
        let marker = applied(&store, &Change::new(), true).await;
        applied(&store, &Change::new(), true).await;
        assert_eq!(look_up(&store, &marker).await, Err(CommitError::UnknownOutcome));
        let marker = applied(&store, &event(), true).await;
        applied(&store, &event(), true).await;
        assert_eq!(look_up(&store, &marker).await, Ok(()), "an event stays");
        store.close().await;
        assert_eq!(look_up(&store, &marker).await, Err(CommitError::UnknownOutcome));
    }

    #[tokio::test]
    async fn a_transaction_that_was_dropped_is_undone_before_the_next() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = SqliteStore::open(directory.path().join("occ.db"))
            .await
            .expect("it opens");
        for store in [store().await, file] {
            let mut transaction = store.connections.begin().await.expect("a transaction");
            apply(&mut transaction, &event()).await.expect("it applies");
            drop(transaction);
            store.commit(event()).await.expect("the next one commits");
            let mut reader = store.connections.read().await.expect("a reader");
            let events: i64 = sqlx::query_scalar("SELECT count(*) FROM audit")
                .fetch_one(&mut *reader)
                .await
                .expect("a count");
            assert_eq!(events, 1);
            drop(reader);
            let revoke = Change::new().write(Write::RevokeServiceKey(ServiceKeyId::random()));
            assert_eq!(store.commit(revoke).await, Err(CommitError::Refused));
        }
    }
}

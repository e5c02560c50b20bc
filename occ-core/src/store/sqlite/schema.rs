//! The schema and its versions.

use sqlx::{Row as _, SqliteConnection};

use super::now;

/// Each makes its version of the schema from the one before.
const MIGRATIONS: [(i64, &str); 3] = [
    (1, include_str!("migrations/0001_initial.sql")),
    (2, include_str!("migrations/0002_retention.sql")),
    (3, include_str!("migrations/0003_traces.sql")),
];

/// The version that this program writes.
pub(super) const VERSION: i64 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// In the header of the file: `OCC1`. Tells our databases from those of other programs.
const APPLICATION_ID: i64 = 0x4f43_4331;

/// Whose database a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nobody's yet.
    Empty,
    /// Ours, of this version; below 1 when it is damaged.
    Version(i64),
    /// Another program's.
    Foreign,
}

/// Looks without changing anything.
pub(super) async fn look(connection: &mut SqliteConnection) -> Result<Found, sqlx::Error> {
    let application: i64 = sqlx::query("PRAGMA application_id")
        .fetch_one(&mut *connection)
        .await?
        .try_get(0)?;
    if application == APPLICATION_ID {
        let known: i64 = sqlx::query("SELECT count(*) FROM sqlite_schema WHERE name = 'schema_version'")
            .fetch_one(&mut *connection)
            .await?
            .try_get(0)?;
        if known == 0 {
            return Ok(Found::Version(0));
        }
        let row = sqlx::query("SELECT max(version) FROM schema_version")
            .fetch_one(connection)
            .await?;
        return Ok(Found::Version(row.try_get::<Option<i64>, _>(0)?.unwrap_or(0)));
    }
    let tables: i64 = sqlx::query("SELECT count(*) FROM sqlite_schema")
        .fetch_one(connection)
        .await?
        .try_get(0)?;
    Ok(if application == 0 && tables == 0 {
        Found::Empty
    } else {
        Found::Foreign
    })
}

/// Applies what is missing, in one transaction. Another process may be doing the same: whoever comes second finds it done.
pub(super) async fn migrate(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    if look(connection).await? == Found::Version(VERSION) {
        return Ok(());
    }
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await?;
    match steps(connection).await {
        Ok(()) => sqlx::query("COMMIT").execute(connection).await.map(drop),
        Err(error) => {
            // Fails when SQLite has undone the transaction already.
            let _ = sqlx::query("ROLLBACK").execute(connection).await;
            Err(error)
        }
    }
}

async fn steps(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let from = match look(connection).await? {
        Found::Version(version) => version,
        Found::Empty | Found::Foreign => {
            let start = "PRAGMA application_id = 1329808177;
                CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT;";
            sqlx::raw_sql(start).execute(&mut *connection).await?;
            0
        }
    };
    for (version, migration) in MIGRATIONS.into_iter().filter(|(version, _)| *version > from) {
        sqlx::raw_sql(migration).execute(&mut *connection).await?;
        let record = concat!(
            "INSERT INTO schema_version (version, applied_at) VALUES (?, ",
            now!(),
            ")"
        );
        sqlx::query(record).bind(version).execute(&mut *connection).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::APPLICATION_ID;

    #[test]
    fn the_header_spells_our_name() {
        assert_eq!(APPLICATION_ID, 1_329_808_177);
        assert_eq!(APPLICATION_ID.to_be_bytes()[4..], *b"OCC1");
    }
}

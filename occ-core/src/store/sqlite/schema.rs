//! The schema and its versions.

use std::collections::BTreeSet;

use sqlx::{ConnectOptions as _, Row as _, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{
    fault::{Code, code},
    now,
};

/// Each makes its version of the schema from the one before.
const MIGRATIONS: [(i64, &str); 10] = [
    (1, include_str!("migrations/0001_initial.sql")),
    (2, include_str!("migrations/0002_retention.sql")),
    (3, include_str!("migrations/0003_traces.sql")),
    (4, include_str!("migrations/0004_accounts.sql")),
    (5, include_str!("migrations/0005_agent_tokens.sql")),
    (6, include_str!("migrations/0006_lists.sql")),
    (7, include_str!("migrations/0007_federation.sql")),
    (8, include_str!("migrations/0008_plugins.sql")),
    (9, include_str!("migrations/0009_credential_sources.sql")),
    (10, include_str!("migrations/0010_not_replaced.sql")),
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

/// Why a schema is not the one that this program needs.
#[derive(Debug)]
pub(super) enum Unfit {
    /// The database said no, or did not answer.
    Database(sqlx::Error),
    /// Something of it is missing or other than its version says.
    Altered,
}

impl From<sqlx::Error> for Unfit {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
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
/// The number alone is not believed: a rule that somebody dropped would no longer protect what it should.
pub(super) async fn migrate(connection: &mut SqliteConnection) -> Result<(), Unfit> {
    if look(connection).await? == Found::Version(VERSION) {
        return verify(connection).await;
    }
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await?;
    let migrated = async {
        steps(connection).await.map_err(|error| match code(&error) {
            // The statement does not fit the tables that it finds.
            Some(Code::Statement | Code::Constraint) => Unfit::Altered,
            _ => Unfit::Database(error),
        })?;
        verify(connection).await
    };
    match migrated.await {
        Ok(()) => Ok(sqlx::query("COMMIT").execute(connection).await.map(drop)?),
        Err(unfit) => {
            // Fails when SQLite has undone the transaction already.
            let _ = sqlx::query("ROLLBACK").execute(connection).await;
            Err(unfit)
        }
    }
}

/// Makes the schema in an empty database that nobody else can see.
pub(super) async fn make(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    steps(connection).await
}

/// Compares the schema with one that is made anew. What somebody added, such as an index of their own, does no harm.
async fn verify(connection: &mut SqliteConnection) -> Result<(), Unfit> {
    let mut reference = SqliteConnectOptions::new().in_memory(true).connect().await?;
    make(&mut reference).await?;
    let (wanted, found) = (definitions(&mut reference).await?, definitions(connection).await?);
    if wanted.is_subset(&found) {
        Ok(())
    } else {
        Err(Unfit::Altered)
    }
}

/// The text of every table, index and trigger.
async fn definitions(connection: &mut SqliteConnection) -> Result<BTreeSet<String>, sqlx::Error> {
    // An index that SQLite makes by itself has no text.
    sqlx::query_scalar("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
        .fetch_all(connection)
        .await
        .map(BTreeSet::from_iter)
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

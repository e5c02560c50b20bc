//! The schema `occ` and its versions.

use sqlx::{Connection as _, PgConnection, Row as _};

/// Each makes its version of the schema from the one before.
const MIGRATIONS: [(i64, &[&str]); 13] = [
    (
        1,
        &[
            include_str!("migrations/0001_tables.sql"),
            include_str!("migrations/0001_functions.sql"),
        ],
    ),
    (2, &[include_str!("migrations/0002_retention.sql")]),
    (3, &[include_str!("migrations/0003_traces.sql")]),
    (4, &[include_str!("migrations/0004_accounts.sql")]),
    (5, &[include_str!("migrations/0005_agent_tokens.sql")]),
    (
        6,
        &[
            include_str!("migrations/0006_record.sql"),
            include_str!("migrations/0006_lists.sql"),
        ],
    ),
    (7, &[include_str!("migrations/0007_federation.sql")]),
    (8, &[include_str!("migrations/0008_plugins.sql")]),
    (
        9,
        &[
            include_str!("migrations/0009_admit.sql"),
            include_str!("migrations/0009_waits.sql"),
        ],
    ),
    (
        10,
        &[
            include_str!("migrations/0010_credential_sources.sql"),
            include_str!("migrations/0010_together.sql"),
        ],
    ),
    (11, &[include_str!("migrations/0011_waits.sql")]),
    (12, &[include_str!("migrations/0012_authority.sql")]),
    (13, &[include_str!("migrations/0013_spoilt.sql")]),
];

/// The version that this program needs.
pub(super) const VERSION: i64 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// Who may do what. Applied with every migration, for what a migration adds.
const GRANTS: &str = include_str!("migrations/grants.sql");

const START: &str = "
    CREATE SCHEMA IF NOT EXISTS occ;
    SET LOCAL search_path = occ, pg_temp;
    CREATE TABLE IF NOT EXISTS schema_version (version bigint PRIMARY KEY, applied_at timestamptz NOT NULL);
";

/// Whose database it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It has no schema of ours yet.
    Empty,
    /// Ours, of this version.
    Version(i64),
    /// Another program's.
    Foreign,
}

/// Looks without changing anything.
pub(super) async fn look(connection: &mut PgConnection) -> Result<Found, sqlx::Error> {
    let query = "SELECT to_regnamespace('occ') IS NOT NULL, to_regclass('occ.schema_version') IS NOT NULL,
        to_regclass('occ.work') IS NOT NULL";
    let row = sqlx::query(query).fetch_one(&mut *connection).await?;
    let (schema, versions, work): (bool, bool, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    if !schema {
        return Ok(Found::Empty);
    }
    if !versions || !work {
        let query = "SELECT NOT EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = 'occ'::regnamespace)";
        let empty: bool = sqlx::query_scalar(query).fetch_one(connection).await?;
        return Ok(if empty { Found::Empty } else { Found::Foreign });
    }
    let version: Option<i64> = sqlx::query_scalar("SELECT max(version) FROM occ.schema_version")
        .fetch_one(connection)
        .await?;
    // A migration and its number are one transaction: nobody who finishes one leaves less.
    Ok(version
        .filter(|version| *version > 0)
        .map_or(Found::Foreign, Found::Version))
}

/// Applies what is missing, in one transaction. Another process may be doing the same: whoever comes second finds it done.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    // Any number that nobody else uses: it spells OCC1.
    sqlx::query("SELECT pg_advisory_xact_lock(1329808177)")
        .execute(&mut *transaction)
        .await?;
    let from = match look(&mut transaction).await? {
        Found::Version(version) => version,
        Found::Empty | Found::Foreign => 0,
    };
    sqlx::raw_sql(START).execute(&mut *transaction).await?;
    for (version, files) in MIGRATIONS.into_iter().filter(|(version, _)| *version > from) {
        for file in files {
            sqlx::raw_sql(*file).execute(&mut *transaction).await?;
        }
        let record = "INSERT INTO schema_version (version, applied_at) VALUES ($1, clock_timestamp())";
        sqlx::query(record).bind(version).execute(&mut *transaction).await?;
    }
    sqlx::raw_sql(GRANTS).execute(&mut *transaction).await?;
    transaction.commit().await
}

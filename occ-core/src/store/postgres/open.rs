//! Opening a database: whether it is ours, and whether this program knows its schema.

use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use tokio::time::timeout;

use super::{
    connections::starting,
    schema::{self, Found},
    settings::PostgresSettings,
};
use crate::store::SchemaVersion;

/// Why a database was not opened. Nothing was changed. No text quotes the URL, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is not one of `PostgreSQL`.
    #[error("the database URL is not of the form postgres://user@host:port/database: correct it")]
    InvalidUrl,
    /// Nobody answers there.
    #[error("the database {place} cannot be reached: start its server, or correct the URL")]
    Unreachable {
        /// Host, port and database.
        place: String,
    },
    /// The server refuses the user, the password or the database.
    #[error(
        "the server refuses the connection to {place} ({code}): correct the user, the password or the database's name"
    )]
    Denied {
        /// Host, port and database.
        place: String,
        /// What the server said, as `SQLSTATE`.
        code: String,
    },
    /// The database has a schema `occ` that is not ours.
    #[error("the database {place} has a schema occ of another program: name another database")]
    Foreign {
        /// Host, port and database.
        place: String,
    },
    /// The schema is missing, or older than what this program needs.
    #[error("the database {place} has schema version {found}, and this program needs {known}: run `occ migrate up`")]
    Older {
        /// Host, port and database.
        place: String,
        /// Its schema's version; 0 when it has none.
        found: i64,
        /// The version that this program needs.
        known: i64,
    },
    /// A newer version of this program migrated the database.
    #[error(
        "the database {place} has schema version {found}, and this program knows versions up to {known}: \
         run the program that migrated it, or a newer one"
    )]
    Newer {
        /// Host, port and database.
        place: String,
        /// Its schema's version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The user may not do this.
    #[error(
        "this user may not do that in the database {place}: migrate as its owner, run with a member of occ_application"
    )]
    NotAllowed {
        /// Host, port and database.
        place: String,
    },
    /// The server cannot do what the schema needs, or somebody altered the schema.
    #[error(
        "the server of {place} refused the schema ({code}): it must be PostgreSQL 14 or newer, \
         and the schema occ what a version of this program made it"
    )]
    Unsupported {
        /// Host, port and database.
        place: String,
        /// What the server said, as `SQLSTATE`.
        code: String,
    },
}

/// Looks at the schema without changing anything.
pub(super) async fn look(settings: &PostgresSettings) -> Result<SchemaVersion, OpenError> {
    let mut connection = connect(settings).await?;
    let found = schema::look(&mut connection).await;
    let _ = connection.close().await;
    judge(settings, found.map_err(|error| refusal(settings, &error))?)
}

/// Brings the schema to this program's version. Returns what was found before.
pub(super) async fn migrate(settings: &PostgresSettings) -> Result<SchemaVersion, OpenError> {
    let before = look(settings).await?;
    if before.found > before.known {
        return Err(newer(settings, before));
    }
    let mut connection = connect(settings).await?;
    let migrated = schema::migrate(&mut connection).await;
    let _ = connection.close().await;
    migrated.map_err(|error| refusal(settings, &error))?;
    Ok(before)
}

/// Whether this program can work with what is there.
pub(super) async fn check(settings: &PostgresSettings) -> Result<(), OpenError> {
    let version = look(settings).await?;
    let SchemaVersion { found, known } = version;
    let place = settings.to_string();
    match found.cmp(&known) {
        std::cmp::Ordering::Less => Err(OpenError::Older { place, found, known }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(newer(settings, version)),
    }
}

fn newer(settings: &PostgresSettings, SchemaVersion { found, known }: SchemaVersion) -> OpenError {
    let place = settings.to_string();
    OpenError::Newer { place, found, known }
}

fn judge(settings: &PostgresSettings, found: Found) -> Result<SchemaVersion, OpenError> {
    let known = schema::VERSION;
    match found {
        Found::Foreign => Err(OpenError::Foreign {
            place: settings.to_string(),
        }),
        Found::Empty => Ok(SchemaVersion { found: 0, known }),
        Found::Version(found) => Ok(SchemaVersion { found, known }),
    }
}

async fn connect(settings: &PostgresSettings) -> Result<PgConnection, OpenError> {
    let unreachable = || OpenError::Unreachable {
        place: settings.to_string(),
    };
    let connected = timeout(settings.query_timeout, settings.server.connect()).await;
    connected.map_err(|_| unreachable())?.map_err(|error| {
        if starting(&error) {
            return unreachable();
        }
        match error.as_database_error().and_then(sqlx::error::DatabaseError::code) {
            Some(code) => OpenError::Denied {
                place: settings.to_string(),
                code: code.into_owned(),
            },
            None => unreachable(),
        }
    })
}

fn refusal(settings: &PostgresSettings, error: &sqlx::Error) -> OpenError {
    let place = settings.to_string();
    match error.as_database_error().and_then(sqlx::error::DatabaseError::code) {
        None => OpenError::Unreachable { place },
        // insufficient_privilege.
        Some(code) if code == "42501" => OpenError::NotAllowed { place },
        Some(code) => OpenError::Unsupported {
            place,
            code: code.into_owned(),
        },
    }
}

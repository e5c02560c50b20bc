//! Where a control plane keeps everything: the file in its data directory, or a `PostgreSQL` server.

use std::{env, fs, path::Path, sync::Arc};

use clap::Args;
use occ_core::store::{
    SchemaVersion, Store,
    postgres::{PostgresSettings, PostgresStore},
    sqlite::{OpenError, SqliteStore},
};

use super::DataDir;
use crate::exit::{Done, Failure};

const VARIABLE: &str = "DATABASE_URL";

/// Which database.
#[derive(Debug, Args)]
pub(crate) struct DatabaseArgs {
    /// A PostgreSQL database instead of the file in the data directory: postgres://user@host:port/database, without a password.
    /// That is read from `DATABASE_URL` (the whole URL), `PGPASSWORD` or the password file.
    #[arg(long, global = true, value_name = "URL")]
    database: Option<String>,
}

/// The database that a command is about.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    /// The embedded one.
    Embedded,
    /// A server's.
    Postgres(Box<PostgresSettings>),
}

impl DatabaseArgs {
    pub(crate) fn choose(&self) -> Done<Database> {
        let Some(url) = &self.database else {
            return Database::from_environment();
        };
        // Everybody on this host can read the arguments of a process.
        let authority = url
            .split_once("://")
            .map_or("", |(_, rest)| rest.split('/').next().unwrap_or(""));
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        if user.contains(':') || url.contains("password=") {
            return Err(Failure::usage(format!(
                "a password is no argument: put the URL into {VARIABLE}, or the password into PGPASSWORD or the password file"
            )));
        }
        Database::at(url)
    }
}

impl Database {
    /// The one that `DATABASE_URL` names, or the embedded one.
    pub(crate) fn from_environment() -> Done<Self> {
        match env::var(VARIABLE) {
            Ok(url) if !url.is_empty() => Self::at(&url),
            _ => Ok(Self::Embedded),
        }
    }

    fn at(url: &str) -> Done<Self> {
        let settings = PostgresSettings::from_url(url).map_err(Failure::usage)?;
        Ok(Self::Postgres(Box::new(settings)))
    }

    /// Opens it. The embedded one is created and migrated.
    pub(super) async fn open(&self, data: &DataDir) -> Done<Opened> {
        Ok(match self {
            Self::Embedded => Opened::Embedded(Arc::new(embedded(data).await?)),
            Self::Postgres(settings) => {
                let store = PostgresStore::open(settings).await.map_err(Failure::startup)?;
                Opened::Postgres(Arc::new(store))
            }
        })
    }

    /// Opens one that is there already. The embedded one may be in use: a second process shares the file.
    pub(crate) async fn open_existing(&self, root: &Path) -> Done<Opened> {
        if matches!(self, Self::Embedded) && self.schema(root).await?.found == 0 {
            return Err(Failure::refused(format!("there is no database {}", self.place(root))));
        }
        self.open(&DataDir::open(root)?).await
    }

    /// Brings its schema to this program's version, and says what was found before.
    pub(crate) async fn migrate(&self, root: &Path) -> Done<SchemaVersion> {
        match self {
            Self::Embedded => {
                let before = self.schema(root).await?;
                embedded(&DataDir::open(root)?).await?.close().await;
                Ok(before)
            }
            Self::Postgres(settings) => PostgresStore::migrate(settings).await.map_err(Failure::startup),
        }
    }

    /// Looks at its schema.
    pub(crate) async fn schema(&self, root: &Path) -> Done<SchemaVersion> {
        match self {
            Self::Embedded => SqliteStore::schema(root.join(DataDir::DATABASE))
                .await
                .map_err(Failure::startup),
            Self::Postgres(settings) => PostgresStore::schema(settings).await.map_err(Failure::startup),
        }
    }

    /// Where it is, without a password.
    pub(crate) fn place(&self, root: &Path) -> String {
        match self {
            Self::Embedded => root.join(DataDir::DATABASE).display().to_string(),
            Self::Postgres(settings) => settings.to_string(),
        }
    }
}

/// The file of a data directory, made when the directory is new. One that is gone is not made anew.
async fn embedded(data: &DataDir) -> Done<SqliteStore> {
    let file = data.database();
    let empty = fs::metadata(&file).map_or(true, |file| file.len() == 0);
    if empty && data.was_set_up() {
        return Err(data.database_gone());
    }
    SqliteStore::open(file).await.map_err(|error| match error {
        // What is in the file is the cause, and the file is where the data directory says.
        OpenError::Altered { .. }
        | OpenError::NotADatabase { .. }
        | OpenError::Foreign { .. }
        | OpenError::Newer { .. } => {
            Failure::startup(format!("{error}; another --data-dir starts with an empty database"))
        }
        error => Failure::startup(error),
    })
}

/// An open database.
#[derive(Debug)]
pub(crate) enum Opened {
    Embedded(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

impl Opened {
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Embedded(store) => Arc::clone(store) as _,
            Self::Postgres(store) => Arc::clone(store) as _,
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Embedded(store) => store.close().await,
            Self::Postgres(store) => store.close().await,
        }
    }
}

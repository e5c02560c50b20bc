//! Where databases are made to be measured.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use occ_core::store::{
    Store,
    postgres::{PostgresSettings, PostgresStore},
    sqlite::SqliteStore,
};
use occ_test_support::postgres::Cluster;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions};
use tempfile::TempDir;

use crate::{Error, StoreKind, floor};

/// A place for databases of one kind; they are gone with it.
pub(crate) struct Ground {
    place: TempDir,
    server: Option<Cluster>,
    kind: StoreKind,
    made: AtomicU32,
}

impl Ground {
    /// Below a directory.
    pub(crate) fn new(kind: StoreKind, directory: &Path) -> Result<Self, Error> {
        let made = tempfile::Builder::new().prefix("occ-bench-").tempdir_in(directory);
        let place = made.map_err(|_| Error::Directory {
            path: directory.to_owned(),
        })?;
        let server = match kind {
            StoreKind::Postgres => Some(server(place.path())?),
            StoreKind::SqliteFile | StoreKind::SqliteMemory => None,
        };
        Ok(Self {
            place,
            server,
            kind,
            made: AtomicU32::new(0),
        })
    }

    /// An empty store over a database of its own, and the database's URL where it is a server's.
    pub(crate) async fn store(&self) -> Result<(Arc<dyn Store>, Option<String>), Error> {
        Ok(match self.kind {
            StoreKind::SqliteFile => (Arc::new(SqliteStore::open(self.file()).await?), None),
            StoreKind::SqliteMemory => (Arc::new(SqliteStore::open_in_memory().await?), None),
            StoreKind::Postgres => {
                let url = self.database().await?;
                let settings = PostgresSettings::from_url(&url)?;
                PostgresStore::migrate(&settings).await?;
                (Arc::new(PostgresStore::open(&settings).await?), Some(url))
            }
        })
    }

    /// Transactions of one inserted row a second, in a database of their own, as the store makes them.
    pub(crate) async fn commits_per_second(&self, count: usize) -> Result<f64, Error> {
        let measured = match self.kind {
            StoreKind::SqliteFile => floor::sqlite(Some(&self.file()), count).await,
            StoreKind::SqliteMemory => floor::sqlite(None, count).await,
            StoreKind::Postgres => floor::postgres(&self.database().await?, count).await,
        };
        measured.map_err(|_| Error::Floor)
    }

    /// The process of the server.
    pub(crate) fn server(&self) -> Option<u32> {
        self.server.as_ref().and_then(Cluster::process)
    }

    /// The URL of an empty database of the server.
    pub(crate) async fn database(&self) -> Result<String, Error> {
        let server = self.server.as_ref().ok_or(Error::NoServer)?;
        let name = format!("bench_{}", self.next());
        let create = async {
            let options: PgConnectOptions = server.url("postgres").parse()?;
            let mut admin: PgConnection = options.disable_statement_logging().connect().await?;
            let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
            sqlx::raw_sql(create).execute(&mut admin).await?;
            admin.close().await
        };
        create.await.map_err(|_| Error::NoServer)?;
        Ok(server.url(&name))
    }

    fn file(&self) -> PathBuf {
        self.place.path().join(format!("{}.db", self.next()))
    }

    fn next(&self) -> u32 {
        self.made.fetch_add(1, Ordering::Relaxed)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            let _ = server.stop("immediate");
        }
    }
}

/// A server with its defaults: an acknowledged commit is on the disk.
fn server(place: &Path) -> Result<Cluster, Error> {
    let server = Cluster::create(&place.join("postgres")).map_err(|_| Error::NoServer)?;
    // The directory above it is this user's alone, and the server may be another user.
    let started = std::fs::set_permissions(place, std::os::unix::fs::PermissionsExt::from_mode(0o711))
        .and_then(|()| server.start(&[]));
    started.map_err(|_| Error::NoServer)?;
    Ok(server)
}

//! A database file in a directory of its own.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use occ_conformance::store::{Recorded, Subject};
use occ_core::store::{Store, sqlite::SqliteStore};
use sqlx::{ConnectOptions as _, Row as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

pub struct SqliteSubject {
    store: SqliteStore,
    path: PathBuf,
    _directory: TempDir,
}

impl SqliteSubject {
    pub async fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("occ.db");
        let store = SqliteStore::open(&path).await.expect("the store opens");
        Self {
            store,
            path,
            _directory: directory,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A connection that bypasses the store.
pub async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(true)
        .connect()
        .await
        .expect("the file opens")
}

#[async_trait]
impl Subject for SqliteSubject {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn second(&self) -> Arc<dyn Store> {
        Arc::new(
            SqliteStore::open(&self.path)
                .await
                .expect("the store opens a second time"),
        )
    }

    async fn audit(&self) -> Vec<Recorded> {
        let mut connection = raw(&self.path).await;
        let query = "SELECT id, action, outcome, reason_code, details FROM audit ORDER BY sequence";
        let rows = sqlx::query(query).fetch_all(&mut connection).await.expect("the events");
        rows.iter()
            .map(|row| Recorded {
                id: row.get("id"),
                action: row.get("action"),
                outcome: row.get("outcome"),
                reason_code: row.get("reason_code"),
                details: serde_json::from_str(row.get("details")).expect("an object"),
            })
            .collect()
    }
}

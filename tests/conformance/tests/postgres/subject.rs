//! A database of its own on the server of the run.

use std::sync::Arc;

use async_trait::async_trait;
use occ_conformance::store::{Recorded, Subject};
use occ_core::store::{Store, postgres::PostgresStore};
use occ_test_support::postgres::Database;
use sqlx::{Row as _, types::Json};

pub struct PostgresSubject {
    store: PostgresStore,
    pub database: Database,
}

impl PostgresSubject {
    pub async fn new() -> Self {
        let database = Database::fresh().await;
        let store = PostgresStore::open(&database.settings())
            .await
            .expect("the store opens");
        Self { store, database }
    }
}

#[async_trait]
impl Subject for PostgresSubject {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn second(&self) -> Arc<dyn Store> {
        let store = PostgresStore::open(&self.database.settings()).await;
        Arc::new(store.expect("the store opens a second time"))
    }

    async fn audit(&self) -> Vec<Recorded> {
        let query = "SELECT id, action, outcome, reason_code, details FROM occ.audit ORDER BY sequence";
        let rows = sqlx::query(query)
            .fetch_all(&mut self.database.raw().await)
            .await
            .expect("the events");
        rows.iter()
            .map(|row| {
                let Json(details) = row.get("details");
                Recorded {
                    id: row.get("id"),
                    action: row.get("action"),
                    outcome: row.get("outcome"),
                    reason_code: row.get("reason_code"),
                    details,
                }
            })
            .collect()
    }
}

//! What the disk allows.

use std::{path::Path, time::Instant};

use sqlx::{
    ConnectOptions as _, Connection as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use crate::{Error, StoreKind};

/// Transactions of one inserted row a second, as the store makes them: write-ahead log, `synchronous = FULL`.
pub(crate) async fn commits_per_second(store: StoreKind, directory: &Path, count: usize) -> Result<f64, Error> {
    let measured = match store {
        StoreKind::SqliteFile => {
            let options = options()
                .filename(directory.join("floor.db"))
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal);
            insert(options, count).await
        }
        StoreKind::SqliteMemory => insert(options().in_memory(true), count).await,
    };
    measured.map_err(|_| Error::Floor)
}

fn options() -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .synchronous(SqliteSynchronous::Full)
        .disable_statement_logging()
}

async fn insert(options: SqliteConnectOptions, count: usize) -> Result<f64, sqlx::Error> {
    let mut connection: SqliteConnection = options.connect().await?;
    sqlx::query("CREATE TABLE IF NOT EXISTS floor (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
        .execute(&mut connection)
        .await?;
    // The first ones make the log and fill the cache.
    for _ in 0..count.div_ceil(10) {
        one(&mut connection).await?;
    }
    let begun = Instant::now();
    for _ in 0..count {
        one(&mut connection).await?;
    }
    let per_second = crate::measure::per_second(count, begun.elapsed());
    connection.close().await?;
    Ok(per_second)
}

async fn one(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let insert = sqlx::query("INSERT INTO floor (text) VALUES (?)").bind("a row that says little");
    insert.execute(connection).await.map(drop)
}

//! What the disk allows: transactions of one inserted row, one after the other.

use std::{path::Path, time::Instant};

use sqlx::{
    ConnectOptions as _, Connection as _, PgConnection, SqliteConnection,
    postgres::PgConnectOptions,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

const TEXT: &str = "a row that says little";

/// In a file or in memory: write-ahead log, `synchronous = FULL`.
pub(crate) async fn sqlite(file: Option<&Path>, count: usize) -> Result<f64, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .synchronous(SqliteSynchronous::Full)
        .disable_statement_logging();
    let options = match file {
        Some(file) => options
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal),
        None => options.in_memory(true),
    };
    let mut connection: SqliteConnection = options.connect().await?;
    sqlx::query("CREATE TABLE floor (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
        .execute(&mut connection)
        .await?;
    let measured = rate(count, async || {
        let insert = sqlx::query("INSERT INTO floor (text) VALUES (?)").bind(TEXT);
        insert.execute(&mut connection).await.map(drop)
    })
    .await;
    connection.close().await?;
    measured
}

/// In a database of a server.
pub(crate) async fn postgres(url: &str, count: usize) -> Result<f64, sqlx::Error> {
    let options: PgConnectOptions = url.parse()?;
    let mut connection: PgConnection = options.disable_statement_logging().connect().await?;
    sqlx::query("CREATE TABLE floor (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text NOT NULL)")
        .execute(&mut connection)
        .await?;
    let measured = rate(count, async || {
        let insert = sqlx::query("INSERT INTO floor (text) VALUES ($1)").bind(TEXT);
        insert.execute(&mut connection).await.map(drop)
    })
    .await;
    connection.close().await?;
    measured
}

async fn rate(count: usize, mut one: impl AsyncFnMut() -> Result<(), sqlx::Error>) -> Result<f64, sqlx::Error> {
    // The first ones make the log and fill the cache.
    for _ in 0..count.div_ceil(10) {
        one().await?;
    }
    let begun = Instant::now();
    for _ in 0..count {
        one().await?;
    }
    Ok(crate::measure::per_second(count, begun.elapsed()))
}

//! One connection that writes, a few that read.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use sqlx::{
    ConnectOptions as _, Connection as _, Sqlite, SqliteConnection, SqlitePool,
    pool::PoolConnection,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tokio::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};

use super::fault::{Code, Fault, code};

/// Connections that read side by side. More would only wait for the processor.
const READERS: u32 = 4;
/// How long a reader waits for a free connection; as long as a writer waits for the database's lock.
const READER_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Connections {
    /// How to open the file again; `None` for a database in memory, which one connection alone can see.
    file: Option<SqliteConnectOptions>,
    writer: Arc<Mutex<Writer>>,
    readers: Option<SqlitePool>,
}

#[derive(Debug)]
pub(super) struct Writer {
    connection: Option<SqliteConnection>,
    /// A transaction was begun and its end is not known.
    open: bool,
    closed: bool,
}

impl Connections {
    /// Over a file that `writer` has open.
    pub(super) fn of_file(options: SqliteConnectOptions, writer: SqliteConnection) -> Self {
        // A reader that tried to write would wait for the writer's lock.
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(READER_WAIT)
            .test_before_acquire(false)
            .connect_lazy_with(options.clone().pragma("query_only", "ON"));
        Self {
            file: Some(options),
            writer: Writer::new(writer),
            readers: Some(readers),
        }
    }

    /// Over a database in memory.
    pub(super) fn of_memory(writer: SqliteConnection) -> Self {
        Self {
            file: None,
            writer: Writer::new(writer),
            readers: None,
        }
    }

    /// A connection for one statement that reads.
    pub(super) async fn read(&self) -> Result<Reader, Fault> {
        if let Some(readers) = &self.readers {
            return Ok(Reader::Own(readers.acquire().await?));
        }
        let mut writer = Arc::clone(&self.writer).lock_owned().await;
        writer.ready(None).await?;
        OwnedMutexGuard::try_map(writer, |writer| writer.connection.as_mut())
            .map(Reader::Shared)
            .map_err(|_| Fault::Closed)
    }

    /// A connection for several statements that read the same moment.
    pub(super) async fn snapshot(&self) -> Result<Snapshot, Fault> {
        let mut snapshot = Snapshot {
            reader: Some(self.read().await?),
        };
        // The only connection to a database in memory is locked: nobody can write meanwhile.
        if self.readers.is_some() {
            sqlx::query("BEGIN").execute(&mut *snapshot).await?;
        }
        Ok(snapshot)
    }

    /// Begins a transaction that writes, after those before it have ended.
    pub(super) async fn begin(&self) -> Result<Transaction, Fault> {
        let mut writer = Arc::clone(&self.writer).lock_owned().await;
        writer.ready(self.file.as_ref()).await?;
        let connection = writer.connection.as_mut().ok_or(Fault::Closed)?;
        // The lock is taken now, not at the first write: a later upgrade could fail halfway.
        sqlx::query("BEGIN IMMEDIATE").execute(connection).await?;
        writer.open = true;
        Ok(Transaction { writer })
    }

    /// Ends everything.
    pub(super) async fn close(&self) {
        let mut writer = self.writer.lock().await;
        writer.closed = true;
        if let Some(readers) = &self.readers {
            readers.close().await;
        }
        if let Some(mut connection) = writer.connection.take() {
            let _ = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
                .execute(&mut connection)
                .await;
            let _ = connection.close().await;
        }
    }
}

impl Writer {
    fn new(connection: SqliteConnection) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            connection: Some(connection),
            open: false,
            closed: false,
        }))
    }

    /// Makes sure that there is a connection without a transaction. `file` says how to open a new one.
    async fn ready(&mut self, file: Option<&SqliteConnectOptions>) -> Result<(), Fault> {
        if self.closed {
            return Err(Fault::Closed);
        }
        if self.open {
            match file {
                // Closing a connection undoes its transaction for certain.
                Some(_) => {
                    if let Some(connection) = self.connection.take() {
                        let _ = connection.close().await;
                    }
                }
                // Fails when `SQLite` has undone the transaction already.
                None => {
                    if let Some(connection) = &mut self.connection {
                        let _ = sqlx::query("ROLLBACK").execute(connection).await;
                    }
                }
            }
            self.open = false;
        }
        if let (None, Some(file)) = (&self.connection, file) {
            self.connection = Some(file.connect().await?);
        }
        Ok(())
    }
}

/// A connection that reads.
pub(super) enum Reader {
    Own(PoolConnection<Sqlite>),
    Shared(OwnedMappedMutexGuard<Writer, SqliteConnection>),
}

impl Deref for Reader {
    type Target = SqliteConnection;
    fn deref(&self) -> &SqliteConnection {
        match self {
            Self::Own(connection) => connection,
            Self::Shared(connection) => connection,
        }
    }
}

impl DerefMut for Reader {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        match self {
            Self::Own(connection) => connection,
            Self::Shared(connection) => connection,
        }
    }
}

/// A reader with an open transaction. Dropped before its end, it takes its connection with it.
pub(super) struct Snapshot {
    /// `None` only once it ended.
    reader: Option<Reader>,
}

impl Snapshot {
    pub(super) async fn end(mut self) -> Result<(), Fault> {
        if let Some(Reader::Own(connection)) = &mut self.reader {
            sqlx::query("COMMIT").execute(&mut **connection).await?;
        }
        self.reader = None;
        Ok(())
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if let Some(Reader::Own(mut connection)) = self.reader.take() {
            connection.close_on_drop();
        }
    }
}

impl Deref for Snapshot {
    type Target = SqliteConnection;
    fn deref(&self) -> &SqliteConnection {
        self.reader.as_ref().expect("a snapshot has its reader until it ends")
    }
}

impl DerefMut for Snapshot {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        self.reader.as_mut().expect("a snapshot has its reader until it ends")
    }
}

/// The writing transaction. Dropped before its end, it is undone before the next one begins.
pub(super) struct Transaction {
    writer: OwnedMutexGuard<Writer>,
}

/// Why a commit failed.
#[derive(Debug)]
pub(super) enum Uncommitted {
    /// Nothing was committed.
    Nothing(Fault),
    /// It may or may not have been.
    Unknown(Fault),
}

impl From<Uncommitted> for Fault {
    fn from(uncommitted: Uncommitted) -> Self {
        match uncommitted {
            Uncommitted::Nothing(fault) | Uncommitted::Unknown(fault) => fault,
        }
    }
}

impl Transaction {
    /// Commits what succeeded, undoes what did not. For changes of which the next look tells whether they happened.
    pub(super) async fn end<T, E: From<Fault>>(self, result: Result<T, E>) -> Result<T, E> {
        if result.is_err() {
            self.rollback().await;
            return result;
        }
        self.commit().await.map_err(Fault::from)?;
        result
    }

    pub(super) async fn commit(mut self) -> Result<(), Uncommitted> {
        let Err(error) = sqlx::query("COMMIT").execute(&mut *self).await else {
            self.writer.open = false;
            return Ok(());
        };
        let nothing = error.as_database_error().is_some() && {
            // The commit record is the last that is written, so a lack of space or of a lock leaves it out; so does a write
            // that the system refused (SQLITE_IOERR_WRITE).
            let refused = matches!(code(&error), Some(Code::Busy | Code::Full | Code::Constraint));
            refused
                || error
                    .as_database_error()
                    .and_then(sqlx::error::DatabaseError::code)
                    .is_some_and(|code| code == "778")
        };
        self.rollback().await;
        Err(if nothing {
            Uncommitted::Nothing(error.into())
        } else {
            Uncommitted::Unknown(error.into())
        })
    }

    /// Undoes everything. When the database cannot say so, the connection is closed before the next transaction, which does.
    pub(super) async fn rollback(mut self) {
        if sqlx::query("ROLLBACK").execute(&mut *self).await.is_ok() {
            self.writer.open = false;
        }
    }
}

impl Deref for Transaction {
    type Target = SqliteConnection;
    fn deref(&self) -> &SqliteConnection {
        self.writer
            .connection
            .as_ref()
            .expect("a transaction keeps its connection until it ends")
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        self.writer
            .connection
            .as_mut()
            .expect("a transaction keeps its connection until it ends")
    }
}

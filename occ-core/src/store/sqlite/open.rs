//! Opening a database file: whose it is, whether this program may change it, and what to do when not.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use sqlx::{
    ConnectOptions as _, Connection as _, Row as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};

use super::{
    connection::Connections,
    fault::{Code, code},
    schema::{self, Found, Unfit},
};

/// How long a lock of another process is waited for, here and by every later statement.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a database was not opened. Nothing was changed, unless the text says so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory does not exist.
    #[error("the directory of the database {} does not exist: create it, or name another", path.display())]
    DirectoryMissing {
        /// The database file.
        path: PathBuf,
    },
    /// The path names a directory, a device or a socket.
    #[error("{} is not a regular file: name a file for the database", path.display())]
    NotAFile {
        /// The database file.
        path: PathBuf,
    },
    /// The file or its directory may not be read and written.
    #[error(
        "this user may not read and write the database {} and its directory, or its file system is read-only: \
         correct the owner and the permissions, or name another file",
        path.display()
    )]
    Denied {
        /// The database file.
        path: PathBuf,
    },
    /// The file is not a database, or it is damaged.
    #[error("{} is not a database, or it is damaged: restore it from a backup, or name another file", path.display())]
    NotADatabase {
        /// The database file.
        path: PathBuf,
    },
    /// The schema is not the one that its version names.
    #[error(
        "the tables and rules of the database {} are not those of its schema version, so that nothing in it can be relied on: \
         restore a backup, or name another file",
        path.display()
    )]
    Altered {
        /// The database file.
        path: PathBuf,
    },
    /// The database belongs to another program.
    #[error("{} is the database of another program: name another file", path.display())]
    Foreign {
        /// The database file.
        path: PathBuf,
    },
    /// A newer version of this program wrote the database.
    #[error(
        "the database {} has schema version {found}, and this program knows versions up to {known}: \
         run the program that wrote it, or a newer one",
        path.display()
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// Its schema's version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// Another program keeps the database locked.
    #[error("another program keeps the database {} locked: end it, or wait until it is done", path.display())]
    Locked {
        /// The database file.
        path: PathBuf,
    },
    /// The device is full.
    #[error("there is no space left for the database {}: free some", path.display())]
    NoSpace {
        /// The database file.
        path: PathBuf,
    },
    /// The file system cannot carry a write-ahead log.
    #[error(
        "the file system of the database {} has no shared memory between processes: use a local file system",
        path.display()
    )]
    Unsupported {
        /// The database file.
        path: PathBuf,
    },
    /// The system refused for another reason.
    #[error("the database {} cannot be opened: {kind}", path.display())]
    System {
        /// The database file.
        path: PathBuf,
        /// The sort of refusal.
        kind: ErrorKind,
    },
}

/// Opens and migrates a file.
pub(super) async fn file(path: &Path) -> Result<Connections, OpenError> {
    let path = placed(path)?;
    let options = options().filename(&path);
    let started = Instant::now();
    loop {
        match connect(&options, &path).await {
            Ok(connection) => return Ok(Connections::of_file(options, connection)),
            // The change to write-ahead mode does not wait for a lock by itself: two processes may open a new file at once.
            Err(OpenError::Locked { .. }) if started.elapsed() < BUSY_TIMEOUT => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Makes a database in memory.
pub(super) async fn memory() -> Result<Connections, OpenError> {
    let path = PathBuf::from(":memory:");
    let read = |error: sqlx::Error| refusal(&error, &path);
    let mut connection = options().in_memory(true).connect().await.map_err(read)?;
    schema::make(&mut connection).await.map_err(read)?;
    Ok(Connections::of_memory(connection))
}

fn options() -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        // An acknowledged commit survives the loss of power: that is what a 202 promises.
        .synchronous(SqliteSynchronous::Full)
        .statement_cache_capacity(256)
        // Statements hold no values, but there are many.
        .disable_statement_logging()
}

/// The absolute path of an existing private file.
fn placed(path: &Path) -> Result<PathBuf, OpenError> {
    let given = || path.to_owned();
    let name = path.file_name().ok_or_else(|| OpenError::NotAFile { path: given() })?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let missing = || OpenError::DirectoryMissing { path: given() };
    let directory = directory.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => missing(),
        _ => system(&error, given()),
    })?;
    if !directory.is_dir() {
        return Err(missing());
    }
    let path = directory.join(name);
    // SQLite gives its -wal and -shm files the permissions of this one, so it must be private before it is opened.
    match fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
    {
        Ok(_) => return Ok(path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(system(&error, path)),
    }
    let metadata = fs::metadata(&path).map_err(|error| system(&error, path.clone()))?;
    if !metadata.is_file() {
        return Err(OpenError::NotAFile { path });
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(|error| system(&error, path.clone()))?;
    }
    Ok(path)
}

async fn connect(options: &SqliteConnectOptions, path: &Path) -> Result<SqliteConnection, OpenError> {
    let mut connection = options.connect().await.map_err(|error| refusal(&error, path))?;
    match prepare(&mut connection, path).await {
        Ok(()) => Ok(connection),
        Err(error) => {
            let _ = connection.close().await;
            Err(error)
        }
    }
}

async fn prepare(connection: &mut SqliteConnection, path: &Path) -> Result<(), OpenError> {
    let read = |error: sqlx::Error| refusal(&error, path);
    // First of all, so that a database that is not ours to change stays as it is.
    match schema::look(connection).await.map_err(read)? {
        Found::Foreign => return Err(OpenError::Foreign { path: path.to_owned() }),
        Found::Version(found) if found > schema::VERSION => {
            return Err(OpenError::Newer {
                path: path.to_owned(),
                found,
                known: schema::VERSION,
            });
        }
        // A migration and its number are one transaction: nobody who finishes one leaves less.
        Found::Version(found) if found < 1 => return Err(OpenError::NotADatabase { path: path.to_owned() }),
        Found::Empty | Found::Version(_) => {}
    }
    let row = sqlx::query("PRAGMA journal_mode = WAL")
        .fetch_one(&mut *connection)
        .await
        .map_err(read)?;
    if row.try_get::<String, _>(0).map_err(read)? != "wal" {
        return Err(OpenError::Unsupported { path: path.to_owned() });
    }
    schema::migrate(connection).await.map_err(|unfit| match unfit {
        Unfit::Altered => OpenError::Altered { path: path.to_owned() },
        Unfit::Database(error) => refusal(&error, path),
    })
}

pub(super) fn refusal(error: &sqlx::Error, path: &Path) -> OpenError {
    let path = path.to_owned();
    if let sqlx::Error::Io(error) = error {
        return system(error, path);
    }
    match code(error) {
        Some(Code::Busy) => OpenError::Locked { path },
        Some(Code::Denied | Code::CannotOpen) => OpenError::Denied { path },
        Some(Code::Full) => OpenError::NoSpace { path },
        Some(Code::Corrupt | Code::NotADatabase) => OpenError::NotADatabase { path },
        // A schema of ours with tables that are not: somebody else wrote into it.
        Some(Code::Constraint | Code::Statement) => OpenError::Altered { path },
        Some(Code::Other) | None => OpenError::System {
            path,
            kind: ErrorKind::Other,
        },
    }
}

pub(super) fn system(error: &io::Error, path: PathBuf) -> OpenError {
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => OpenError::Denied { path },
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => OpenError::NoSpace { path },
        kind => OpenError::System { path, kind },
    }
}

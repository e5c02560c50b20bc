//! Backups: a copy of one moment while everything runs, and its way back.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{
    ConnectOptions as _, Connection as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteLockingMode},
};

use super::{
    fault::{Code, code},
    open::{OpenError, refusal, system},
    schema::{self, Found},
};
use crate::store::SchemaVersion;

/// How long a backup waits for a lock. A reader in write-ahead mode hardly ever does.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Why nothing was copied. What was there is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// One of the two files cannot be opened, or is not ours.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is a file already where the backup should be.
    #[error("{} exists already: name a new file", path.display())]
    Exists {
        /// The backup.
        path: PathBuf,
    },
    /// Another process has the database open.
    #[error("another process has the database {} open: stop the control plane first", path.display())]
    Live {
        /// The database.
        path: PathBuf,
    },
    /// The database knows more than the backup.
    #[error(
        "the database {} records {found} events and the backup only {kept}: what came since would be lost; \
         move the database away first if the backup is what you want",
        path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// The last event of the database.
        found: i64,
        /// The last event of the backup.
        kept: i64,
    },
}

/// Looks at the schema of a database without changing anything. One that does not exist has version 0.
pub(super) async fn schema(path: &Path) -> Result<SchemaVersion, OpenError> {
    let known = schema::VERSION;
    if !path.exists() {
        return Ok(SchemaVersion { found: 0, known });
    }
    let mut db = connect(&existing(path), path).await?;
    let found = look(&mut db, path).await;
    let _ = db.close().await;
    match found {
        Ok(found) => Ok(SchemaVersion { found, known }),
        Err(OpenError::Newer { found, known, .. }) => Ok(SchemaVersion { found, known }),
        Err(error) => Err(error),
    }
}

/// Writes a copy of one moment of a database, also while it is in use, into a new private file.
pub(super) async fn backup(database: &Path, to: &Path) -> Result<(), CopyError> {
    let mut db = connect(&existing(database), database).await?;
    let copied = async {
        look(&mut db, database).await?;
        if to.exists() {
            return Err(CopyError::Exists { path: to.to_owned() });
        }
        let partial = beside(to, "partial");
        // SQLite writes into an empty file that exists, and leaves its permissions.
        private(&partial)?;
        let written = sqlx::query("VACUUM INTO ?")
            .bind(partial.display().to_string())
            .execute(&mut db)
            .await;
        let finished = match written {
            Ok(_) => placed(&partial, to),
            Err(error) => Err(refusal(&error, to).into()),
        };
        let _ = fs::remove_file(&partial);
        finished
    };
    let copied = copied.await;
    let _ = db.close().await;
    copied
}

/// Puts a backup in the place of a database that nobody has open and that knows nothing that the backup does not.
pub(super) async fn restore(backup: &Path, database: &Path) -> Result<(), CopyError> {
    let mut source = connect(&existing(backup).read_only(true), backup).await?;
    let checked = async {
        look(&mut source, backup).await?;
        let sound: String = sqlx::query_scalar("PRAGMA quick_check(1)")
            .fetch_one(&mut source)
            .await
            .map_err(|error| refusal(&error, backup))?;
        if sound != "ok" {
            let path = backup.to_owned();
            return Err(OpenError::NotADatabase { path });
        }
        last_event(&mut source, backup).await
    };
    let kept = checked.await;
    let _ = source.close().await;
    let kept = kept?;
    if database.exists() {
        unused(database, kept).await?;
    }
    let partial = beside(database, "restoring");
    let put = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&partial)?;
        io::copy(&mut File::open(backup)?, &mut file)?;
        file.sync_all()?;
        // The log of the database that goes away would spoil the one that comes.
        for suffix in ["-wal", "-shm"] {
            match fs::remove_file(format!("{}{suffix}", database.display())) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&partial, database)?;
        directory(database)?.sync_all()
    };
    put().map_err(|error: io::Error| {
        let _ = fs::remove_file(&partial);
        system(&error, database.to_owned()).into()
    })
}

/// Makes sure that nobody has the database open, and that it records no more than so many events.
async fn unused(database: &Path, kept: i64) -> Result<(), CopyError> {
    let live = || CopyError::Live {
        path: database.to_owned(),
    };
    let alone = existing(database)
        .locking_mode(SqliteLockingMode::Exclusive)
        .busy_timeout(Duration::from_millis(200));
    let mut db = match connect(&alone, database).await {
        Err(OpenError::Locked { .. }) => return Err(live()),
        connected => connected?,
    };
    let judged = async {
        // In exclusive mode the lock is refused as long as anybody else has the file open.
        if let Err(error) = sqlx::query("BEGIN EXCLUSIVE").execute(&mut db).await {
            return Err(match code(&error) {
                Some(Code::Busy) => live(),
                _ => refusal(&error, database).into(),
            });
        }
        look(&mut db, database).await?;
        let found = last_event(&mut db, database).await?;
        if found > kept {
            let path = database.to_owned();
            return Err(CopyError::Newer { path, found, kept });
        }
        Ok(())
    };
    let judged = judged.await;
    let _ = db.close().await;
    judged
}

fn existing(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .busy_timeout(BUSY_TIMEOUT)
        .disable_statement_logging()
}

async fn connect(options: &SqliteConnectOptions, path: &Path) -> Result<SqliteConnection, OpenError> {
    if !path.is_file() {
        let path = path.to_owned();
        return Err(OpenError::NotAFile { path });
    }
    options.connect().await.map_err(|error| refusal(&error, path))
}

/// The version of our schema.
async fn look(db: &mut SqliteConnection, path: &Path) -> Result<i64, OpenError> {
    let path = path.to_owned();
    match schema::look(db).await.map_err(|error| refusal(&error, &path))? {
        Found::Version(found) if found > schema::VERSION => Err(OpenError::Newer {
            path,
            found,
            known: schema::VERSION,
        }),
        Found::Version(found) => Ok(found),
        Found::Empty | Found::Foreign => Err(OpenError::Foreign { path }),
    }
}

/// Every change of a resource is recorded: the last event tells how far a database has come.
async fn last_event(db: &mut SqliteConnection, path: &Path) -> Result<i64, OpenError> {
    let query = "SELECT coalesce(max(sequence), 0) FROM audit";
    let last = sqlx::query_scalar(query).fetch_one(db).await;
    last.map_err(|error| refusal(&error, path))
}

fn beside(path: &Path, extension: &str) -> PathBuf {
    PathBuf::from(format!("{}.{extension}", path.display()))
}

fn private(path: &Path) -> Result<(), CopyError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(CopyError::Exists { path: path.to_owned() }),
        Err(error) => Err(system(&error, path.to_owned()).into()),
    }
}

/// Gives a finished file its name, which nobody else may have taken meanwhile.
fn placed(partial: &Path, to: &Path) -> Result<(), CopyError> {
    let named = || {
        File::open(partial)?.sync_all()?;
        fs::hard_link(partial, to)?;
        directory(to)?.sync_all()
    };
    named().map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => CopyError::Exists { path: to.to_owned() },
        _ => system(&error, to.to_owned()).into(),
    })
}

fn directory(of: &Path) -> io::Result<File> {
    match of.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent),
        _ => File::open("."),
    }
}

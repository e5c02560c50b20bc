//! Whose file it is, and what to do when it cannot be opened.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use occ_core::store::{
    Change, CommitError, Slice, Store as _, StoreError,
    sqlite::{OpenError, SqliteStore},
};
use sqlx::{AssertSqlSafe, Connection as _};
use tempfile::TempDir;

use crate::{
    subject::raw,
    world::{Load, World},
};

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("occ.db");
    (directory, file)
}

async fn refused(file: &Path) -> OpenError {
    let error = SqliteStore::open(file).await.expect_err("it is refused");
    // Every refusal names the file and says what to do.
    let text = error.to_string();
    assert!(
        text.contains(&file.display().to_string()) && text.contains(": "),
        "{text}"
    );
    error
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).expect("the file").mode() & 0o7777
}

pub async fn the_file_and_its_companions_are_private() {
    let (_directory, file) = place();
    let store = SqliteStore::open(&file).await.expect("the store opens");
    World::create(Arc::new(store.clone())).await;
    for suffix in ["", "-wal", "-shm"] {
        let file = PathBuf::from(format!("{}{suffix}", file.display()));
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    store.close().await;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("it is opened up");
    SqliteStore::open(&file).await.expect("the store opens").close().await;
    assert_eq!(mode(&file), 0o600);
}

pub async fn a_missing_directory_is_named() {
    let (directory, _) = place();
    let file = directory.path().join("absent/occ.db");
    assert_eq!(refused(&file).await, OpenError::DirectoryMissing { path: file.clone() });
    assert!(!directory.path().join("absent").exists());
    // A file in the place of the directory is no directory either.
    fs::write(directory.path().join("absent"), "x").expect("a file");
    assert_eq!(refused(&file).await, OpenError::DirectoryMissing { path: file });
}

pub async fn a_directory_is_not_a_file() {
    let (directory, _) = place();
    let path = directory.path().canonicalize().expect("a path");
    assert_eq!(refused(&path).await, OpenError::NotAFile { path });
    assert!(matches!(refused(Path::new("/")).await, OpenError::NotAFile { .. }));
}

/// The kernel's own file system lets not even root create a file.
pub async fn a_place_that_may_not_be_written_is_denied() {
    let path = PathBuf::from("/sys/occ.db");
    assert_eq!(refused(&path).await, OpenError::Denied { path });
}

pub async fn garbage_is_no_database_and_stays_as_it_is() {
    let (_directory, file) = place();
    let long = vec![0x5a_u8; 100_000];
    for garbage in [b"hello".as_slice(), &[0; 8192], &long, b"SQLite format 3\0"] {
        fs::write(&file, garbage).expect("garbage");
        assert!(
            matches!(refused(&file).await, OpenError::NotADatabase { .. }),
            "{} bytes",
            garbage.len()
        );
        assert_eq!(fs::read(&file).expect("the file"), garbage);
    }
    // An empty file is what a crash leaves before the first write.
    fs::write(&file, b"").expect("an empty file");
    SqliteStore::open(&file).await.expect("the store opens").close().await;
}

pub async fn a_damaged_database_is_refused() {
    let (_directory, file) = place();
    let store = SqliteStore::open(&file).await.expect("the store opens");
    World::create(Arc::new(store.clone())).await;
    store.close().await;
    let bytes = fs::read(&file).expect("the file");
    // Cut short.
    fs::write(&file, &bytes[..4096]).expect("a piece");
    assert!(matches!(refused(&file).await, OpenError::NotADatabase { .. }));
    // Overwritten below an intact header: it opens, and says so when it is read. No answer is made up.
    let mut spoilt = bytes.clone();
    let middle = 8 * 4096..bytes.len();
    spoilt[middle].fill(0xff);
    fs::write(&file, &spoilt).expect("the spoilt file");
    match SqliteStore::open(&file).await {
        Err(error) => assert!(matches!(error, OpenError::NotADatabase { .. }), "{error}"),
        Ok(store) => {
            assert!(matches!(
                store.namespaces(&Slice::ALL).await,
                Err(StoreError::Corrupt(_) | StoreError::Unavailable)
            ));
            store.close().await;
        }
    }
}

/// A finished `SQLite` file that these statements made.
async fn made(file: &Path, statements: &str) -> Vec<u8> {
    let mut options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true);
    options = options.foreign_keys(false);
    let mut db = sqlx::ConnectOptions::connect(&options).await.expect("the file opens");
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
        .execute(&mut db)
        .await
        .expect("it is made");
    db.close().await.expect("it closes");
    fs::read(file).expect("the file")
}

pub async fn another_programs_database_is_refused_and_stays_as_it_is() {
    for statements in [
        "CREATE TABLE t (x)",
        "PRAGMA application_id = 7; CREATE TABLE t (x)",
        "PRAGMA application_id = 7",
    ] {
        let (_directory, file) = place();
        let before = made(&file, statements).await;
        assert!(
            matches!(refused(&file).await, OpenError::Foreign { .. }),
            "{statements}"
        );
        assert_eq!(fs::read(&file).expect("the file"), before);
    }
}

pub async fn a_newer_schema_is_refused_and_stays_as_it_is() {
    let (_directory, file) = place();
    SqliteStore::open(&file).await.expect("the store opens").close().await;
    let newer = "INSERT INTO schema_version VALUES (999, 0); CREATE TABLE of_the_future (x)";
    let before = made(&file, newer).await;
    let error = refused(&file).await;
    assert!(
        matches!(error, OpenError::Newer { found: 999, known, .. } if known < 999),
        "{error}"
    );
    assert!(error.to_string().contains("999"));
    assert_eq!(fs::read(&file).expect("the file"), before);
}

pub async fn a_schema_without_a_version_is_damage_and_stays_as_it_is() {
    for spoilt in [
        "DELETE FROM schema_version",
        "UPDATE schema_version SET version = version - 1000",
        "UPDATE schema_version SET version = version - (SELECT max(version) FROM schema_version)",
        "DROP TABLE schema_version",
    ] {
        let (_directory, file) = place();
        SqliteStore::open(&file).await.expect("the store opens").close().await;
        let before = made(&file, spoilt).await;
        let error = refused(&file).await;
        assert!(matches!(error, OpenError::NotADatabase { .. }), "{spoilt}: {error}");
        assert_eq!(fs::read(&file).expect("the file"), before);
    }
}

pub async fn a_schema_that_is_not_what_its_version_says_is_refused_and_stays_as_it_is() {
    for altered in [
        "DROP TABLE answers",
        "DROP TRIGGER audit_append_only",
        "DROP INDEX work_lease",
        "ALTER TABLE agents ADD COLUMN mood TEXT",
        // Of a build between two versions: the next migration does not fit it, or fits and leaves something else.
        "DELETE FROM schema_version WHERE version > 1; DROP TABLE work",
        "DELETE FROM schema_version WHERE version > 1; DROP INDEX work_over; DROP TABLE audit_anchor; DROP TABLE memberships",
    ] {
        let (_directory, file) = place();
        SqliteStore::open(&file).await.expect("the store opens").close().await;
        let before = made(&file, altered).await;
        let error = refused(&file).await;
        assert!(matches!(error, OpenError::Altered { .. }), "{altered}: {error}");
        assert_eq!(fs::read(&file).expect("the file"), before, "{altered}");
    }
    let (_directory, file) = place();
    SqliteStore::open(&file).await.expect("the store opens").close().await;
    made(&file, "CREATE INDEX of_the_operator ON audit (kind)").await;
    SqliteStore::open(&file)
        .await
        .expect("an index of one's own does no harm")
        .close()
        .await;
}

pub async fn a_database_that_another_program_keeps_locked_is_refused() {
    let (_directory, file) = place();
    SqliteStore::open(&file).await.expect("the store opens").close().await;
    let mut other = raw(&file).await;
    let lock = "PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; UPDATE schema_version SET applied_at = 1; COMMIT";
    sqlx::raw_sql(lock).execute(&mut other).await.expect("it is locked");
    assert!(matches!(refused(&file).await, OpenError::Locked { .. }));
    other.close().await.expect("it closes");
    SqliteStore::open(&file).await.expect("the store opens").close().await;
}

pub async fn opening_at_once_in_two_handles_migrates_once() {
    let (_directory, file) = place();
    let open = || {
        tokio::spawn({
            let file = file.clone();
            async move { SqliteStore::open(&file).await }
        })
    };
    let tasks: Vec<_> = (0..6).map(|_| open()).collect();
    let mut stores = Vec::new();
    for task in tasks {
        stores.push(task.await.expect("no panic").expect("the store opens"));
    }
    World::create(Arc::new(stores[0].clone())).await;
    for store in &stores {
        assert_eq!(store.namespaces(&Slice::ALL).await.expect("a read").len(), 1);
    }
    let versions: i64 = sqlx::query_scalar("SELECT count(*) FROM schema_version")
        .fetch_one(&mut raw(&file).await)
        .await
        .expect("a count");
    let known = SqliteStore::schema(&file).await.expect("a schema").known;
    assert_eq!(versions, known, "each migration once");
}

pub async fn a_closed_store_leaves_one_file_and_answers_no_more() {
    let (directory, file) = place();
    let store = SqliteStore::open(&file).await.expect("the store opens");
    World::create(Arc::new(store.clone())).await;
    store.close().await;
    store.close().await;
    let names: Vec<_> = fs::read_dir(directory.path())
        .expect("the directory")
        .map(|e| e.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["occ.db"]);
    assert_eq!(store.namespaces(&Slice::ALL).await, Err(StoreError::Unavailable));
    assert_eq!(store.commit(Change::new()).await, Err(CommitError::Unavailable));
    let store = SqliteStore::open(&file).await.expect("the store opens again");
    assert_eq!(store.namespaces(&Slice::ALL).await.expect("a read").len(), 1);
}

pub async fn a_database_in_memory_is_a_store() {
    let store = SqliteStore::open_in_memory().await.expect("it opens");
    let mut world = World::create(Arc::new(store.clone())).await;
    assert_eq!(world.step(Load::Small).await, Ok(1));
    assert_eq!(world.count().await, 1);
    // Another is another.
    let other = SqliteStore::open_in_memory().await.expect("it opens");
    assert_eq!(other.namespaces(&Slice::ALL).await, Ok(vec![]));
    store.close().await;
    assert_eq!(store.namespaces(&Slice::ALL).await, Err(StoreError::Unavailable));
}

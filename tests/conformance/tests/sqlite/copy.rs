//! Backups: of a database in use, and back in its place.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use occ_core::store::sqlite::{CopyError, OpenError, SqliteStore};
use tempfile::TempDir;

use crate::{
    crash::whole,
    subject::raw,
    world::{Load, World},
};

/// A database with so many versions, and the name of a backup beside it.
async fn place(versions: u64) -> (TempDir, PathBuf, PathBuf, SqliteStore) {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, copy) = (directory.path().join("occ.db"), directory.path().join("copy.db"));
    let store = SqliteStore::open(&file).await.expect("the store opens");
    let mut world = World::create(Arc::new(store.clone())).await;
    for _ in 0..versions {
        world.step(Load::Small).await.expect("the change commits");
    }
    (directory, file, copy, store)
}

async fn versions(file: &Path) -> u64 {
    let store = SqliteStore::open(file).await.expect("the store opens");
    let count = World::open(Arc::new(store.clone())).await.count().await;
    store.close().await;
    count
}

pub async fn a_backup_of_a_database_in_use_is_of_one_moment_and_private() {
    let (_directory, file, copy, store) = place(3).await;
    let writer = tokio::spawn(async move {
        let mut world = World::open(Arc::new(store)).await;
        for _ in 0..60 {
            world.step(Load::Small).await.expect("the change commits");
        }
    });
    let mut copies = 0;
    while !writer.is_finished() || copies == 0 {
        SqliteStore::backup(&file, &copy).await.expect("it is backed up");
        assert_eq!(fs::metadata(&copy).expect("the backup").mode() & 0o7777, 0o600);
        assert!(whole(&mut raw(&copy).await).await >= 3);
        fs::remove_file(&copy).expect("it is removed");
        copies += 1;
    }
    writer.await.expect("no panic");
}

pub async fn a_backup_replaces_no_file() {
    let (_directory, file, copy, _store) = place(1).await;
    fs::write(&copy, "mine").expect("a file");
    let refused = SqliteStore::backup(&file, &copy).await;
    assert_eq!(refused, Err(CopyError::Exists { path: copy.clone() }));
    assert_eq!(fs::read(&copy).expect("the file"), b"mine");
    let (absent, other) = (file.with_extension("absent"), copy.with_extension("other"));
    assert!(matches!(
        SqliteStore::backup(&absent, &other).await,
        Err(CopyError::Open(OpenError::NotAFile { .. }))
    ));
    assert!(!other.exists());
}

pub async fn a_restored_database_is_the_backup() {
    let (_directory, file, copy, store) = place(2).await;
    SqliteStore::backup(&file, &copy).await.expect("it is backed up");
    store.close().await;
    // In the place of the same, and of nothing.
    SqliteStore::restore(&copy, &file).await.expect("it is restored");
    assert_eq!(versions(&file).await, 2);
    fs::remove_file(&file).expect("it is lost");
    SqliteStore::restore(&copy, &file).await.expect("it is restored");
    assert_eq!(fs::metadata(&file).expect("the file").mode() & 0o7777, 0o600);
    let store = SqliteStore::open(&file).await.expect("the store opens");
    let mut world = World::open(Arc::new(store.clone())).await;
    assert_eq!(world.step(Load::Small).await, Ok(3), "it goes on");
    store.close().await;
}

pub async fn a_database_that_is_open_or_knows_more_is_not_replaced() {
    let (_directory, file, copy, store) = place(2).await;
    SqliteStore::backup(&file, &copy).await.expect("it is backed up");
    let open = SqliteStore::restore(&copy, &file).await;
    assert_eq!(open, Err(CopyError::Live { path: file.clone() }));
    World::open(Arc::new(store.clone()))
        .await
        .step(Load::Small)
        .await
        .expect("the change commits");
    store.close().await;
    assert_eq!(
        SqliteStore::restore(&copy, &file).await,
        Err(CopyError::Newer {
            path: file.clone(),
            found: 3,
            kept: 2
        })
    );
    assert_eq!(versions(&file).await, 3, "it is as it was");
}

pub async fn what_is_no_backup_of_ours_restores_nothing() {
    let (_directory, file, copy, store) = place(1).await;
    SqliteStore::backup(&file, &copy).await.expect("it is backed up");
    store.close().await;
    let newer = "INSERT INTO schema_version VALUES (999, 0)";
    sqlx::raw_sql(newer)
        .execute(&mut raw(&copy).await)
        .await
        .expect("it is of the future");
    let refused = SqliteStore::restore(&copy, &file).await;
    assert!(
        matches!(refused, Err(CopyError::Open(OpenError::Newer { found: 999, .. }))),
        "{refused:?}"
    );
    fs::write(&copy, vec![7; 8192]).expect("garbage");
    let refused = SqliteStore::restore(&copy, &file).await;
    assert!(
        matches!(refused, Err(CopyError::Open(OpenError::NotADatabase { .. }))),
        "{refused:?}"
    );
    assert_eq!(versions(&file).await, 1);
}

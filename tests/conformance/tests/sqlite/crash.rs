//! A process that is killed in the middle of its writes.

use std::path::Path;

use occ_core::store::sqlite::SqliteStore;
use sqlx::{Row as _, SqliteConnection};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::{
    child::{Role, command},
    subject::raw,
    world::DRIVER,
};

/// Everything of each version, or nothing: its work, its record, its event. Returns how many versions there are.
pub async fn whole(db: &mut SqliteConnection) -> i64 {
    let check: String = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(&mut *db)
        .await
        .expect("a check");
    assert_eq!(check, "ok");
    let broken = sqlx::query("PRAGMA foreign_key_check")
        .fetch_all(&mut *db)
        .await
        .expect("a check");
    assert!(broken.is_empty());
    let query = "SELECT count(*) AS versions, max(number) AS newest,
            (SELECT count(*) FROM work w WHERE w.kind = 'revision') AS work,
            (SELECT count(*) FROM driver_state WHERE driver = ?) AS records,
            (SELECT count(*) FROM audit WHERE action = 'openclaw.agents.deploy') AS events,
            count(w.key) AS own_work, count(s.key) AS own_records
        FROM revisions r LEFT JOIN work w ON w.revision_id = r.id LEFT JOIN driver_state s ON s.key = r.id";
    let row = sqlx::query(query).bind(DRIVER).fetch_one(db).await.expect("the counts");
    let versions: i64 = row.get("versions");
    for column in ["newest", "work", "records", "events", "own_work", "own_records"] {
        assert_eq!(row.get::<i64, _>(column), versions, "{column}");
    }
    versions
}

pub async fn a_killed_writer_leaves_only_whole_changes() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("occ.db");
    let mut acknowledged = 0;
    for round in 0..6 {
        // A little later each time, so that the kill falls on different moments.
        let now = killed_after(&file, 3 + round * 4).await;
        assert!(now > acknowledged);
        acknowledged = now;
        // The write-ahead log of the dead process is taken over by whoever opens the file next.
        let store = SqliteStore::open(&file).await.expect("the store opens again");
        let versions = whole(&mut raw(&file).await).await;
        assert!(
            versions >= acknowledged,
            "{acknowledged} were acknowledged, {versions} are there"
        );
        // At most the change that was under way when the process was killed.
        assert!(
            versions <= acknowledged + 1,
            "{acknowledged} were acknowledged, {versions} are there"
        );
        store.close().await;
    }
}

/// Runs a writer, kills it after so many acknowledged changes, and returns the last one that it acknowledged.
async fn killed_after(file: &Path, changes: usize) -> i64 {
    let mut child = command(Role::Write, file, &[]).spawn().expect("the writer starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let number = |line: String| {
        line.strip_prefix("committed ")
            .and_then(|n| n.parse().ok())
            .expect("a number")
    };
    let mut last = 0;
    for _ in 0..changes {
        last = number(lines.next_line().await.expect("a line").expect("the writer goes on"));
    }
    child.start_kill().expect("it is killed");
    child.wait().await.expect("it is gone");
    // What it acknowledged before the signal reached it.
    while let Some(line) = lines.next_line().await.expect("a line") {
        last = number(line);
    }
    last
}

//! The cost of what runs often does not grow with what is finished: shown by the indexes that `SQLite` chooses, not by a clock.

use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use super::{SqliteStore, claim, connection::Connections, read, recover, version};
use crate::{
    store::{DeployQuery, Store as _, WorkState},
    work::{Lease, Target},
};

/// An Agent with ten thousand finished versions, and one that waits. Made by the database itself.
const HISTORY: &str = "
    PRAGMA foreign_keys = OFF;
    CREATE TEMP TABLE ids AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10001)
        SELECT n, printf('rev_00000000-0000-4000-8000-%012x', n) AS id FROM n;
    INSERT INTO namespaces (id, name, status, version, created_at)
        VALUES ('ns_00000000-0000-4000-8000-000000000000', 'n', 'ready', 1, 0);
    INSERT INTO agents (id, namespace_id, name, service_principal_id, configuration_id, execution_mode, desired, status,
            version, created_at)
        VALUES ('agt_00000000-0000-4000-8000-000000000000', 'ns_00000000-0000-4000-8000-000000000000', 'a', 'p',
            'cfg_00000000-0000-4000-8000-000000000000', 'embedded', 'running', 'active', 1, 0);
    INSERT INTO revisions SELECT id, 'ns_00000000-0000-4000-8000-000000000000',
        'agt_00000000-0000-4000-8000-000000000000', n, x'7b7d', printf('%064d', 0), n = 10001, 0 FROM ids ORDER BY n;
    INSERT INTO work (key, kind, namespace_id, agent_id, revision_id, lane, actor, state, available_at, attempts, code,
            result, completed_at, created_at)
        SELECT 'agent_revision:' || id || ':reconcile', 'revision', 'ns_00000000-0000-4000-8000-000000000000',
            'agt_00000000-0000-4000-8000-000000000000', id, 'agt_00000000-0000-4000-8000-000000000000', 'p',
            iif(n = 10001, 'queued', 'succeeded'), 0, 0, iif(n = 10001, NULL, 'REVISION_ACTIVATED'),
            iif(n = 10001, NULL, '{}'), iif(n = 10001, NULL, 1), n
        FROM ids;
";

async fn plan(db: &mut SqliteConnection, query: &str) -> String {
    let rows = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}")))
        .fetch_all(db)
        .await
        .expect("a plan");
    rows.iter()
        .map(|row| row.get::<String, _>("detail"))
        .collect::<Vec<_>>()
        .join("\n")
}

async fn store_with_history() -> SqliteStore {
    let store = SqliteStore::open_in_memory().await.expect("a database in memory opens");
    let connections: &Connections = &store.connections;
    sqlx::raw_sql(HISTORY)
        .execute(&mut *connections.read().await.expect("a connection"))
        .await
        .expect("a history");
    store
}

#[tokio::test]
async fn ten_thousand_finished_versions_are_in_no_plan_of_a_claim_or_a_pass() {
    let store = store_with_history().await;
    let mut db = store.connections.read().await.expect("a connection");
    let cases = [
        (claim::IS_DUE, "work_queued"),
        (claim::DUE, "work_queued"),
        (claim::DEPTH, "work_queued"),
        (claim::NEXT_DUE, "work_queued"),
        (claim::NEXT_LAPSE, "work_lease"),
        (claim::DUE, "SEARCH c USING COVERING INDEX"),
        (claim::RENEW, "work_token"),
        (claim::WAITS, "sqlite_autoindex_work_1"),
        (claim::POSTPONE, "sqlite_autoindex_work_1"),
        (recover::IS_DUE, "work_lease"),
        (recover::IS_DUE, "work_spent"),
        (recover::LAPSED, "work_lease"),
        (recover::SPENT, "work_spent"),
        (version::LIVE, "revisions_live"),
        (version::COUNT, "sqlite_autoindex_revisions"),
        (read::SECRET_CONSUMERS, "work_lane"),
    ];
    for (query, index) in cases {
        let plan = plan(&mut db, query).await;
        assert!(plan.contains(index), "{query}\n{plan}");
        // A scan is good only of the queue's own index, which holds nothing that is finished.
        let scans = plan
            .lines()
            .filter(|line| line.contains("SCAN") && !line.contains("CONSTANT ROW"));
        assert!(
            scans.clone().all(|line| ["work_queued", "work_spent", "work_lease"]
                .iter()
                .any(|index| line.contains(index))),
            "{query}\n{plan}"
        );
    }
}

#[tokio::test]
async fn the_one_version_that_waits_is_claimed_below_a_long_history() {
    let store = store_with_history().await;
    let lease = Lease {
        duration: std::time::Duration::from_mins(1),
        max_attempts: 5,
    };
    let claims = store.claim(16, lease).await.expect("a claim");
    let [claim] = &claims[..] else { panic!("one waits") };
    let Target::Revision {
        namespace,
        agent,
        revision,
    } = claim.target
    else {
        panic!("a version")
    };
    let row = store
        .deployment(namespace, agent, revision)
        .await
        .expect("a read")
        .expect("the version");
    assert!(matches!(row.work, Some(WorkState::Running { .. })));
    assert_eq!(
        store
            .deploy_read(&DeployQuery::rows(namespace, agent))
            .await
            .expect("a read")
            .revisions,
        10_001
    );
}

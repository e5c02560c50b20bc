//! What the schema refuses, whoever asks: here a connection that knows nothing of the store.

use std::time::Duration;

use occ_conformance::store::Subject as _;
use occ_core::{
    reason::Success,
    store::{Change, SavedField, Slice, StoreError, Write},
    work::{Lease, Transition},
};
use sqlx::{AssertSqlSafe, SqliteConnection};

use crate::{
    subject::{SqliteSubject, raw},
    world::{Load, World, spoilt},
};

/// A database with a deployed, running Agent, and a connection past the store.
async fn populated() -> (SqliteSubject, SqliteConnection) {
    let (subject, _, connection) = deployed().await;
    (subject, connection)
}

async fn deployed() -> (SqliteSubject, World, SqliteConnection) {
    let subject = SqliteSubject::new().await;
    let mut world = World::create(subject.store()).await;
    for _ in 0..3 {
        world.step(Load::Small).await.expect("the change commits");
    }
    let connection = raw(subject.path()).await;
    (subject, world, connection)
}

async fn done(db: &mut SqliteConnection, statement: String) {
    let result = sqlx::raw_sql(AssertSqlSafe(statement.clone())).execute(db).await;
    result.expect(&statement);
}

async fn refused(db: &mut SqliteConnection, statement: &str, reason: &str) {
    let error = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
        .execute(db)
        .await
        .expect_err(statement);
    let text = error.to_string();
    assert!(text.contains(reason), "{statement}: {text}");
}

pub async fn the_audit_is_append_only() {
    let (_subject, mut db) = populated().await;
    refused(&mut db, "UPDATE audit SET outcome = 'denied'", "append-only").await;
    refused(
        &mut db,
        "UPDATE audit SET details = '{}' WHERE sequence = 1",
        "append-only",
    )
    .await;
    refused(&mut db, "DELETE FROM audit", "append-only").await;
    // What is in the way of a replacement is removed without a word.
    for (sequence, id) in [
        ("sequence", "id"),
        ("1000", "id"),
        ("sequence", "'aud_123e4567-e89b-42d3-a456-426614174000'"),
    ] {
        let statement = format!(
            "INSERT OR REPLACE INTO audit SELECT {sequence}, {id}, occurred_at, kind, 'somebody else', action, resource_kind,
            resource_id, namespace_id, outcome, request_id, authorization, reason_code, details FROM audit WHERE sequence = 1"
        );
        refused(&mut db, &statement, "append-only").await;
    }
}

pub async fn a_version_never_changes() {
    let (_subject, mut db) = populated().await;
    let changes = [
        "snapshot = x'7b7d'",
        "digest = replace(digest, '0', '1')",
        "number = 9",
        "created_at = 0",
        "agent_id = agent_id",
        "id = id",
    ];
    for change in changes {
        refused(&mut db, &format!("UPDATE revisions SET {change}"), "never changes").await;
    }
    sqlx::raw_sql("UPDATE revisions SET live = 0 WHERE number = 1")
        .execute(&mut db)
        .await
        .expect("it is retired");
    refused(
        &mut db,
        "UPDATE revisions SET live = 1 WHERE number = 1",
        "never comes back",
    )
    .await;
    let copy =
        "INSERT INTO revisions SELECT 'rev_123e4567-e89b-42d3-a456-426614174000', namespace_id, agent_id, 7, snapshot, digest, 1, 0
        FROM revisions WHERE number = 1";
    refused(&mut db, copy, "without gaps").await;
    let replaced = "INSERT OR REPLACE INTO revisions
        SELECT id, namespace_id, agent_id, 4, x'7b7d', digest, 1, 0 FROM revisions WHERE number = 1";
    refused(&mut db, replaced, "never changes").await;
}

pub async fn a_version_is_removed_only_with_its_agent() {
    let (_subject, mut db) = populated().await;
    refused(&mut db, "DELETE FROM revisions", "only with its Agent").await;
    refused(&mut db, "DELETE FROM agents", "FOREIGN KEY").await;
    refused(&mut db, "DELETE FROM work", "only with its Agent").await;
    refused(
        &mut db,
        "UPDATE agents SET service_principal_id = 'other'",
        "never changes",
    )
    .await;
    let replaced = "INSERT OR REPLACE INTO agents (id, namespace_id, name, service_principal_id, configuration_id, execution_mode,
            desired, status, version, created_at)
        SELECT id, namespace_id, name, 'other', configuration_id, execution_mode, desired, status, version, created_at FROM agents";
    refused(&mut db, replaced, "never changes").await;
    refused(&mut db, "UPDATE agents SET active_revision_id = 'rev_x'", "FOREIGN KEY").await;
    refused(&mut db, "UPDATE agents SET status = 'deleting'", "CHECK").await;
}

pub async fn a_result_of_work_never_changes() {
    let (_subject, mut db) = populated().await;
    let end = "UPDATE work SET state = 'failed', code = 'LEASE_EXPIRED', result = '{}', completed_at = 1
        WHERE key = (SELECT key FROM work ORDER BY created_at LIMIT 1)";
    sqlx::raw_sql(end).execute(&mut db).await.expect("it ends");
    let ended = "WHERE state = 'failed'";
    refused(
        &mut db,
        &format!("UPDATE work SET code = 'OTHER' {ended}"),
        "result of work",
    )
    .await;
    let again = "SET state = 'queued', code = NULL, result = NULL, completed_at = NULL";
    refused(&mut db, &format!("UPDATE work {again} {ended}"), "result of work").await;
    refused(
        &mut db,
        "UPDATE work SET lane = namespace_id, agent_id = NULL WHERE state = 'queued'",
        "target",
    )
    .await;
}

pub async fn only_possible_shapes_are_stored() {
    let (_subject, mut db) = populated().await;
    let claim = "UPDATE work SET state = 'claimed', claimed_at = 1, lease_expires_at = 2,
        claim_token = substr(hex(randomblob(18)), 1, 36)";
    // The second version of the same Agent.
    refused(&mut db, claim, "UNIQUE constraint failed: work.lane").await;
    let impossible = [
        "UPDATE work SET state = 'claimed'",
        "UPDATE work SET state = 'succeeded', completed_at = 1, result = '{}'",
        "UPDATE work SET state = 'running'",
        "UPDATE work SET attempts = -1",
        "UPDATE work SET last_attempt = '[]'",
        "UPDATE namespaces SET status = 'unknown'",
        "UPDATE agents SET desired = 'paused'",
        "UPDATE agents SET harness_auth = '3'",
        "UPDATE secrets SET version = 0",
        "INSERT INTO workspace_setups SELECT id, 'short', NULL, NULL FROM agents",
        "INSERT INTO installation VALUES (2, 'ins_123e4567-e89b-42d3-a456-426614174000', 'second', 0)",
        "INSERT INTO principals VALUES ('x', 'human', NULL, NULL, NULL)",
        "INSERT INTO principals VALUES ('x', 'robot', 'x', NULL, NULL)",
    ];
    for statement in impossible {
        refused(&mut db, statement, "constraint failed").await;
    }
    refused(
        &mut db,
        "UPDATE agents SET version = 'three'",
        "cannot store TEXT value in INTEGER column",
    )
    .await;
}

pub async fn undecodable_rows_are_named_and_their_siblings_read() {
    let (subject, mut db) = populated().await;
    let store = subject.store();
    let namespace = store
        .namespaces(&Slice::ALL)
        .await
        .expect("a read")
        .remove(0)
        .namespace
        .id;
    let agent = store.agents(namespace).await.expect("a read").remove(0).agent.id;
    let spoil = "PRAGMA ignore_check_constraints = ON; UPDATE agents SET harness_auth = '{\"method\":\"gone\"}'";
    sqlx::raw_sql(spoil).execute(&mut db).await.expect("a row is spoilt");
    let row = store.agent(namespace, agent).await.expect("a read").expect("the Agent");
    assert_eq!(row.unreadable, [SavedField::HarnessAuth], "a setting is left out");
    let spoil = "UPDATE agents SET execution_mode = 'gone'";
    sqlx::raw_sql(spoil).execute(&mut db).await.expect("a row is spoilt");
    assert_eq!(store.agent(namespace, agent).await, Err(StoreError::Corrupt("Agent")));
    assert_eq!(store.agents(namespace).await, Err(StoreError::Corrupt("Agent")));
    assert_eq!(store.secrets(namespace, &Slice::ALL).await.expect("a read").len(), 1);
    assert_eq!(store.revisions(namespace, agent).await.expect("a read").len(), 3);
    let error = store
        .agent(namespace, agent)
        .await
        .expect_err("it does not decode")
        .to_string();
    assert_eq!(error, "a stored Agent does not decode");
}

pub async fn a_spoilt_piece_of_work_keeps_no_other_back() {
    let (subject, mut db) = populated().await;
    let spoil =
        "UPDATE work SET last_attempt = '{}' WHERE key = (SELECT key FROM work ORDER BY created_at, key LIMIT 1)";
    sqlx::raw_sql(spoil).execute(&mut db).await.expect("a row is spoilt");
    let lease = Lease {
        duration: Duration::from_mins(1),
        max_attempts: 5,
    };
    let store = subject.store();
    let mut claimed = 0;
    while let [claim] = &store.claim(16, lease).await.expect("a claim")[..] {
        claimed += 1;
        let code = Success::RevisionSuperseded;
        let settle = Write::Settle(
            claim.token,
            Transition::Complete {
                code,
                warnings: Vec::new(),
            },
        );
        store.commit(Change::new().write(settle)).await.expect("it settles");
    }
    assert_eq!(claimed, 2, "all but the spoilt one");
    // It is not asked for again at once.
    let due = store.next_due().await.expect("a read").expect("it stays");
    assert!(due > Duration::from_secs(30), "{due:?}");
}

pub async fn a_pass_reads_what_is_left_of_spoilt_rows() {
    let (_subject, world, mut db) = deployed().await;
    let spoil = r#"DROP TRIGGER revisions_immutable;
        UPDATE agents SET harness_auth = '{"method":"gone"}';
        UPDATE revisions SET snapshot = CAST(replace(CAST(snapshot AS TEXT), '"runtime"', '"gone"') AS BLOB) WHERE number = 2;
        UPDATE revisions SET snapshot = x'7b7d' WHERE number = 3"#;
    done(&mut db, spoil.to_owned()).await;
    spoilt::a_pass_reads_what_is_left(&world).await;
}

pub async fn codes_of_another_version_are_read() {
    let (_subject, world, mut db) = deployed().await;
    spoilt::codes_of_another_version_are_read(&world, async |sql| done(&mut db, sql).await).await;
}

pub async fn a_spoilt_claim_is_taken_back() {
    let (_subject, world, mut db) = deployed().await;
    spoilt::a_spoilt_claim_is_taken_back(&world, async |sql| done(&mut db, sql).await).await;
}

pub async fn a_spoilt_row_takes_no_other_claim_with_it() {
    let (_subject, world, mut db) = deployed().await;
    spoilt::a_spoilt_row_takes_no_other_claim_with_it(&world, async |sql| done(&mut db, sql).await).await;
}

pub async fn spent_work_that_is_spoilt_is_left_alone() {
    let (_subject, world, mut db) = deployed().await;
    spoilt::spent_work_that_is_spoilt_is_left_alone(&world, async |sql| done(&mut db, sql).await).await;
}

/// What is pruned is a beginning of the chain, and nothing else goes (docs/adr/0011).
pub async fn only_what_the_anchor_passed_leaves_the_audit() {
    let (subject, mut db) = populated().await;
    let store = subject.store();
    assert!(store.seal_audit(100).await.expect("a sealing") >= 3);
    refused(&mut db, "DELETE FROM audit_seals", "never changes").await;
    let replaced =
        "INSERT OR REPLACE INTO audit_seals SELECT 1 + (SELECT max(position) FROM audit_seals), sequence, hash
        FROM audit_seals WHERE position = 1";
    refused(&mut db, replaced, "never changes").await;
    for forged in [
        "INSERT INTO audit_anchor VALUES (1, 1, printf('%064d', 0))",
        "INSERT INTO audit_anchor SELECT 1, position, hash FROM audit_seals ORDER BY position DESC LIMIT 1",
        "INSERT INTO audit_anchor VALUES (1, 99, printf('%064d', 0))",
    ] {
        refused(&mut db, forged, "moves forward").await;
    }
    assert_eq!(store.prune_audit(Duration::ZERO, 2).await, Ok(2));
    refused(&mut db, "DELETE FROM audit", "append-only").await;
    refused(&mut db, "DELETE FROM audit_seals", "never changes").await;
    refused(&mut db, "UPDATE audit_anchor SET position = 1", "moves forward").await;
    refused(&mut db, "DELETE FROM audit_anchor", "stays").await;
}

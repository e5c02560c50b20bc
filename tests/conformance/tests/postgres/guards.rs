//! What the schema refuses, whoever asks: here its owner, who knows nothing of the store, and the application's role.

use std::{sync::Arc, time::Duration};

use occ_conformance::store::Subject as _;
use occ_core::{
    reason::Success,
    store::{
        Change, Slice, Store, StoreError, Write,
        postgres::{PostgresSettings, PostgresStore},
    },
    work::{Lease, Transition},
};
use sqlx::{AssertSqlSafe, PgConnection};

use crate::{
    subject::PostgresSubject,
    world::{Load, World, spoilt},
};

/// A database with a deployed, running Agent, and a connection past the store.
async fn populated() -> (PostgresSubject, PgConnection) {
    let (subject, _, connection) = deployed().await;
    (subject, connection)
}

async fn deployed() -> (PostgresSubject, World, PgConnection) {
    let subject = PostgresSubject::new().await;
    let mut world = World::create(subject.store()).await;
    for _ in 0..3 {
        world.step(Load::Small).await.expect("the change commits");
    }
    let mut connection = subject.database.raw().await;
    done(&mut connection, "SET search_path = occ").await;
    (subject, world, connection)
}

async fn done(db: &mut PgConnection, statement: &str) {
    let result = sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(db).await;
    result.expect(statement);
}

async fn refused(db: &mut PgConnection, statement: &str, reason: &str) {
    let result = sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(db).await;
    let text = result.expect_err(statement).to_string();
    assert!(text.contains(reason), "{statement}: {text}");
}

pub async fn the_audit_is_append_only() {
    let (_subject, mut db) = populated().await;
    for statement in [
        "UPDATE audit SET outcome = 'denied'",
        "UPDATE audit SET details = '{}' WHERE sequence = 1",
        "DELETE FROM audit",
        "TRUNCATE audit CASCADE",
    ] {
        refused(&mut db, statement, "append-only").await;
    }
}

pub async fn a_version_never_changes() {
    let (_subject, mut db) = populated().await;
    for change in [
        "snapshot = '{}'",
        "digest = replace(digest, '0', '1')",
        "number = 9",
        "created_at = 0",
        "agent_id = agent_id",
        "id = id",
    ] {
        refused(&mut db, &format!("UPDATE revisions SET {change}"), "never changes").await;
    }
    refused(&mut db, "TRUNCATE revisions CASCADE", "never changes").await;
    done(&mut db, "UPDATE revisions SET live = FALSE WHERE number = 1").await;
    let back = "UPDATE revisions SET live = TRUE WHERE number = 1";
    refused(&mut db, back, "never comes back").await;
    let copy =
        "INSERT INTO revisions SELECT 'rev_123e4567-e89b-42d3-a456-426614174000', namespace_id, agent_id, number + $1,
        snapshot, digest, TRUE, 0 FROM revisions WHERE number = 3";
    refused(&mut db, &copy.replace("$1", "4"), "without gaps").await;
    let forged = copy.replace("$1", "1").replace("digest,", "repeat('0', 64),");
    refused(&mut db, &forged, "revisions_check").await;
}

pub async fn a_version_is_removed_only_with_its_agent() {
    let (_subject, mut db) = populated().await;
    refused(&mut db, "DELETE FROM revisions", "only with its Agent").await;
    refused(&mut db, "DELETE FROM agents", "foreign key").await;
    refused(&mut db, "DELETE FROM work", "only with its Agent").await;
    refused(&mut db, "DELETE FROM namespaces", "leaves a tombstone").await;
    let identity = "UPDATE agents SET service_principal_id = 'other'";
    refused(&mut db, identity, "never changes").await;
    refused(&mut db, "UPDATE agents SET active_revision_id = 'rev_x'", "foreign key").await;
    refused(&mut db, "UPDATE agents SET status = 'deleting'", "check constraint").await;
}

pub async fn a_result_of_work_never_changes() {
    let (_subject, mut db) = populated().await;
    let end = "UPDATE work SET state = 'failed', code = 'LEASE_EXPIRED', result = '{}', completed_at = 1
        WHERE key = (SELECT key FROM work ORDER BY created_at LIMIT 1)";
    done(&mut db, end).await;
    let ended = "WHERE state = 'failed'";
    let other = format!("UPDATE work SET code = 'OTHER' {ended}");
    refused(&mut db, &other, "result of work").await;
    let again = "SET state = 'queued', code = NULL, result = NULL, completed_at = NULL";
    refused(&mut db, &format!("UPDATE work {again} {ended}"), "result of work").await;
    let moved = "UPDATE work SET lane = namespace_id, agent_id = NULL WHERE state = 'queued'";
    refused(&mut db, moved, "target").await;
}

pub async fn only_possible_shapes_are_stored() {
    let (_subject, mut db) = populated().await;
    let claim =
        "UPDATE work SET state = 'claimed', claimed_at = 1, lease_expires_at = 2, claim_token = gen_random_uuid()";
    // The second version of the same Agent.
    refused(&mut db, claim, "work_claimed_lane").await;
    for statement in [
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
    ] {
        refused(&mut db, statement, "check constraint").await;
    }
}

pub async fn a_spoilt_piece_of_work_keeps_no_other_back() {
    let (subject, mut db) = populated().await;
    let spoil =
        "UPDATE work SET last_attempt = '{}' WHERE key = (SELECT key FROM work ORDER BY created_at, key LIMIT 1)";
    done(&mut db, spoil).await;
    let lease = Lease {
        duration: Duration::from_mins(1),
        max_attempts: 5,
    };
    let store = subject.store();
    let mut claimed = 0;
    // The first claim finds the spoilt one at the head of the lane, and sets it aside.
    for _ in 0..4 {
        for claim in store.claim(16, lease).await.expect("a claim") {
            claimed += 1;
            let transition = Transition::Complete {
                code: Success::RevisionSuperseded,
                warnings: Vec::new(),
            };
            let settle = Write::Settle(claim.token, transition);
            store.commit(Change::new().write(settle)).await.expect("it settles");
        }
    }
    assert_eq!(claimed, 2, "all but the spoilt one");
    // It is not asked for again at once.
    let due = store.next_due().await.expect("a read").expect("it stays");
    assert!(due > Duration::from_secs(30), "{due:?}");
}

pub async fn a_pass_reads_what_is_left_of_spoilt_rows() {
    let (_subject, world, mut db) = deployed().await;
    let spoil = r#"DROP TRIGGER revisions_immutable ON revisions;
        UPDATE agents SET harness_auth = '{"method":"gone"}';
        UPDATE revisions r SET snapshot = n.bytes, digest = encode(sha256(n.bytes), 'hex')
            FROM (SELECT id, CASE number
                    WHEN 2 THEN convert_to(replace(convert_from(snapshot, 'UTF8'), '"runtime"', '"gone"'), 'UTF8')
                    ELSE '{}' END AS bytes
                FROM revisions WHERE number > 1) n
            WHERE n.id = r.id"#;
    done(&mut db, spoil).await;
    spoilt::a_pass_reads_what_is_left(&world).await;
}

pub async fn codes_of_another_version_are_read() {
    let (_subject, world, mut db) = deployed().await;
    spoilt::codes_of_another_version_are_read(&world, async |sql| done(&mut db, &sql).await).await;
}

pub async fn a_spoilt_claim_is_taken_back() {
    let (_subject, world, mut db) = deployed().await;
    spoilt::a_spoilt_claim_is_taken_back(&world, async |sql| done(&mut db, &sql).await).await;
}

pub async fn spent_work_that_is_spoilt_is_left_alone() {
    let (_subject, world, mut db) = deployed().await;
    spoilt::spent_work_that_is_spoilt_is_left_alone(&world, async |sql| done(&mut db, &sql).await).await;
}

/// Also when it cannot be put aside.
pub async fn a_spoilt_row_takes_no_other_claim_with_it() {
    let (_subject, world, mut db) = deployed().await;
    let fails = "CREATE OR REPLACE FUNCTION set_aside(token uuid, pause bigint) RETURNS void
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp AS $$ BEGIN RAISE 'it fails'; END $$";
    done(&mut db, fails).await;
    spoilt::a_spoilt_row_takes_no_other_claim_with_it(&world, async |sql| done(&mut db, &sql).await).await;
}

/// Its role reads what it needs, and cannot touch a row: not what is immutable, and not who owns a claim.
pub async fn the_application_writes_only_through_the_functions() {
    let (_subject, mut db) = populated().await;
    done(&mut db, "SET ROLE occ_application").await;
    let mut allowed: Vec<String> = sqlx::query_scalar(
        "SELECT proname::text FROM pg_proc WHERE pronamespace = 'occ'::regnamespace AND has_function_privilege(oid, 'EXECUTE')",
    )
    .fetch_all(&mut db)
    .await
    .expect("the functions");
    allowed.sort();
    assert_eq!(
        allowed,
        [
            "admit",
            "agents_of_secret",
            "apply",
            "claim",
            "lost",
            "postpone",
            "present",
            "recover",
            "renew",
            "seal",
            "set_aside",
            "set_aside_lost",
            "settle"
        ]
    );
    done(&mut db, "SELECT count(*) FROM revisions, audit, work, agents").await;
    for statement in [
        "UPDATE revisions SET live = FALSE",
        "DELETE FROM revisions",
        "INSERT INTO revisions SELECT * FROM revisions",
        "UPDATE audit SET outcome = 'denied'",
        "DELETE FROM audit",
        "TRUNCATE audit",
        "DELETE FROM audit_seals",
        "INSERT INTO audit_anchor SELECT 1, position, hash FROM audit_seals",
        "SELECT prune_audit(0, 10)",
        "SELECT prunable_audit(0, 10)",
        "INSERT INTO audit OVERRIDING SYSTEM VALUE SELECT * FROM audit",
        "UPDATE work SET claim_token = gen_random_uuid()",
        "UPDATE work SET lease_expires_at = 0",
        "DELETE FROM work",
        "UPDATE agents SET active_revision_id = NULL",
        "SELECT write('{}', '{}', 0)",
        "SELECT publish('{}', TRUE, 0)",
        "ALTER TABLE audit DISABLE TRIGGER ALL",
        "CREATE TABLE own (x integer)",
        "DROP FUNCTION apply(jsonb, bytea[])",
    ] {
        let sql = AssertSqlSafe(statement.to_owned());
        let error = sqlx::raw_sql(sql).execute(&mut db).await.expect_err(statement);
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code)
            .map(std::borrow::Cow::into_owned);
        // insufficient_privilege.
        assert_eq!(code.as_deref(), Some("42501"), "{statement}: {error}");
    }
}

/// What is pruned is a beginning of the chain, and nothing else goes (docs/adr/0011).
pub async fn only_what_the_anchor_passed_leaves_the_audit() {
    let (subject, mut db) = populated().await;
    let store = subject.store();
    assert!(store.seal_audit(100).await.expect("a sealing") >= 3);
    refused(&mut db, "DELETE FROM audit_seals", "never changes").await;
    for forged in [
        "INSERT INTO audit_anchor VALUES (1, 1, repeat('0', 64))",
        "INSERT INTO audit_anchor SELECT 1, position, hash FROM audit_seals ORDER BY position DESC LIMIT 1",
        "INSERT INTO audit_anchor VALUES (1, 99, repeat('0', 64))",
    ] {
        refused(&mut db, forged, "moves forward").await;
    }
    assert_eq!(store.prune_audit(Duration::ZERO, 2).await, Ok(2));
    refused(&mut db, "DELETE FROM audit", "append-only").await;
    refused(&mut db, "DELETE FROM audit_seals", "never changes").await;
    refused(&mut db, "UPDATE audit_anchor SET position = 1", "moves forward").await;
    refused(&mut db, "DELETE FROM audit_anchor", "stays").await;
    refused(&mut db, "TRUNCATE audit_anchor", "stays").await;
}

/// An API or a worker that is taken over cannot cover its tracks.
pub async fn the_application_prunes_nothing() {
    let (subject, _db) = populated().await;
    subject.store().seal_audit(100).await.expect("a sealing");
    let url = subject.database.url();
    let more = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{more}options[role]=occ_application");
    let settings = PostgresSettings::from_url(&url).expect("settings");
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&settings).await.expect("it opens"));
    let allowed = store.namespaces(&Slice::ALL).await.expect("a read").len();
    assert_eq!(allowed, 1);
    assert_eq!(store.prune_work(Duration::ZERO, 10).await, Err(StoreError::NotAllowed));
    assert_eq!(store.prune_audit(Duration::ZERO, 10).await, Err(StoreError::NotAllowed));
    assert_eq!(store.prunable_audit(Duration::ZERO).await, Err(StoreError::NotAllowed));
    assert_eq!(store.audit_anchor().await, Ok(None), "a verification may look");
}

//! Rows that were spoilt past the store, or written by another version of it: what is read of them all the same, and what they keep
//! from nothing else. The same on each database, which is reached through `run`.

use std::time::Duration;

use occ_core::{
    id::RevisionId,
    reason::{Failure, Pending, RuntimeCode},
    resource::ExecutionMode,
    store::{Change, SavedField, SavedRevision, Slice, WorkState, Write},
    work::{Lease, NewWork, Target},
};
use uuid::Uuid;

use super::World;

const LONG: Lease = Lease {
    duration: Duration::from_mins(1),
    max_attempts: 5,
};
const SHORT: Lease = Lease {
    duration: Duration::from_millis(1),
    max_attempts: 5,
};
/// The oldest piece of work.
const OLDEST: &str = "key = (SELECT key FROM work ORDER BY created_at, key LIMIT 1)";

impl World {
    async fn versions(&self) -> Vec<RevisionId> {
        let rows = self.store.saved_revisions(self.namespace, self.agent.id, &Slice::ALL);
        let rows = rows.await.expect("a read");
        let id = |saved: &SavedRevision| match saved {
            SavedRevision::Whole(revision) => revision.id,
            SavedRevision::Unreadable { id, .. } => *id,
        };
        rows.iter().map(id).collect()
    }

    fn deployment(&self, revision: RevisionId) -> Target {
        Target::Revision {
            namespace: self.namespace,
            agent: self.agent.id,
            revision,
        }
    }

    async fn state(&self, revision: RevisionId) -> WorkState {
        let row = self.store.deployment(self.namespace, self.agent.id, revision).await;
        let row = row.expect("a read").expect("the version");
        row.work.expect("its work")
    }

    /// Work of another lane than the Agent's.
    async fn enqueue_elsewhere(&self) -> Target {
        let target = Target::NamespaceReady {
            namespace: self.namespace,
        };
        let work = NewWork::new(target, "prn_operator".parse().expect("an id"));
        let change = Change::new().write(Write::Enqueue(work));
        self.store.commit(change).await.expect("it is queued");
        target
    }
}

/// The Agent's draft was spoilt, the authentication of its version 2, and all of its version 3.
pub async fn a_pass_reads_what_is_left(world: &World) {
    let versions = world.versions().await;
    let stop = Target::AgentStopped {
        namespace: world.namespace,
        agent: world.agent.id,
        operation: Uuid::new_v4(),
    };
    let read = world.store.pass_read(&stop).await.expect("a read");
    let agent = read.agent.expect("the Agent").agent;
    assert_eq!((agent.id, agent.harness_auth), (world.agent.id, None));
    let live: Vec<_> = read.live.iter().map(|head| (head.id, head.revision)).collect();
    assert_eq!(live, [(versions[0], 1), (versions[1], 2), (versions[2], 3)]);
    let known: Vec<_> = read
        .live
        .iter()
        .map(|head| (head.mode, head.compute.is_some()))
        .collect();
    let embedded = Some(ExecutionMode::Embedded);
    assert_eq!(known, [(embedded, true), (embedded, true), (None, false)]);

    for (revision, unreadable) in [
        (versions[0], None),
        (versions[1], Some(SavedField::HarnessAuth)),
        (versions[2], Some(SavedField::HarnessAuth)),
    ] {
        let read = world.store.pass_read(&world.deployment(revision)).await;
        let read = read.expect("a read");
        assert_eq!(read.head.expect("the version").id, revision);
        assert_eq!(read.revision.is_some(), unreadable.is_none());
        assert_eq!(read.unreadable, unreadable);
    }
}

/// What another version wrote is work all the same, and reads as the general code of its sort.
pub async fn codes_of_another_version_are_read(world: &World, mut run: impl AsyncFnMut(String)) {
    let [first, second, third] = world.versions().await[..] else {
        panic!("three versions")
    };
    let at = "2026-01-01T00:00:00.000Z";
    run(format!(
        r#"UPDATE work SET last_attempt = '{{"code":"A_NEWER_WAIT","at":"{at}","refusal":"A_NEWER_REFUSAL","more":1}}'
        WHERE revision_id = '{first}'"#
    ))
    .await;
    let ended = |state: &str, result: String, revision| {
        format!(
            "UPDATE work SET state = '{state}', code = 'A_NEWER_END', completed_at = 1, result = '{result}'
            WHERE revision_id = '{revision}'"
        )
    };
    let evidence = format!(
        r#"{{"component":"gateway","check":"startup","checkedAt":"{at}","code":"NEWER","cause":{{"kind":"NEWER"}}}}"#
    );
    let result = format!(r#"{{"timeoutMs":5,"more":1,"runtimeFailure":{evidence},"preparation":{{"stage":"newer"}}}}"#);
    run(ended("failed", result, second)).await;
    run(ended("succeeded", r#"{"warnings":[{"newer":1}]}"#.to_owned(), third)).await;

    let WorkState::Queued {
        last_attempt: Some(last),
        ..
    } = world.state(first).await
    else {
        panic!("it waits")
    };
    assert_eq!(last.code, Pending::ReconciliationPending);
    let claims = world.store.claim(16, LONG).await.expect("a claim");
    let [claim] = &claims[..] else {
        panic!("it is work: {claims:?}")
    };
    let refusal = claim.last_attempt.expect("an attempt").refusal;
    assert_eq!(refusal, Some(Failure::ReconciliationFailed), "it is refused still");

    let WorkState::Failed { failure, data, .. } = world.state(second).await else {
        panic!("it failed")
    };
    assert_eq!(failure, Failure::ReconciliationFailed);
    assert_eq!((data.timeout_ms, data.preparation), (Some(5), None));
    let evidence = data.runtime_failure.expect("what is left of it");
    assert_eq!((evidence.code, evidence.cause), (RuntimeCode::Unrecognized, None));
    let WorkState::Failed { failure, .. } = world.state(third).await else {
        panic!("it activated nothing that this version knows")
    };
    assert_eq!(failure, Failure::ReconciliationFailed);
}

/// A claim whose row was spoilt meanwhile frees its lane when its lease ends, and hides nobody else's.
pub async fn a_spoilt_claim_is_taken_back(world: &World, mut run: impl AsyncFnMut(String)) {
    let claims = world.store.claim(16, SHORT).await.expect("a claim");
    let [claim] = &claims[..] else { panic!("one lane") };
    run(format!("UPDATE work SET last_attempt = '{{}}' WHERE {OLDEST}")).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(world.store.recover(SHORT).await, Ok(0));
    let next = world.store.claim(16, LONG).await.expect("a claim");
    let [next] = &next[..] else { panic!("the lane is free") };
    assert_ne!(next.target, claim.target);
    let due = world.store.next_due().await.expect("a read").expect("it stays");
    assert!(due > Duration::from_secs(30), "{due:?}");
}

/// Nor is what has no attempt left asked for at every turn.
pub async fn spent_work_that_is_spoilt_is_left_alone(world: &World, mut run: impl AsyncFnMut(String)) {
    run("UPDATE work SET last_attempt = '{}', attempts = 5".to_owned()).await;
    assert_eq!(world.store.recover(LONG).await, Ok(0));
    let due = world.store.next_due().await.expect("a read").expect("it stays");
    assert!(due > Duration::from_secs(30), "{due:?}");
}

/// Nor is a claim of several lost over one of them.
pub async fn a_spoilt_row_takes_no_other_claim_with_it(world: &World, mut run: impl AsyncFnMut(String)) {
    run(format!("UPDATE work SET last_attempt = '{{}}' WHERE {OLDEST}")).await;
    let elsewhere = world.enqueue_elsewhere().await;
    let claims = world.store.claim(16, LONG).await.expect("a claim");
    assert!(claims.iter().any(|claim| claim.target == elsewhere), "{claims:?}");
}

//! Another process on the same file, and callers that go away.

use std::{sync::Arc, time::Duration};

use occ_conformance::store::Subject as _;
use occ_core::{
    reason::Pending,
    store::{Change, CommitError, DeployQuery, Slice, Write},
    work::{Claim, Lease, Transition},
};

use crate::{
    crash::whole,
    subject::{SqliteSubject, raw},
    world::{Load, World},
};

pub async fn a_write_waits_for_another_process_and_gives_up_cleanly() {
    let subject = SqliteSubject::new().await;
    let mut world = World::create(subject.store()).await;
    let mut other = raw(subject.path()).await;
    sqlx::raw_sql("BEGIN IMMEDIATE; UPDATE agents SET version = version + 1")
        .execute(&mut other)
        .await
        .expect("a lock");
    assert_eq!(world.step(Load::Small).await, Err(CommitError::Unavailable));
    // Readers did not wait, and saw nothing of the other's change.
    assert_eq!(world.count().await, 0);
    sqlx::raw_sql("ROLLBACK")
        .execute(&mut other)
        .await
        .expect("the lock is released");
    assert_eq!(world.step(Load::Small).await, Ok(1));
    assert_eq!(whole(&mut other).await, 1);
}

pub async fn a_reader_sees_one_moment_while_another_writes() {
    let subject = SqliteSubject::new().await;
    let mut world = World::create(subject.store()).await;
    let (reader, store) = (subject.second().await, subject.store());
    let namespace = store
        .namespaces(&Slice::ALL)
        .await
        .expect("a read")
        .remove(0)
        .namespace
        .id;
    let agent = store.agents(namespace).await.expect("a read").remove(0).agent.id;
    let writer = tokio::spawn(async move {
        for _ in 0..50 {
            world.step(Load::Small).await.expect("the change commits");
        }
    });
    let mut seen = 0;
    while !writer.is_finished() {
        // Each step writes the Agent's row and one version: in one moment the two agree.
        let read = reader
            .deploy_read(&DeployQuery::rows(namespace, agent))
            .await
            .expect("a read");
        assert_eq!(read.agent.expect("the Agent").version, read.revisions + 1);
        assert!(read.revisions >= seen);
        seen = read.revisions;
    }
    writer.await.expect("no panic");
    assert_eq!(
        reader
            .deploy_read(&DeployQuery::rows(namespace, agent))
            .await
            .expect("a read")
            .revisions,
        50
    );
}

/// It looks, and takes no lock: not for what is not due, not for what another worker is at, and not for what has no attempt left.
pub async fn a_worker_that_has_nothing_to_do_waits_for_nobody() {
    let subject = SqliteSubject::new().await;
    let (mut world, store) = (World::create(subject.store()).await, subject.store());
    let mut other = raw(subject.path()).await;
    let limit = |max_attempts| Lease {
        duration: Duration::from_hours(1),
        max_attempts,
    };
    let mut raw = async |statement: &'static str| {
        sqlx::raw_sql(statement).execute(&mut other).await.expect(statement);
    };
    let mut idle = async |lease: Lease, why: &str| {
        raw("BEGIN IMMEDIATE").await;
        assert_eq!(store.claim(16, lease).await, Ok(vec![]), "{why}");
        assert_eq!(store.recover(limit(u32::MAX)).await, Ok(0), "{why}");
        raw("ROLLBACK").await;
    };
    let settled = async |claim: &Claim, delay| {
        let reason = Pending::DependencyUnavailable;
        let settle = Write::Settle(claim.token, Transition::Retry { reason, delay });
        let committed = subject.store().commit(Change::new().write(settle)).await;
        committed.expect("it settles");
    };
    let claimed = async || subject.store().claim(1, limit(5)).await.expect("a claim").remove(0);
    idle(limit(5), "there is nothing").await;
    for _ in 0..2 {
        world.step(Load::Small).await.expect("the change commits");
    }
    let first = claimed().await;
    idle(limit(5), "the only lane is busy").await;
    settled(&first, Duration::from_hours(1)).await;
    let second = claimed().await;
    settled(&second, Duration::ZERO).await;
    idle(limit(1), "all is spent").await;
    settled(&claimed().await, Duration::from_hours(1)).await;
    idle(limit(5), "all is for later").await;
    // Nor is anything spent while what was granted beyond the limit is left.
    raw("UPDATE work SET extra_attempts = 1; BEGIN IMMEDIATE").await;
    assert_eq!(subject.store().recover(limit(2)).await, Ok(0));
}

/// A client that hangs up drops the future of its commit at any moment: the change is whole or absent, and the next one works.
pub async fn a_commit_whose_caller_went_away_is_still_whole() {
    let subject = SqliteSubject::new().await;
    let store = subject.store();
    World::create(Arc::clone(&store)).await;
    for polls in 0..200 {
        let mut world = World::open(Arc::clone(&store)).await;
        let step = tokio::spawn(async move { world.step(Load::Small).await });
        for _ in 0..polls {
            tokio::task::yield_now().await;
        }
        step.abort();
        let _ = step.await;
    }
    let mut world = World::open(store).await;
    // Waits for what is still under way.
    let last = loop {
        if let Ok(last) = world.step(Load::Small).await {
            break last;
        }
    };
    assert_eq!(
        whole(&mut raw(subject.path()).await).await,
        i64::try_from(last).expect("a number")
    );
}

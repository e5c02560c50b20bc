//! What waits for whom. The other process is a connection of the owner's, which holds on until somebody waits.

use std::{sync::Arc, time::Duration};

use occ_conformance::store::Subject as _;
use occ_core::{
    resource::NamespaceStatus,
    store::{AgentRow, Change, CommitError, Expect, Slice, Store, Wait, Write},
    work::{Claim, Lease},
};
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::task::JoinHandle;

use crate::{
    subject::PostgresSubject,
    world::{Load, World},
};

const LONG: Lease = Lease {
    duration: Duration::from_hours(1),
    max_attempts: 5,
};

struct Scene {
    world: World,
    store: Arc<dyn Store>,
    /// Another process.
    other: PgConnection,
    watch: PgConnection,
    // What it has goes with it.
    _subject: PostgresSubject,
}

impl Scene {
    async fn new() -> Self {
        let subject = PostgresSubject::new().await;
        Self {
            world: World::create(subject.store()).await,
            store: subject.store(),
            other: subject.database.raw().await,
            watch: subject.database.raw().await,
            _subject: subject,
        }
    }

    async fn agent(&self) -> AgentRow {
        let namespaces = self.store.namespaces(&Slice::ALL).await.expect("a read");
        let agents = self.store.agents(namespaces[0].namespace.id).await;
        agents.expect("a read").remove(0)
    }

    async fn claim(&mut self) -> Claim {
        self.world.step(Load::Small).await.expect("the change commits");
        self.store.claim(1, LONG).await.expect("a claim").remove(0)
    }

    async fn other(&mut self, statement: String) {
        let done = sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut self.other).await;
        done.expect("the other process goes on");
    }

    /// Waits until somebody waits, for a lock of this type.
    async fn somebody_waits(&mut self, kind: &str) {
        let waiting = "SELECT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
            WHERE NOT l.granted AND a.datname = current_database() AND l.locktype = $1)";
        for _ in 0..3000 {
            let query = sqlx::query_scalar(waiting).bind(kind);
            if query.fetch_one(&mut self.watch).await.expect("an answer") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nobody waits")
    }

    fn commit(&self, change: Change) -> JoinHandle<Result<(), CommitError>> {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move { store.commit(change).await })
    }
}

/// An admission of its own shape, and a change of any other.
pub async fn a_change_waits_for_whoever_has_what_it_rests_on() {
    let mut scene = Scene::new().await;
    let agent = scene.agent().await.agent;
    let secrets = scene.store.secrets(agent.namespace_id, &Slice::ALL).await;
    let secret = secrets.expect("a read").remove(0);
    let (alone, shared) = ("pg_advisory_xact_lock", "pg_advisory_xact_lock_shared");
    for (lock, name, waits) in [
        (alone, format!("1 {}", agent.namespace_id), true),
        (shared, format!("1 {}", agent.namespace_id), false),
        // It is written.
        (shared, format!("2 {}", agent.id), true),
        (alone, format!("3 {}", agent.configuration_id), true),
        (shared, format!("3 {}", agent.configuration_id), false),
        (alone, format!("4 {}", secret.id), true),
        (shared, format!("4 {}", secret.id), false),
    ] {
        for admission in [true, false] {
            let (_, mut change) = scene.world.next(Load::Small).await;
            if admission {
                change.state.clear();
            }
            let change = change
                .expect(Expect::NamespaceStatus(agent.namespace_id, &[NamespaceStatus::Ready]))
                .expect(Expect::Agent(agent.id, scene.agent().await.version))
                .expect(Expect::Secret(secret.id, secret.version));
            scene
                .other(format!("BEGIN; SELECT {lock}(hashtextextended('{name}', 0))"))
                .await;
            let commit = scene.commit(change);
            if waits {
                scene.somebody_waits("advisory").await;
                scene.other("ROLLBACK".to_owned()).await;
                assert_eq!(commit.await.expect("no panic"), Ok(()));
            } else {
                assert_eq!(commit.await.expect("no panic"), Ok(()), "{lock} {name}");
                scene.other("ROLLBACK".to_owned()).await;
            }
        }
    }
}

/// A pass moves the pointer before it settles. Between the look at its claim and the move nobody takes the claim back.
pub async fn what_moves_under_a_claim_waits_for_whoever_takes_it_back() {
    let mut scene = Scene::new().await;
    let claim = scene.claim().await;
    let agent = scene.agent().await.agent.id;
    let key = claim.target.key();
    let lapses = format!("BEGIN; UPDATE occ.work SET lease_expires_at = 1 WHERE key = '{key}'");
    scene.other(lapses).await;
    let moves = Change::new()
        .expect(Expect::ClaimHeld(claim.token))
        .write(Write::ActiveRevision(agent, claim.target.revision()));
    let commit = scene.commit(moves);
    scene.somebody_waits("transactionid").await;
    scene.other("COMMIT".to_owned()).await;
    let lost = CommitError::Conflict(Expect::ClaimHeld(claim.token));
    assert_eq!(commit.await.expect("no panic"), Err(lost));
    assert_eq!(scene.agent().await.agent.active_revision_id, None);
}

/// Whoever puts off waits for nobody: many would wait with it.
pub async fn what_somebody_has_hold_of_is_not_put_off() {
    let mut scene = Scene::new().await;
    scene.world.step(Load::Small).await.expect("the change commits");
    let row = scene.agent().await;
    let revisions = scene.store.revisions(row.agent.namespace_id, row.agent.id).await;
    let target = occ_core::work::Target::Revision {
        namespace: row.agent.namespace_id,
        agent: row.agent.id,
        revision: revisions.expect("a read")[0].revision.id,
    };
    let wait = Wait {
        key: target.key(),
        agent: row.agent.id,
        version: row.version,
        least: Duration::from_hours(1),
        most: Duration::from_hours(2),
    };
    scene.other("BEGIN; SELECT 1 FROM occ.work FOR UPDATE".to_owned()).await;
    assert_eq!(scene.store.postpone(std::slice::from_ref(&wait)).await, Ok(vec![false]));
    scene.other("ROLLBACK".to_owned()).await;
    assert_eq!(scene.store.postpone(&[wait]).await, Ok(vec![true]));
}

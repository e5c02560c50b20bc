//! Real faults: connections that freeze and break, a server that crashes, workers that are stopped and killed.

use std::{sync::Arc, time::Duration};

use occ_conformance::store::Subject as _;
use occ_core::{
    id::{AgentId, ConfigurationId, NamespaceId},
    store::{
        CommitError, Slice, Store,
        postgres::{PostgresSettings, PostgresStore},
    },
    work::Lease,
};
use occ_test_support::{
    postgres::{Cluster, Database},
    proxy::{Proxy, Trap},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    child,
    subject::PostgresSubject,
    world::{Load, World},
};

const LONG: Lease = Lease {
    duration: Duration::from_mins(10),
    max_attempts: 5,
};

/// What only the request of a commit holds.
const COMMIT: &[u8] = br#""expects""#;

/// Waits for a condition, within a bound for a busy machine.
async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..1200 {
        if let Some(found) = found().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not happen within a minute");
}

/// A database, a proxy before it, and a store that reaches it through the proxy alone.
async fn proxied(timeout: Duration) -> (Database, Proxy, PostgresStore) {
    let database = Database::fresh().await;
    let (proxy, through) = database.proxied().await;
    let settings = PostgresSettings::from_url(&through).expect("a URL");
    let store = PostgresStore::open(&settings.with_query_timeout(timeout)).await;
    (database, proxy, store.expect("the store opens"))
}

async fn direct(database: &Database) -> Arc<dyn Store> {
    let store = PostgresStore::open(&database.settings()).await;
    Arc::new(store.expect("the store opens"))
}

/// The connections that a store has fall silent, as behind a firewall that forgot them: each call fails at most once, after its
/// limit, and the next goes through a new connection.
pub async fn a_frozen_connection_does_not_stop_claims() {
    let (_database, proxy, store) = proxied(Duration::from_secs(2)).await;
    let mut world = World::create(Arc::new(store.clone())).await;
    // Several connections are open.
    let reads = (0..8).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.namespaces(&Slice::ALL).await.map(drop) })
    });
    for read in reads.collect::<Vec<_>>() {
        read.await.expect("no panic").expect("a read");
    }
    world.step(Load::Small).await.expect("the change commits");
    proxy.freeze();
    let mut silent = 0;
    let claims = until("a claim", async || {
        let claims = store.claim(4, LONG).await.ok();
        silent += usize::from(claims.is_none());
        claims
    })
    .await;
    assert_eq!(claims.len(), 1);
    assert!(silent <= 1, "{silent} claims met a silent connection");
    // What may happen twice is asked again by itself.
    proxy.freeze();
    assert_eq!(store.renew(claims[0].token, LONG).await, Ok(true));
    proxy.freeze();
    assert_eq!(store.namespaces(&Slice::ALL).await.expect("a read").len(), 1);
}

/// Every connection is cut, again and again: reads do not notice, and what was acknowledged is there.
pub async fn cut_connections_are_replaced() {
    let (database, proxy, store) = proxied(Duration::from_secs(20)).await;
    let mut world = World::create(Arc::new(store.clone())).await;
    let mut last = 0;
    for _ in 0..10 {
        last = world.step(Load::Small).await.expect("the change commits");
        proxy.cut();
        assert_eq!(world.count().await, last);
    }
    assert_eq!(World::open(direct(&database).await).await.count().await, last);
}

/// The commit happened, and its answer was lost.
pub async fn a_commit_whose_answer_is_lost_is_of_unknown_outcome_and_happens_once() {
    let (database, proxy, store) = proxied(Duration::from_secs(20)).await;
    let mut world = World::create(Arc::new(store)).await;
    world.step(Load::Large).await.expect("the change commits");
    proxy.trap(Trap::Answer, COMMIT);
    assert_eq!(world.step(Load::Small).await, Err(CommitError::UnknownOutcome));
    assert_eq!(proxy.sprung(), 1);
    assert_eq!(World::open(direct(&database).await).await.count().await, 2);
    assert_eq!(world.step(Load::Small).await, Ok(3), "the store goes on");
}

/// The request was lost: nothing happened, and nobody asks for it again.
pub async fn a_commit_whose_request_is_lost_is_of_unknown_outcome_and_never_happens() {
    let (database, proxy, store) = proxied(Duration::from_secs(20)).await;
    let mut world = World::create(Arc::new(store)).await;
    proxy.trap(Trap::Request, COMMIT);
    assert_eq!(world.step(Load::Small).await, Err(CommitError::UnknownOutcome));
    assert_eq!(World::open(direct(&database).await).await.count().await, 0);
    assert_eq!(world.step(Load::Small).await, Ok(1), "the store goes on");
}

/// Another process enqueues, and the notification wakes this one; so it does after the listening connection was cut.
pub async fn work_of_another_process_wakes_this_one() {
    let (database, proxy, store) = proxied(Duration::from_secs(20)).await;
    let mut elsewhere = World::create(direct(&database).await).await;
    // Listening starts beside the store: whatever wakes early is drained by then.
    let mut woken = async || {
        until("a notification", async || {
            elsewhere.step(Load::Small).await.expect("the change commits");
            tokio::time::timeout(Duration::from_millis(500), store.work_arrived())
                .await
                .ok()
        })
        .await;
    };
    woken().await;
    proxy.cut();
    woken().await;
}

/// `pg_ctl stop -m immediate` and a new start, in the middle of work: what was acknowledged is there, what was not is whole or
/// absent, and the store that was open goes on.
pub async fn a_crash_of_the_server_loses_nothing_that_was_acknowledged() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711)).expect("its owner");
    let cluster = Cluster::create(&place.path().join("cluster")).expect("a cluster");
    cluster.start(&[]).expect("it starts");
    let settings = PostgresSettings::from_url(&cluster.url("postgres")).expect("a URL");
    // Longer than a restart takes: what may be asked twice does not notice it.
    let settings = settings.with_query_timeout(Duration::from_secs(40));
    PostgresStore::migrate(&settings).await.expect("it is migrated");
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&settings).await.expect("the store opens"));
    World::create(Arc::clone(&store)).await;
    let mut there = 0;
    for _ in 0..3 {
        let over = CancellationToken::new();
        let writing = tokio::spawn(writes(Arc::clone(&store), over.clone()));
        let before = there;
        until("some work", async || {
            let looking = World::open(Arc::clone(&store)).await;
            (looking.count().await > before + 20).then_some(())
        })
        .await;
        cluster.stop("immediate").expect("it crashes");
        cluster.start(&[]).expect("it starts again");
        over.cancel();
        let (acknowledged, unknown) = writing.await.expect("no panic");
        there = World::open(Arc::clone(&store)).await.count().await;
        let new = there - before;
        assert!(
            new >= acknowledged && new <= acknowledged + unknown,
            "{new}: {acknowledged} and {unknown}"
        );
    }
    cluster.stop("immediate").expect("it stops");
}

/// Deploys until it is told that it is over. Returns how many changes were acknowledged, and of how many the outcome is open.
async fn writes(store: Arc<dyn Store>, over: CancellationToken) -> (u64, u64) {
    let mut world = World::open(store).await;
    let (mut acknowledged, mut unknown) = (0, 0);
    while !over.is_cancelled() {
        match world.step(Load::Small).await {
            Ok(_) => acknowledged += 1,
            Err(CommitError::UnknownOutcome) => unknown += 1,
            Err(CommitError::Unavailable) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    (acknowledged, unknown)
}

struct Worker {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(url: &str) -> Self {
        let mut child = child::command(url).spawn().expect("the worker starts");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        Self { child, lines }
    }

    async fn says(&mut self, what: &str) -> usize {
        let line = self
            .lines
            .next_line()
            .await
            .expect("a line")
            .expect("the worker goes on");
        let number = line.strip_prefix(what).unwrap_or_else(|| panic!("{line}"));
        number.trim().parse().expect("a number")
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().expect("it runs").to_string();
        let sent = std::process::Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("a signal").success());
    }
}

/// SIGSTOP past the lease: another worker has the Agent by then, and what the first one publishes when it goes on is refused.
pub async fn a_worker_that_was_stopped_past_its_lease_publishes_nothing() {
    let subject = PostgresSubject::new().await;
    let store = subject.store();
    let mut world = World::create(Arc::clone(&store)).await;
    world.step(Load::Small).await.expect("the change commits");
    let mut worker = Worker::start(&subject.database.url());
    assert_eq!(worker.says("claimed").await, 1);
    worker.signal("-STOP");
    let claim = until("the work is claimed again", async || {
        store.recover(LONG).await.expect("a recovery");
        store.claim(4, LONG).await.expect("a claim").pop()
    })
    .await;
    assert_eq!(claim.attempt, 2);
    worker.signal("-CONT");
    let mut input = worker.child.stdin.take().expect("its input");
    input.write_all(b"\n").await.expect("it is told");
    assert_eq!(worker.says("published").await, 0);
    assert_eq!(
        store.renew(claim.token, LONG).await,
        Ok(true),
        "the claim of the other stands"
    );
}

/// A worker with a thousand live claims is killed: all are claimed again, once each, within a lease and a second, by the database's
/// clock, of which every moment here is. On a machine that is busy with something else one try may take longer; each has its own
/// database.
pub async fn a_thousand_claims_of_a_killed_worker_are_all_claimed_again() {
    const TRIES: usize = 4;
    let mut took = Vec::new();
    while took.len() < TRIES {
        let late = late_claims().await;
        if late <= 1000 {
            return;
        }
        took.push(late);
    }
    panic!("the latest was claimed so many ms after the last lease could end: {took:?}");
}

/// How many milliseconds after the kill and a lease the last of the lost claims was made again.
async fn late_claims() -> i64 {
    const AGENTS: usize = 1000;
    let subject = PostgresSubject::new().await;
    let store = subject.store();
    World::create(Arc::clone(&store)).await;
    many(&subject, AGENTS).await;
    let mut worker = Worker::start(&subject.database.url());
    assert_eq!(worker.says("claimed").await, AGENTS);
    worker.signal("-KILL");
    let now = async || store.now().await.expect("the clock").as_millis();
    let killed_at = now().await;
    let mut again: Vec<AgentId> = Vec::new();
    let mut latest = 0;
    // As a worker does: it sleeps until something is due, claims it, and takes back what lapsed.
    until("every claim", async || {
        while store.next_due().await.expect("a read") == Some(Duration::ZERO) {
            let claims = store.claim(AGENTS, LONG).await.expect("a claim");
            if claims.is_empty() {
                while store.recover(LONG).await.expect("a recovery") > 0 {}
            }
            for claim in claims {
                assert_eq!(claim.attempt, 2);
                latest = latest.max(claim.claimed_at.as_millis());
                again.push(claim.target.agent().expect("an Agent"));
            }
        }
        (again.len() >= AGENTS).then_some(())
    })
    .await;
    again.sort_unstable();
    again.dedup();
    assert_eq!(again.len(), AGENTS, "each once");
    assert_eq!(store.claim(AGENTS, LONG).await, Ok(vec![]));
    let mut db = subject.database.raw().await;
    let claimed = "SELECT count(*) FROM occ.work WHERE state = 'claimed' AND attempts = 2";
    let claimed: i64 = sqlx::query_scalar(claimed).fetch_one(&mut db).await.expect("a count");
    assert_eq!(usize::try_from(claimed), Ok(AGENTS), "no work is lost");
    latest - killed_at - i64::try_from(child::LEASE.duration.as_millis()).expect("a number")
}

/// What passes ask may take long and fill every connection; the worker still claims, and keeps what it has.
pub async fn the_queue_does_not_wait_behind_what_passes_ask() {
    let subject = PostgresSubject::new().await;
    let settings = subject.database.settings();
    let settings = settings.with_connections(6).with_query_timeout(Duration::from_mins(1));
    let store = PostgresStore::open(&settings).await.expect("the store opens");
    World::create(Arc::new(store.clone())).await;
    many(&subject, 2).await;
    let mut db = subject.database.raw().await;
    let lock = "BEGIN; LOCK TABLE occ.configurations IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut db).await.expect("a lock");
    let reads: Vec<_> = (0..12)
        .map(|_| {
            let (store, namespace) = (store.clone(), NamespaceId::random());
            tokio::spawn(async move {
                store
                    .configuration(namespace, ConfigurationId::random())
                    .await
                    .map(drop)
            })
        })
        .collect();
    until("every other connection waits", async || {
        let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'occ.configurations'::regclass";
        let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(&mut db).await.expect("an answer");
        (waiting == 4).then_some(())
    })
    .await;
    let claims = store.claim(2, LONG).await.expect("a claim");
    assert_eq!(claims.len(), 2);
    assert_eq!(store.renew(claims[0].token, LONG).await, Ok(true));
    assert!(store.next_due().await.is_ok() && store.recover(LONG).await == Ok(0));
    sqlx::raw_sql("ROLLBACK").execute(&mut db).await.expect("the lock goes");
    for read in reads {
        assert_eq!(read.await.expect("no panic"), Ok(()));
    }
}

/// More Agents like the one that there is, each with a version that waits; made by the database itself.
async fn many(subject: &PostgresSubject, count: usize) {
    let statement = format!(
        "SET search_path = occ;
        CREATE TEMP TABLE new AS
            SELECT 'agt_' || gen_random_uuid() AS agent, 'rev_' || gen_random_uuid() AS revision FROM generate_series(1, {count});
        INSERT INTO principals SELECT 'service-' || agent, 'service', NULL, (SELECT id FROM namespaces), agent FROM new;
        INSERT INTO agents SELECT n.agent, a.namespace_id, n.agent, 'service-' || n.agent, a.configuration_id, NULL,
            a.harness_auth, a.secret_id, a.execution_mode, 'running', NULL, 'active', 1, a.created_at FROM agents a, new n;
        INSERT INTO revisions SELECT n.revision, a.namespace_id, n.agent, 1, '{{}}', encode(sha256('{{}}'), 'hex'), TRUE, 0
            FROM new n JOIN agents a ON a.id = n.agent;
        INSERT INTO work (key, kind, namespace_id, agent_id, revision_id, lane, actor, available_at, created_at)
            SELECT 'agent_revision:' || n.revision || ':reconcile', 'revision', a.namespace_id, n.agent, n.revision, n.agent,
                'prn_operator', 0, 0 FROM new n JOIN agents a ON a.id = n.agent;"
    );
    let mut db = subject.database.raw().await;
    let made = sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut db).await;
    made.expect("they are made");
}

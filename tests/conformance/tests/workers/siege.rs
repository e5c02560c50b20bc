//! Deployments that keep arriving while workers die, their server crashes or their connections fail, again and again.
//!
//! `OCC_WORKERS_ROUNDS` says how many faults each test causes, and `OCC_WORKERS_SEED` which, of whom and in which order. What is under
//! way when one strikes is up to the machine.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use occ_core::{
    id::AgentId,
    reason::ApiCode,
    store::postgres::{PostgresSettings, PostgresStore},
    work::Policy,
};
use occ_test_support::{
    postgres::{Cluster, Database, binaries},
    proxy::Proxy,
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use sqlx::Row as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    child::{self, files, orders},
    process::{Process, until},
    runtime::Runtime,
    scene::{Deployed, Scene, deploy},
};

const WORKERS: usize = 3;
const AGENTS: usize = 16;
const CALLERS: usize = 4;
/// A caller waits while so many of its deployments are not over.
const OPEN: usize = 4;
/// How many deployments end between two faults.
const BETWEEN: usize = 8;
/// Short, so that what was lost is soon taken up again.
const LEASE: Duration = Duration::from_secs(2);
/// The same of a wait for an answer of the database.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// SIGKILL of a worker, which another one replaces.
    Kill,
    /// `pg_ctl stop -m immediate`, and a new start.
    Crash,
    /// All connections fall silent.
    Freeze,
    /// All connections are closed.
    Cut,
}

/// Why the server cannot be crashed.
pub fn no_own_server() -> Option<&'static str> {
    binaries().is_none().then_some("there is no PostgreSQL to start here")
}

pub async fn deployments_outlive_workers_that_are_killed_again_and_again() {
    let database = Database::fresh().await;
    let url = database.url();
    let scene = Scene::over(database, &settings(&url)).await;
    Siege::begin(scene, url).await.last(&[Fault::Kill], 12).await;
}

pub async fn deployments_outlive_a_server_that_crashes_again_and_again() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o711)).expect("its owner");
    let cluster = Cluster::create(&place.path().join("cluster")).expect("a cluster");
    cluster.start(&[]).expect("it starts");
    let url = cluster.url("postgres");
    PostgresStore::migrate(&settings(&url)).await.expect("it is migrated");
    let scene = Scene::over(url.clone(), &settings(&url)).await;
    let mut siege = Siege::begin(scene, url).await;
    siege.cluster = Some(cluster.clone());
    siege.last(&[Fault::Crash, Fault::Crash, Fault::Kill], 6).await;
    cluster.stop("immediate").expect("it stops");
}

pub async fn deployments_outlive_connections_that_freeze_and_break_again_and_again() {
    let database = Database::fresh().await;
    let (proxy, through) = database.proxied().await;
    let scene = Scene::over(database, &settings(&through)).await;
    let mut siege = Siege::begin(scene, through).await;
    siege.proxy = Some(proxy);
    siege.last(&[Fault::Freeze, Fault::Cut, Fault::Kill], 9).await;
}

/// How workers and callers reach the database.
fn settings(url: &str) -> PostgresSettings {
    let settings = PostgresSettings::from_url(url).expect("a URL");
    settings.with_query_timeout(PATIENCE)
}

/// A worker whose runtime is shared with its like.
pub async fn besieged(url: &str) {
    let policy = Policy {
        lease: LEASE,
        // However often it is struck, no deployment may end for that.
        max_attempts: 10_000,
        ..Policy::default()
    };
    let compute = Runtime::new(&files()).compute();
    let worker = child::worker(&settings(url), compute, policy).await;
    while orders().recv().await.is_some() {}
    worker.shutdown().await;
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number in the environment"))
}

struct Siege {
    scene: Arc<Scene>,
    /// The database, as workers reach it.
    url: String,
    workers: Vec<Process>,
    fallen: Vec<Process>,
    cluster: Option<Cluster>,
    proxy: Option<Proxy>,
}

impl Siege {
    async fn begin(scene: Scene, url: String) -> Self {
        let mut siege = Self {
            scene: Arc::new(scene),
            url,
            workers: Vec::new(),
            fallen: Vec::new(),
            cluster: None,
            proxy: None,
        };
        for _ in 0..WORKERS {
            let worker = siege.worker().await;
            siege.workers.push(worker);
        }
        siege
    }

    async fn worker(&self) -> Process {
        Process::ready("besieged", &self.url, self.scene.files()).await
    }

    /// Strikes so many times while deployments arrive, and then looks at what became of all of them.
    async fn last(mut self, faults: &[Fault], rounds: usize) {
        let seed = number("OCC_WORKERS_SEED").unwrap_or_else(rand::random);
        let rounds = number("OCC_WORKERS_ROUNDS").map_or(rounds, |rounds| usize::try_from(rounds).expect("a number"));
        println!("OCC_WORKERS_SEED={seed} OCC_WORKERS_ROUNDS={rounds}");
        let mut dice = StdRng::seed_from_u64(seed);
        let first = self.scene.deployed(AGENTS).await;
        let agents: Vec<_> = first.iter().map(|one| one.agent).collect();
        let (over, ended) = (CancellationToken::new(), Arc::<AtomicUsize>::default());
        let mut callers = JoinSet::new();
        for own in agents.chunks(AGENTS / CALLERS) {
            let scene = Arc::clone(&self.scene);
            callers.spawn(call(scene, own.to_vec(), over.clone(), Arc::clone(&ended)));
        }
        // Each as often as the others.
        let mut strikes: Vec<_> = faults.iter().cycle().take(rounds).collect();
        strikes.shuffle(&mut dice);
        for (round, fault) in strikes.into_iter().enumerate() {
            let next = ended.load(Ordering::Relaxed) + BETWEEN;
            until("some deployments", async || {
                (ended.load(Ordering::Relaxed) >= next).then_some(())
            })
            .await;
            let whom = dice.random_range(0..WORKERS);
            println!("{round}: {fault:?} {whom}");
            self.strike(*fault, whom).await;
        }
        over.cancel();
        let mut accepted = first;
        accepted.extend(callers.join_all().await.into_iter().flatten());
        self.rests().await;
        // Each lane is free: one more goes through.
        let mut last = Vec::new();
        for agent in &agents {
            let revision = deploy(&self.scene.world, *agent).await;
            last.push(Deployed {
                agent: *agent,
                revision,
            });
        }
        self.scene.all_active(&last).await;
        self.rests().await;
        println!("{} deployments were accepted", accepted.len());
        accepted.extend(last);
        self.judge(&accepted).await;
        for worker in self.workers {
            worker.end().await;
        }
    }

    async fn strike(&mut self, fault: Fault, whom: usize) {
        match fault {
            Fault::Kill => {
                self.workers[whom].kill().await;
                let next = self.worker().await;
                self.fallen.push(std::mem::replace(&mut self.workers[whom], next));
            }
            Fault::Crash => {
                let cluster = self.cluster.clone().expect("a server of its own");
                let restarted = tokio::task::spawn_blocking(move || {
                    cluster.stop("immediate")?;
                    cluster.start(&[])
                });
                restarted.await.expect("no panic").expect("it starts again");
            }
            Fault::Freeze => self.proxy.as_ref().expect("a proxy").freeze(),
            Fault::Cut => self.proxy.as_ref().expect("a proxy").cut(),
        }
    }

    /// Waits until no work is left, by itself.
    async fn rests(&self) {
        let live = "SELECT count(*) FROM occ.work WHERE state IN ('queued', 'claimed')";
        let mut db = self.scene.database.raw().await;
        until("rest", async || {
            let left: i64 = sqlx::query_scalar(live).fetch_one(&mut db).await.expect("a count");
            (left == 0).then_some(())
        })
        .await;
    }

    async fn judge(&self, accepted: &[Deployed]) {
        let mut db = self.scene.database.raw().await;
        // What was not acknowledged is whole, or absent.
        let query = "SELECT r.agent_id, r.id, w.code, w.attempts,
                (SELECT count(*) FROM occ.audit e
                    WHERE e.resource_id = r.id AND e.action = 'openclaw.agents.lifecycle.activate') AS activations
            FROM occ.revisions r LEFT JOIN occ.work w ON w.revision_id = r.id AND w.kind = 'revision'
            ORDER BY r.agent_id, r.number";
        let rows = sqlx::query(query).fetch_all(&mut db).await.expect("the versions");
        let mut versions = BTreeMap::<String, Vec<String>>::new();
        let mut struck = 0;
        for row in &rows {
            let (agent, id): (String, String) = (row.get("agent_id"), row.get("id"));
            let code: Option<&str> = row.get("code");
            let activations: i64 = row.get("activations");
            let published = match code.unwrap_or("no work") {
                "REVISION_ACTIVATED" | "REVISION_ALREADY_ACTIVE" => 1,
                "REVISION_SUPERSEDED" => 0,
                other => panic!("{id} of {agent} ends with {other}"),
            };
            assert_eq!(activations, published, "{id} of {agent}");
            struck += usize::from(row.get::<i32, _>("attempts") > 1);
            versions.entry(agent).or_default().push(id);
        }
        println!("{struck} of {} versions lost an attempt", rows.len());
        assert!(struck > 0, "no fault struck any work");
        for one in accepted {
            let known = &versions[&one.agent.to_string()];
            assert!(known.contains(&one.revision.to_string()), "{one:?} is lost");
        }
        // Never backwards.
        let query = "SELECT r.agent_id, r.number FROM occ.audit e JOIN occ.revisions r ON r.id = e.resource_id
            WHERE e.action = 'openclaw.agents.lifecycle.activate' ORDER BY e.sequence";
        let mut newest = BTreeMap::<String, i64>::new();
        for row in sqlx::query(query).fetch_all(&mut db).await.expect("the audit") {
            let (agent, number): (String, i64) = (row.get("agent_id"), row.get("number"));
            let before = newest.insert(agent.clone(), number);
            assert!(before < Some(number), "{agent}: {number} after {before:?}");
        }
        // The newest serves, and nothing else runs.
        let runtime = Runtime::new(self.scene.files());
        let agents: BTreeSet<AgentId> = accepted.iter().map(|one| one.agent).collect();
        for agent in agents {
            let newest = versions[&agent.to_string()].last().cloned();
            let (running, routed) = runtime.of(agent);
            assert_eq!(routed, newest, "{agent}");
            assert_eq!(running, newest.into_iter().collect(), "{agent}");
        }
        for worker in self.workers.iter().chain(&self.fallen) {
            assert_eq!(worker.said("overlap"), [""; 0], "one Agent never runs twice");
        }
        let audit = self.scene.world.plane.verify_audit(&self.scene.world.admin).await;
        assert!(audit.expect("an answer").intact);
    }
}

/// Deploys these Agents in turn until it is told to end. Returns what was accepted.
async fn call(
    scene: Arc<Scene>,
    agents: Vec<AgentId>,
    over: CancellationToken,
    ended: Arc<AtomicUsize>,
) -> Vec<Deployed> {
    let world = &scene.world;
    let (mut accepted, mut open) = (Vec::new(), VecDeque::new());
    for agent in agents.into_iter().cycle() {
        if over.is_cancelled() {
            break;
        }
        match world.plane.deploy_agent(&world.admin, world.namespace, agent).await {
            Ok(version) => {
                let revision = version.id;
                accepted.push(Deployed { agent, revision });
                open.push_back((agent, revision));
            }
            Err(refusal) => {
                let away = [ApiCode::DependencyUnavailable, ApiCode::UnknownOutcome];
                assert!(away.contains(&refusal.code()), "{refusal:?}");
                pause().await;
            }
        }
        while let Some((agent, revision)) = open.front().copied().filter(|_| open.len() > OPEN) {
            if over.is_cancelled() {
                break;
            }
            let read = world
                .plane
                .deployment(&world.admin, world.namespace, agent, revision)
                .await;
            if read.is_ok_and(|read| read.status.is_terminal()) {
                open.pop_front();
                ended.fetch_add(1, Ordering::Relaxed);
            } else {
                pause().await;
            }
        }
    }
    accepted
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(25)).await;
}

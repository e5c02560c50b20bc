//! Disks that fill up under a worker.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use occ_core::{
    admission::Refusal,
    control::ControlPlane,
    id::{AgentId, RevisionId},
    reason::{ApiCode, Failure},
    status::DeploymentStatus,
    store::{
        Store,
        postgres::{PostgresSettings, PostgresStore},
        sqlite::SqliteStore,
    },
    work::Policy,
    worker::Worker,
};
use occ_test_support::drivers::{Call, World};

use crate::{
    child::{orders, say},
    process::{Process, command, until},
};

/// In a mount namespace of its own: a file system of so many bytes, so many of them taken by a file.
const MOUNT: &str = r#"
    mount -t tmpfs -o size="$2",mode=0755 none "$1" || exit
    head -c "$3" /dev/zero >"$1/ballast"
    at="$1"
    shift 3
"#;

/// Whether this machine lets a test mount something.
pub fn unable() -> Option<&'static str> {
    let mount = ["-r", "-m", "mount", "-t", "tmpfs", "none", "/mnt"];
    let works = std::process::Command::new("unshare").args(mount).output();
    let works = works.is_ok_and(|output| output.status.success());
    (!works).then_some("this machine lets nobody mount a file system")
}

/// Why there is no server of the test's own on a file system of its own.
pub fn no_own_server() -> Option<&'static str> {
    let own = ["-m", "-p", "-f", "runuser", "-u", "nobody", "true"];
    let works = std::process::Command::new("unshare").args(own).output();
    let works = works.is_ok_and(|output| output.status.success());
    if !works {
        return Some("only root may run a server as another user in a mount namespace");
    }
    occ_test_support::postgres::binaries()
        .is_none()
        .then_some("there is no PostgreSQL to start here")
}

/// Deploys the Agent again and again until there is no space; each version is as large as its document. Returns the versions.
async fn fill(world: &World, agent: AgentId) -> Vec<RevisionId> {
    let mut admitted = Vec::new();
    loop {
        match world.plane.deploy_agent(&world.admin, world.namespace, agent).await {
            Ok(version) => admitted.push(version.id),
            Err(refusal) => {
                assert_full(&refusal);
                return admitted;
            }
        }
    }
}

/// The callers of a full database read that it is full; a server that is near its end may also just not answer.
fn assert_full(refusal: &Refusal) {
    assert_eq!(refusal.code(), ApiCode::DependencyUnavailable, "{refusal:?}");
}

/// An Agent with a document that does not compress.
async fn heavy(world: &World) -> AgentId {
    let noise: String = (0..3000)
        .map(|_| occ_core::randomness::uuid().simple().to_string())
        .collect();
    let configuration = world.configuration(serde_json::json!({ "noise": noise })).await;
    let secret = world.secret("key", "sk-test-0123456789").await;
    let agent = world.agent("heavy", configuration, secret).await;
    world.let_operate(&agent.service_principal_id, secret).await;
    agent.id
}

/// Waits until each of these is over, and says how many became active. The newest did, and none failed for the disk's sake.
async fn over(plane: &ControlPlane, world: &World, agent: AgentId, versions: &[RevisionId]) -> usize {
    let mut active = 0;
    for version in versions {
        let status = until("every deployment", async || {
            let read = plane.deployment(&world.admin, world.namespace, agent, *version).await;
            read.ok().filter(|read| read.status.is_terminal())
        })
        .await;
        let superseded = status
            .error
            .is_some_and(|error| error.code == Failure::RevisionSuperseded);
        assert!(
            superseded || status.status == DeploymentStatus::Succeeded,
            "{:?}",
            status.status
        );
        let calls = world.compute.calls();
        let activated = calls.iter().filter(|call| **call == Call::Activate(*version)).count();
        active += activated.min(1);
    }
    let read = plane
        .agent(&world.admin, world.namespace, agent)
        .await
        .expect("the Agent");
    assert_eq!(read.active_revision_id, versions.last().copied());
    active
}

fn policy() -> Policy {
    Policy {
        lease: Duration::from_secs(2),
        ..Policy::default()
    }
}

fn path(text: &Path) -> &str {
    text.to_str().expect("a path")
}

/// Its log of writes is elsewhere, as a server has it that is to survive this: without space for that it ends by itself.
pub async fn a_full_disk_of_the_server_stops_no_worker_for_good() {
    let (place, log) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    for directory in [&place, &log] {
        fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("its owner");
    }
    let bin = occ_test_support::postgres::binaries().expect("PostgreSQL");
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = port.expect("a port").port();
    let script = format!(
        r#"{MOUNT}
        mkdir "$at/cluster" && chown nobody "$at/cluster"
        bin="$1" wal="$2" port="$3"
        as() {{ runuser -u nobody -- "$@" >/dev/null 2>&1; }}
        as "$bin/initdb" -D "$at/cluster/data" -X "$wal/wal" -U occ -A trust -E UTF8 --no-sync || exit
        as "$bin/pg_ctl" -D "$at/cluster/data" -w -l "$wal/log" \
            -o "-c listen_addresses=127.0.0.1 -p $port -c unix_socket_directories=$wal -c shared_buffers=8MB" start || exit
        echo ready
        read -r _
        as "$bin/pg_ctl" -D "$at/cluster/data" -w -m immediate stop
        "#
    );
    let number = port.to_string();
    let mut server = tokio::process::Command::new("unshare");
    server
        .args([
            "-m",
            "-p",
            "-f",
            "--kill-child=KILL",
            "--mount-proc",
            "sh",
            "-c",
            &script,
            "sh",
        ])
        .args([
            path(place.path()),
            // Room for the server and a few dozen versions: each of them is read again while one of the others is driven.
            "68m",
            "33554432",
            path(&bin),
            path(log.path()),
            &number,
        ])
        .current_dir("/")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);
    let server = Process::start(server);
    server.heard("ready").await;
    let url = format!("postgres://occ@127.0.0.1:{port}/postgres?sslmode=disable");
    let settings = PostgresSettings::from_url(&url).expect("a URL");
    PostgresStore::migrate(&settings).await.expect("it is migrated");
    let store = Arc::new(PostgresStore::open(&settings).await.expect("the store opens"));
    let world = World::builder().store(store).build().await;
    let worker = Worker::new(
        Arc::clone(&world.store) as Arc<dyn Store>,
        Arc::clone(&world.drivers),
        policy(),
    )
    .start();
    let agent = heavy(&world).await;
    let mut versions = fill(&world, agent).await;
    assert!(versions.len() > 3, "{}", versions.len());
    // The file system of the server is reached through its root.
    let ballast = format!("/proc/{}/root{}/ballast", server.id(), path(place.path()));
    fs::remove_file(ballast).expect("space is made");
    let next = until("a deployment", async || {
        world
            .plane
            .deploy_agent(&world.admin, world.namespace, agent)
            .await
            .ok()
    })
    .await;
    versions.push(next.id);
    over(&world.plane, &world, agent, &versions).await;
    worker.shutdown().await;
    server.end().await;
}

pub async fn a_full_disk_under_an_embedded_worker_stops_it_for_no_longer_than_it_is_full() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("occ.db");
    let script = format!(r#"{MOUNT} exec "$@""#);
    let at = path(place.path()).to_owned();
    let wrapper = [
        "unshare", "-r", "-m", "sh", "-c", &script, "sh", &at, "8388608", "3145728",
    ];
    let mut child = Process::start(command("embedded", path(&file), place.path(), &wrapper));
    child.heard("full").await;
    let ballast = format!("/proc/{}/root{at}/ballast", child.id());
    fs::remove_file(ballast).expect("space is made");
    child.tell("go on").await;
    child.heard("over").await;
    child.end().await;
}

/// A whole control plane in this process.
pub async fn embedded(file: &PathBuf) {
    let store = Arc::new(SqliteStore::open(file).await.expect("the store opens"));
    let world = World::builder()
        .store(Arc::clone(&store) as Arc<dyn Store>)
        .build()
        .await;
    let worker = Worker::new(
        Arc::clone(&world.store) as Arc<dyn Store>,
        Arc::clone(&world.drivers),
        policy(),
    )
    .start();
    let agent = heavy(&world).await;
    let mut versions = fill(&world, agent).await;
    assert!(versions.len() > 3, "{}", versions.len());
    say("full");
    orders().recv().await.expect("an order");
    let next = until("a deployment", async || {
        world
            .plane
            .deploy_agent(&world.admin, world.namespace, agent)
            .await
            .ok()
    })
    .await;
    versions.push(next.id);
    over(&world.plane, &world, agent, &versions).await;
    worker.shutdown().await;
    store.close().await;
    say("over");
}

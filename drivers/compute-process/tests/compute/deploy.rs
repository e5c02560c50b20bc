//! A version from nothing to serving, and back to serving after whatever was lost.

use std::time::Duration;

use crate::scene::{KEY, Scene, cmdline, environ, kill, until};
use occ_core::{
    driver::{EffectError, FaultKind, OperationContext, Readiness, Stop},
    reason::{Pending, RuntimeCode},
};

#[tokio::test]
async fn a_first_version_is_set_up_checked_started_and_put_on_the_route() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    let first = scene.prepare(&revision).await.unwrap();
    assert!(matches!(
        first,
        Readiness::Pending {
            reason: Pending::RevisionIncomplete,
            ..
        }
    ));
    scene.prepared(&revision).await.unwrap();
    assert_eq!(
        scene.endpoint(&revision).await,
        None,
        "it is not on the route before its activation"
    );

    scene.deployed(&revision).await.unwrap();
    let url = scene.endpoint(&revision).await.unwrap();
    assert!(url.starts_with("http://127.0.0.1:"));
    assert_eq!(scene.serving().await.as_deref(), Some("1"));
    assert_eq!(
        (scene.checks(), scene.starts()),
        (vec!["1".to_owned()], vec!["1".to_owned()])
    );
    let access = scene.driver.gateway_access().unwrap();
    let endpoint = access.endpoint(&scene.cx, &revision.target).await.unwrap().unwrap();
    let password = access.password(&scene.cx, &scene.agent).await.unwrap().unwrap();
    assert_eq!(
        std::fs::read(endpoint.password_file.unwrap()).unwrap(),
        password.expose()
    );
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn repeated_preparation_never_starts_a_second_process() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    let all = (0..8).map(|_| scene.prepare(&revision));
    for result in futures_util::future::join_all(all).await {
        result.unwrap();
    }
    scene.deployed(&revision).await.unwrap();
    scene.deployed(&revision).await.unwrap();
    assert_eq!(scene.starts(), ["1"]);
    scene.process("supervise");
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn a_restarted_control_plane_adopts_what_runs() {
    let mut scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    let gateway = scene.process("gateway");
    scene.restart();
    assert!(matches!(scene.prepare(&revision).await, Ok(Readiness::Ready { .. })));
    assert!(matches!(scene.activate(&revision).await, Ok(Readiness::Ready { .. })));
    assert_eq!(scene.process("gateway"), gateway);
    assert_eq!(scene.starts(), ["1"]);
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn a_restart_in_the_middle_of_a_preparation_goes_on_with_it() {
    let mut scene = Scene::new().provided().await;
    scene.control("check-waits", true);
    let revision = scene.revision(1);
    scene.prepare(&revision).await.unwrap();
    until(async || !scene.checks().is_empty()).await;
    scene.restart();
    let Ok(Readiness::Pending {
        evidence: Some(evidence),
        ..
    }) = scene.prepare(&revision).await
    else {
        panic!("it waits for the model");
    };
    assert_eq!(
        (evidence.check.as_str(), evidence.code),
        ("model-probe", RuntimeCode::NotReady)
    );
    scene.control("check-waits", false);
    scene.deployed(&revision).await.unwrap();
    assert_eq!(scene.checks(), ["1"]);
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn a_killed_gateway_comes_back() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    let gateway = scene.process("gateway");
    kill(gateway);
    until(async || scene.processes("gateway").iter().any(|pid| *pid != gateway)).await;
    scene.deployed(&revision).await.unwrap();
    assert_eq!(scene.serving().await.as_deref(), Some("1"));
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn a_killed_supervisor_leaves_no_orphan_and_the_version_is_started_again() {
    let scene = Scene::new().provided().await;
    scene.control("child", true);
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    until(async || scene.processes("sleep").len() == 1).await;
    scene.control("child", false);
    scene.lost().await;
    assert_eq!(scene.serving().await, None);

    scene.deployed(&revision).await.unwrap();
    assert_eq!(scene.starts(), ["1", "1"]);
    scene.process("supervise");
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn a_version_that_fails_is_held_with_its_evidence() {
    let scene = Scene::new().provided().await;
    scene.control("check-refuses-1", true);
    let revision = scene.revision(1);
    for _ in 0..2 {
        let Err(EffectError::Held(failure, _)) = scene.prepared(&revision).await else {
            panic!("it was refused")
        };
        assert_eq!(
            (failure.check.as_str(), failure.code),
            ("model-probe", RuntimeCode::AuthenticationFailed)
        );
    }
    assert_eq!(scene.checks(), ["1"], "a failure is looked at, not repeated");
    assert!(scene.starts().is_empty());
    scene.stopped(&revision).await;
    assert!(scene.processes("").is_empty());
}

#[tokio::test]
async fn an_older_version_waits_behind_a_newer_one() {
    let scene = Scene::new().provided().await;
    let (older, newer) = (scene.revision(1), scene.revision(2));
    scene.deployed(&newer).await.unwrap();
    assert!(matches!(scene.prepare(&older).await, Ok(Readiness::Pending { .. })));
    assert!(matches!(scene.activate(&older).await, Ok(Readiness::Pending { .. })));
    scene.retired(&older).await;
    assert_eq!(scene.serving().await.as_deref(), Some("2"));
    scene.stopped(&newer).await;
}

#[tokio::test]
async fn secrets_reach_the_component_and_nothing_else() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    let digest = |secret: &str| occ_core::digest::hex(secret.as_bytes());
    let access = scene.driver.gateway_access().unwrap();
    let password = access.password(&scene.cx, &scene.agent).await.unwrap().unwrap();
    let password = password.expose_str().unwrap().to_owned();
    assert_eq!(password.len(), 43, "32 bytes in base64url");
    assert_eq!(scene.get("/digest/KEY").await.unwrap()["sha256"], digest(KEY));
    assert_eq!(
        scene.get("/digest/PASSWORD").await.unwrap()["sha256"],
        digest(&password)
    );

    let supervisor = scene.process("supervise");
    for secret in [KEY, password.as_str()] {
        assert!(!environ(supervisor).contains(secret));
        for pid in scene.processes("") {
            assert!(!cmdline(pid).unwrap_or_default().contains(secret));
        }
        let found = files_with(&scene.data(), secret);
        let expected = if secret == KEY {
            vec![]
        } else {
            vec![scene.agent_dir().join("credentials/gateway-password")]
        };
        assert_eq!(found, expected);
    }
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn the_control_planes_environment_reaches_no_workload() {
    assert!(std::env::var_os("PATH").is_some(), "there is something to hand on");
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    assert_eq!(environ(scene.process("supervise")), "");
    let gateway = environ(scene.process("gateway"));
    let mut names: Vec<_> = gateway
        .split_terminator('\0')
        .filter_map(|entry| entry.split('=').next())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["CONTROL", "HOME", "KEY", "OCC_TREE", "PASSWORD", "VERSION"]);
    scene.stopped(&revision).await;
}

fn files_with(dir: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files_with(&entry.path(), text));
        } else if kind.is_file() {
            let content = std::fs::read(entry.path()).unwrap();
            if content.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(entry.path());
            }
        }
    }
    found
}

#[tokio::test]
async fn directories_are_private_and_revision_files_read_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for dir in ["", "workspace", "state", "home", "tmp", "credentials", "revisions"] {
        assert_eq!(mode(scene.agent_dir().join(dir)), 0o700, "{dir}");
    }
    assert_eq!(mode(scene.namespace_dir()), 0o700);
    assert_eq!(mode(scene.revision_dir(&revision)), 0o700);
    assert_eq!(mode(scene.revision_dir(&revision).join("files/config.json")), 0o400);
    assert_eq!(mode(scene.revision_dir(&revision).join("spec.json")), 0o600);
    assert_eq!(mode(scene.agent_dir().join("credentials/gateway-password")), 0o600);
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn a_version_without_its_password_is_not_started() {
    let scene = Scene::new();
    let revision = scene.revision(1);
    match scene.prepare(&revision).await {
        Err(EffectError::Fault(fault)) => assert_eq!(fault.kind, FaultKind::Missing),
        other => panic!("{other:?}"),
    }
    assert!(scene.processes("").is_empty());
}

#[tokio::test]
async fn nothing_is_started_under_a_lapsed_lease() {
    let mut scene = Scene::new().provided().await;
    scene.cx.cancellation().cancel();
    let revision = scene.revision(1);
    assert_eq!(scene.prepare(&revision).await, Err(EffectError::UnknownOutcome));
    assert!(!scene.revision_dir(&revision).exists());
    scene.cx = OperationContext::default();
    scene.deployed(&revision).await.unwrap();
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn calls_that_are_cut_off_anywhere_converge_to_one_process() {
    let mut scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    // Each call is dropped a little later than the one before, as a lapsing lease or a kill would; each driver is new.
    for delay in 0..40 {
        let cut_off = tokio::time::timeout(Duration::from_micros(delay * 500), scene.prepare(&revision));
        let _ = cut_off.await;
        scene.restart();
    }
    scene.deployed(&revision).await.unwrap();
    assert_eq!(scene.starts(), ["1"]);
    scene.process("supervise");
    for delay in 0..20 {
        let stop = scene.driver.stop_revision(&scene.cx, &revision.target);
        let _ = tokio::time::timeout(Duration::from_micros(delay * 200), stop).await;
        scene.restart();
    }
    scene.stopped(&revision).await;
    assert!(scene.processes("").is_empty());
}

#[tokio::test]
async fn a_stop_waits_for_a_launch_that_somebody_else_began() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.prepare(&revision).await.unwrap();
    scene.stopped(&revision).await;
    // What a launcher of a control plane that was killed leaves: a lock that goes when it ends.
    let launching = std::fs::File::create(scene.agent_dir().join("lock.launch")).unwrap();
    launching.lock().unwrap();
    assert_eq!(
        scene.driver.stop_revision(&scene.cx, &revision.target).await,
        Ok(Stop::Draining)
    );
    assert!(matches!(scene.prepare(&revision).await, Ok(Readiness::Pending { .. })));
    assert!(scene.processes("").is_empty());
    drop(launching);
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn a_log_that_cannot_be_written_does_not_start_a_version() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.prepare(&revision).await.unwrap();
    scene.stopped(&revision).await;
    let log = scene.revision_dir(&revision).join("logs/component.log");
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    assert!(matches!(scene.prepare(&revision).await, Err(EffectError::Fault(_))));
    assert!(scene.processes("").is_empty());
    std::fs::remove_dir(&log).unwrap();
    scene.deployed(&revision).await.unwrap();
    scene.stopped(&revision).await;
}

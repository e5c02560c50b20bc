//! What an operator can see of a version, and the way to its gateway.

use occ_core::{
    driver::{CheckStatus, ComputeDriver, EffectError, FaultKind, LogQuery, capabilities},
    reason::Token,
};
use serde_json::json;

use crate::scene::{Scene, kill, until};

#[tokio::test]
async fn credentials_are_made_once_and_deleted_without_complaint() {
    let scene = Scene::new();
    let credentials = scene.driver.runtime_credentials().unwrap();
    assert_eq!(credentials.exist(&scene.cx, &scene.agent).await, Ok(false));
    credentials.delete(&scene.cx, &scene.agent).await.unwrap();
    let all = (0..4).map(|_| credentials.provision(&scene.cx, &scene.agent));
    for result in futures_util::future::join_all(all).await {
        result.unwrap();
    }
    assert_eq!(credentials.exist(&scene.cx, &scene.agent).await, Ok(true));
    let file = scene.agent_dir().join("credentials/gateway-password");
    let password = std::fs::read(&file).unwrap();
    credentials.provision(&scene.cx, &scene.agent).await.unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), password);
    for _ in 0..2 {
        credentials.delete(&scene.cx, &scene.agent).await.unwrap();
        assert_eq!(credentials.exist(&scene.cx, &scene.agent).await, Ok(false));
    }
}

#[tokio::test]
async fn logs_are_the_last_lines_of_the_component() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    let logs = scene.driver.logs().unwrap();
    let query = |component: Option<&'static str>, lines| LogQuery {
        component: component.map(Token::known),
        lines,
    };
    let missing = logs.read(&scene.cx, &revision.target, &query(None, 10)).await;
    assert!(matches!(missing, Err(EffectError::Fault(fault)) if fault.kind == FaultKind::Missing));

    scene.deployed(&revision).await.unwrap();
    let all = scene_logs(&scene, &revision, &query(None, 1000)).await.unwrap();
    assert!(all.contains(&"version 1".to_owned()), "{all:?}");
    assert!(all.contains(&"request /readyz".to_owned()), "{all:?}");
    // A log that nobody writes to any more reads the same twice.
    scene.stopped(&revision).await;
    let all = scene_logs(&scene, &revision, &query(None, 1000)).await.unwrap();
    let last = scene_logs(&scene, &revision, &query(Some("gateway"), 1)).await.unwrap();
    assert_eq!(last, all[all.len() - 1..]);
}

async fn scene_logs(
    scene: &Scene,
    revision: &occ_core::driver::RevisionContext,
    query: &LogQuery,
) -> Result<Vec<String>, EffectError> {
    scene
        .driver
        .logs()
        .unwrap()
        .read(&scene.cx, &revision.target, query)
        .await
}

#[tokio::test]
async fn an_unknown_component_has_no_logs_and_a_rotated_one_has_all_of_them() {
    let scene = Scene::with(json!({ "log": { "maxBytes": 4096, "keep": 3 } }))
        .provided()
        .await;
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    let unknown = LogQuery {
        component: Some(Token::known("harness")),
        lines: 10,
    };
    let missing = scene_logs(&scene, &revision, &unknown).await;
    assert!(matches!(missing, Err(EffectError::Fault(fault)) if fault.kind == FaultKind::Missing));
    for number in 0..400 {
        scene.get(&format!("/ask/{number}")).await.unwrap();
    }
    let gateway = LogQuery {
        component: Some(Token::known("gateway")),
        lines: 300,
    };
    until(async || {
        let lines = scene_logs(&scene, &revision, &gateway).await.unwrap();
        lines.last().is_some_and(|line| line == "request /ask/399")
    })
    .await;
    let lines = scene_logs(&scene, &revision, &gateway).await.unwrap();
    assert_eq!(lines.len(), 300);
    assert_eq!(lines[0], "request /ask/100");
    scene.stopped(&revision).await;
    assert_eq!(
        scene_logs(&scene, &revision, &gateway).await.unwrap().len(),
        300,
        "a stop keeps the logs"
    );
}

async fn checks(
    scene: &Scene,
    revision: &occ_core::driver::RevisionContext,
) -> Vec<(String, CheckStatus, Option<String>)> {
    let checks = scene
        .driver
        .diagnostics()
        .unwrap()
        .diagnose(&scene.cx, &revision.target)
        .await
        .unwrap();
    assert!(checks.iter().all(|check| check.component.as_str() == "gateway"));
    let row = |check: &occ_core::driver::Check| {
        (
            check.check.to_string(),
            check.status,
            check.code.as_ref().map(ToString::to_string),
        )
    };
    checks.iter().map(row).collect()
}

#[tokio::test]
async fn diagnostics_say_what_is_seen_now() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    let nothing = checks(&scene, &revision).await;
    assert!(
        nothing
            .iter()
            .all(|(_, status, code)| *status == CheckStatus::Unknown && code.is_some()),
        "{nothing:?}"
    );

    scene.deployed(&revision).await.unwrap();
    let well = checks(&scene, &revision).await;
    assert!(
        well.iter()
            .all(|(_, status, code)| *status == CheckStatus::Succeeded && code.is_none()),
        "{well:?}"
    );
    assert_eq!(well.len(), 4);

    scene.control("not-ready", true);
    let unready = checks(&scene, &revision).await;
    assert!(unready.contains(&(
        "readiness".to_owned(),
        CheckStatus::Failed,
        Some("NOT_READY".to_owned())
    )));
    scene.control("not-ready", false);

    kill(scene.process("gateway"));
    until(async || {
        let seen = checks(&scene, &revision).await;
        seen.contains(&("restarts".to_owned(), CheckStatus::Failed, Some("RESTARTED".to_owned())))
    })
    .await;

    scene.lost().await;
    let lost = checks(&scene, &revision).await;
    assert!(lost.contains(&(
        "supervisor".to_owned(),
        CheckStatus::Failed,
        Some("NOT_RUNNING".to_owned())
    )));
    assert!(lost.contains(&(
        "readiness".to_owned(),
        CheckStatus::Unknown,
        Some("UNAVAILABLE".to_owned())
    )));
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn a_held_failure_is_diagnosed_by_its_code() {
    let scene = Scene::new().provided().await;
    scene.control("check-refuses-1", true);
    let revision = scene.revision(1);
    assert!(scene.prepared(&revision).await.is_err());
    let seen = checks(&scene, &revision).await;
    assert!(seen.contains(&(
        "status".to_owned(),
        CheckStatus::Failed,
        Some("AUTHENTICATION_FAILED".to_owned())
    )));
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn preflight_warns_of_what_does_not_prevent_the_start() {
    let mut scene = Scene::new();
    assert_eq!(scene.driver.preflight(&scene.cx).await, Ok(vec![]));
    scene.restart_with(json!({ "tools": { "node": "/no/node" }, "limits": { "openFiles": 1024 } }));
    let codes = |warnings: Vec<occ_core::driver::PreflightWarning>| {
        warnings.into_iter().map(|warning| warning.code).collect::<Vec<_>>()
    };
    assert_eq!(
        codes(scene.driver.preflight(&scene.cx).await.unwrap()),
        ["TOOL_MISSING"]
    );
    scene.restart_with(json!({ "limits": { "memoryBytes": 1_073_741_824 } }));
    assert_eq!(
        codes(scene.driver.preflight(&scene.cx).await.unwrap()),
        ["CGROUP_NOT_DELEGATED"]
    );
}

#[tokio::test]
async fn limits_reach_the_component() {
    let scene = Scene::with(json!({ "limits": { "openFiles": 123 } })).provided().await;
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", scene.process("gateway"))).unwrap();
    let open_files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert!(open_files.contains("123"), "{open_files}");
    scene.stopped(&revision).await;
}

#[test]
fn the_capability_table_says_what_there_is() {
    let scene = Scene::new();
    let driver: &dyn ComputeDriver = scene.driver.as_ref();
    let names: Vec<_> = capabilities(driver)
        .iter()
        .map(|capability| capability.as_str())
        .collect();
    let expected = [
        "runtime_credentials",
        "gateway_access",
        "workspace_setup",
        "live_workspace",
        "diagnostics",
        "logs",
        "maintenance",
    ];
    assert_eq!(names, expected);
}

#[test]
fn settings_that_are_not_understood_are_refused_without_their_values() {
    use occ_core::{
        driver::DriverKind,
        iam::NoPolicy,
        registry::{HostServices, Registry},
    };
    let registry = Registry::linked().unwrap();
    let registration = registry.find(DriverKind::Compute, "process").unwrap();
    let host = HostServices::new("/tmp/unused".into(), std::sync::Arc::new(NoPolicy));
    for settings in [
        json!({ "unknown": "canary" }),
        json!({ "tools": { "node": "canary" } }),
        json!({ "log": { "maxBytes": "canary" } }),
        json!({ "limits": "canary" }),
    ] {
        let error = (registration.build)("p", settings.clone(), &host)
            .err()
            .expect("it is refused")
            .to_string();
        assert!(!error.contains("canary"), "{settings}: {error}");
    }
}

//! The optional ways to look at a version (spec/contracts 4.8).

use std::time::Duration;

use occ_core::driver::{CheckStatus, LogQuery, RevisionContext};

use super::scene::{Scene, watched};
use crate::patience::until;

/// Most checks of one diagnosis (seed: Current runtime diagnostics).
const CHECKS_MAX: usize = 32;
const LINE_MAX_BYTES: usize = 16 * 1024;

pub(super) async fn a_version_that_never_was_has_no_route(scene: &mut Scene) {
    let version = scene.version(1);
    assert_eq!(scene.endpoint(&version).await, None, "before its Namespace");
    scene.provide().await;
    assert_eq!(scene.endpoint(&version).await, None);
}

pub(super) async fn a_diagnosis_is_bounded_and_sees_nothing_where_nothing_is(scene: &mut Scene) {
    scene.provide().await;
    let diagnostics = scene.driver.diagnostics().expect("the rule needs diagnostics");
    let never = scene.version(1);
    // It may say that it cannot look; what it does say is no success.
    if let Ok(checks) = watched("diagnose", diagnostics.diagnose(&Scene::cx(), &never.target).await) {
        assert!(checks.len() <= CHECKS_MAX);
        let succeeded = checks.iter().any(|check| check.status == CheckStatus::Succeeded);
        assert!(!succeeded, "missing evidence is unknown, never success: {checks:?}");
    }
    let version = scene.version(2);
    scene.deployed(&version).await;
    let checks = diagnostics.diagnose(&Scene::cx(), &version.target).await;
    let checks = watched("diagnose", checks).expect("it serves, and can be looked at");
    assert!((1..=CHECKS_MAX).contains(&checks.len()));
    for check in &checks {
        assert!(
            check.status == CheckStatus::Succeeded || check.code.is_some() || check.status == CheckStatus::Unknown,
            "a failed check has a code: {check:?}"
        );
    }
}

pub(super) async fn log_lines_are_the_last_ones_and_bounded(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.deployed(&version).await;
    for _ in 0..20 {
        scene.ask(&version, "/version").await.expect("the gateway answers");
    }
    let all = until("the component's output is logged", async || {
        let lines = read(scene, &version, 1000).await;
        (lines.len() > 10).then_some(lines)
    })
    .await;
    assert!(
        all.iter()
            .all(|line| line.len() <= LINE_MAX_BYTES && !line.contains('\n'))
    );
    for lines in [1, 3] {
        let some = read(scene, &version, lines).await;
        assert_eq!(some.len(), usize::from(lines), "the last ones");
    }
}

async fn read(scene: &Scene, version: &RevisionContext, lines: u16) -> Vec<String> {
    let logs = scene.driver.logs().expect("the rule needs logs");
    let query = LogQuery { component: None, lines };
    let read = logs.read(&Scene::cx(), &version.target, &query).await;
    read.expect("a version that serves has a log")
}

pub(super) async fn images_are_of_planned_components(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.deployed(&version).await;
    let images = scene.driver.images().expect("the rule needs images");
    let rows = images.images(&Scene::cx(), &version.target).await;
    let rows = watched("images", rows).expect("it runs, and can be looked at");
    let planned = |name: &str| version.plan.components.iter().any(|one| one.name.as_str() == name);
    assert!(!rows.is_empty() && rows.len() <= version.plan.components.len());
    for row in rows {
        assert!(planned(&row.component) && !row.image.is_empty(), "{row:?}");
    }
}

pub(super) async fn a_binding_may_be_repeated(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.deployed(&version).await;
    for _ in 0..2 {
        let binding = scene.driver.agent_binding().expect("the rule needs agent_binding");
        watched("bind", binding.bind(&Scene::cx(), &scene.agent).await).expect("it is bound");
        scene.deployed(&version).await;
    }
}

pub(super) async fn maintenance_has_an_interval(scene: &mut Scene) {
    let maintenance = scene.driver.maintenance().expect("the rule needs maintenance");
    assert!(maintenance.interval() > Duration::ZERO);
}

pub(super) async fn looking_changes_nothing(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    let before = scene.items().await;
    let (cx, driver) = (Scene::cx(), scene.driver.as_ref());
    for _ in 0..2 {
        if let Some(access) = driver.gateway_access() {
            let _ = watched("endpoint", access.endpoint(&cx, &version.target).await);
            let _ = watched("password", access.password(&cx, &scene.agent).await);
        }
        if let Some(credentials) = driver.runtime_credentials() {
            let _ = watched("exist", credentials.exist(&cx, &scene.agent).await);
        }
        if let Some(diagnostics) = driver.diagnostics() {
            let _ = watched("diagnose", diagnostics.diagnose(&cx, &version.target).await);
        }
        if let Some(logs) = driver.logs() {
            let query = LogQuery {
                component: None,
                lines: 10,
            };
            let _ = watched("read the log", logs.read(&cx, &version.target, &query).await);
        }
        if let Some(images) = driver.images() {
            let _ = watched("images", images.images(&cx, &version.target).await);
        }
    }
    assert_eq!(scene.items().await, before);
}

//! Bringing a version to where it can take over (spec/contracts 4.3, prepareRevision).

use occ_core::{
    driver::{EffectError, Readiness},
    plan::Text,
};

use super::scene::{Scene, settled};
use crate::{canary, patience::until};

pub(super) async fn prepare_converges_and_repeats_its_answer(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.prepared(&version).await;
    for _ in 0..3 {
        let again = scene.prepare(&version).await;
        assert!(matches!(again, Ok(Readiness::Ready { .. })), "it was ready: {again:?}");
    }
}

pub(super) async fn a_version_is_started_once(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.deployed(&version).await;
    for _ in 0..3 {
        scene.prepare(&version).await.expect("an observation");
        scene.activate(&version).await.expect("an observation");
    }
    assert_eq!(scene.starts(&version).await, ["1"]);
}

pub(super) async fn the_component_receives_its_secrets(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    scene.deployed(&version).await;
    for (name, value) in [
        ("CREDENTIAL", canary::CREDENTIAL),
        (super::plan::BOUND, canary::BINDING),
    ] {
        let answer = scene.ask(&version, &format!("/digest/{name}")).await;
        let answer = answer.unwrap_or_else(|| panic!("{name} did not arrive"));
        let wanted = occ_core::digest::hex(value.as_bytes());
        assert_eq!(
            answer["sha256"].as_str(),
            Some(wanted.as_str()),
            "{name} is another value"
        );
    }
}

pub(super) async fn a_missing_program_is_never_ready(scene: &mut Scene) {
    scene.provide().await;
    let mut version = scene.version(1);
    for component in &mut version.plan.components {
        component.command[0] = Text::tool("no-such-program");
    }
    // It may look for a while; it may say why. It may not be ready, and it must not keep the engine from stopping it.
    let answer = until("an answer, or the certainty that it waits", {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let version = &version;
        async move || {
            let answer = settled(scene.prepare(version).await);
            let enough = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 20;
            answer.or(enough.then_some(Err(EffectError::UnknownOutcome)))
        }
    })
    .await;
    assert!(answer.is_err(), "a program that does not exist was ready");
}

pub(super) async fn a_new_driver_goes_on_where_the_old_one_was_cut_off(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    // The answer to the first call is never read.
    let _ = scene.prepare(&version).await;
    scene.restart().await;
    scene.deployed(&version).await;
    if scene.driver.gateway_access().is_some() {
        assert_eq!(scene.starts(&version).await, ["1"]);
    }
}

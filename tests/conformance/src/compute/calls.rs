//! Calls that are cut off: the engine drops an effect when its lease lapses, and repeats it (ARCHITECTURE; spec/contracts 3).

use occ_core::driver::OperationContext;
use tokio_util::sync::CancellationToken;

use super::{
    cut::{cancelled_after, dropped_after},
    scene::Scene,
};
use crate::patience::bounded;

/// A call that gives way more often than this is cut off at its first ones.
const POLLS_MAX: usize = 8;

pub(super) async fn effects_that_are_dropped_are_finished_by_their_repetition(scene: &mut Scene) {
    scene.provide().await;
    for polls in 1..=POLLS_MAX {
        let agent = scene.sibling();
        agent.provide().await;
        let version = agent.version(1);
        let cx = Scene::cx();
        let driver = agent.driver.as_ref();
        let mut over = dropped_after(polls, driver.prepare_revision(&cx, &version)).await;
        agent.prepared(&version).await;
        over &= dropped_after(polls, driver.activate_revision(&cx, &version)).await;
        agent.deployed(&version).await;
        if driver.gateway_access().is_some() {
            assert_eq!(agent.starts(&version).await, ["1"], "dropped after {polls} polls");
        }
        over &= dropped_after(polls, driver.stop_revision(&cx, &version.target)).await;
        agent.stopped(&version).await;
        over &= dropped_after(polls, driver.retire_revision(&cx, &version.target)).await;
        agent.retired(&version).await;
        over &= dropped_after(polls, driver.delete_agent(&cx, &agent.agent)).await;
        agent.deleted().await;
        if over {
            break;
        }
    }
}

pub(super) async fn a_cancelled_effect_ends_and_is_finished_by_its_repetition(scene: &mut Scene) {
    scene.provide().await;
    for polls in 1..=POLLS_MAX {
        let agent = scene.sibling();
        agent.provide().await;
        let version = agent.version(1);
        let driver = agent.driver.as_ref();
        let (cx, token) = cancellable();
        let prepare = driver.prepare_revision(&cx, &version);
        let mut over = bounded("a cancelled prepare", cancelled_after(polls, &token, prepare)).await;
        agent.prepared(&version).await;
        let (cx, token) = cancellable();
        let activate = driver.activate_revision(&cx, &version);
        over &= bounded("a cancelled activation", cancelled_after(polls, &token, activate)).await;
        agent.deployed(&version).await;
        let (cx, token) = cancellable();
        let stop = driver.stop_revision(&cx, &version.target);
        over &= bounded("a cancelled stop", cancelled_after(polls, &token, stop)).await;
        agent.stopped(&version).await;
        agent.deleted().await;
        if over {
            break;
        }
    }
}

fn cancellable() -> (OperationContext, CancellationToken) {
    let token = CancellationToken::new();
    (Scene::cx().with_cancellation(token.clone()), token)
}

pub(super) async fn nothing_is_begun_under_a_cancelled_context(scene: &mut Scene) {
    scene.provide().await;
    let (agent, version) = (scene.sibling(), scene.version(1));
    let (cx, token) = cancellable();
    token.cancel();
    let before = scene.items().await;
    let driver = scene.driver.as_ref();
    let _ = scene.prepare_under(&cx, &version).await;
    let _ = bounded("activate_revision", driver.activate_revision(&cx, &version)).await;
    if let Some(credentials) = driver.runtime_credentials() {
        let _ = bounded("provision", credentials.provision(&cx, &agent.agent)).await;
    }
    assert_eq!(scene.items().await, before, "somebody else may hold the lease");
    scene.deployed(&version).await;
}

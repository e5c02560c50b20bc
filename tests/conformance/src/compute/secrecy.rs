//! Where no secret may be (spec/contracts 3, secrecy). Every answer of every rule is searched as well.

use std::sync::Arc;

use occ_core::plan::Text;

use super::{scene::Scene, secrets::Away};
use crate::canary::spotless_bytes;

pub(super) async fn no_error_holds_a_secret(scene: &mut Scene) {
    // Each of these fails in some way; none may say with what.
    let nowhere = scene.version(1);
    let _ = scene.prepare(&nowhere).await;
    let _ = scene.activate(&nowhere).await;
    scene.provide().await;
    let mut no_secrets = scene.version(2);
    no_secrets.secrets = Arc::new(Away);
    let mut no_program = scene.version(3);
    let mut no_place = scene.version(4);
    for component in &mut no_program.plan.components {
        component.command[0] = Text::tool("no-such-program");
    }
    for component in &mut no_place.plan.components {
        component.command.push(Text::port("no-such-port"));
    }
    let mut wish = scene.wish(5);
    wish.refused = true;
    let refused = scene.version_as(5, &wish);
    let mut no_components = scene.version(6);
    no_components.plan.components.clear();
    for version in [&no_secrets, &no_program, &no_place, &refused, &no_components] {
        for _ in 0..10 {
            let _ = scene.prepare(version).await;
            let _ = scene.activate(version).await;
        }
        scene.retired(version).await;
    }
    scene.deployed(&scene.version(7)).await;
}

pub(super) async fn nothing_that_is_kept_holds_a_secret(scene: &mut Scene) {
    scene.provide().await;
    let version = scene.version(1);
    let _ = scene.prepare(&version).await;
    spotless(scene).await;
    scene.deployed(&version).await;
    spotless(scene).await;
    scene.stopped(&version).await;
    spotless(scene).await;
}

async fn spotless(scene: &Scene) {
    for (name, content) in scene.items().await {
        spotless_bytes(&name, &content);
        spotless_bytes("a name", name.as_bytes());
    }
}

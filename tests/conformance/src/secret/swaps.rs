//! Conditional replacement (spec/contracts 9.1, compareAndSwap).

use std::sync::Arc;

use occ_core::{driver::EffectResult, resource::BackendRef};

use super::scene::{Scene, refused, value};
use crate::{
    canary::{BINDING, CREDENTIAL, OTHER},
    records::context,
};

async fn swap(scene: &Scene, at: &BackendRef, expected: &str, new: &str) -> EffectResult<bool> {
    let through = scene.through(Arc::clone(&scene.driver));
    through.swap(&scene.secret, at, &value(expected), &value(new)).await
}

pub(super) async fn a_swap_happens_only_if_the_value_is_the_expected_one(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    let (shorter, longer) = (&CREDENTIAL[..CREDENTIAL.len() - 1], format!("{CREDENTIAL}x"));
    for wrong in [OTHER, shorter, &longer, &CREDENTIAL.to_uppercase(), "x"] {
        assert_eq!(swap(scene, &at, wrong, OTHER).await, Ok(false));
        scene.holds(&at, CREDENTIAL).await;
    }
    assert_eq!(swap(scene, &at, CREDENTIAL, OTHER).await, Ok(true));
    scene.holds(&at, OTHER).await;
    assert_eq!(swap(scene, &at, CREDENTIAL, BINDING).await, Ok(false));
    scene.holds(&at, OTHER).await;
    assert_eq!(
        scene.resolve(&scene.secret, &at).await,
        Ok(at),
        "the object is the same"
    );
}

pub(super) async fn of_two_swaps_of_one_value_one_happens(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    let driver = scene
        .driver
        .compare_and_swap()
        .expect("the rule needs compare_and_swap");
    let (expected, left, right) = (value(CREDENTIAL), value(OTHER), value(BINDING));
    let (one, two) = (context(&scene.records), context(&scene.records));
    let (first, second) = tokio::join!(
        driver.swap(&one, &scene.secret, &at, &expected, &left),
        driver.swap(&two, &scene.secret, &at, &expected, &right),
    );
    // It happened when the driver said so and what it staged was committed.
    let mut happened = Vec::new();
    for (answer, cx, text) in [(first, one, OTHER), (second, two, BINDING)] {
        if answer == Ok(true) && scene.records.commit(cx.state().take_staged()).is_ok() {
            happened.push(text);
        }
    }
    let [winner] = happened[..] else {
        panic!("{} of two swaps happened", happened.len())
    };
    scene.holds(&at, winner).await;
}

pub(super) async fn a_swap_of_another_object_is_refused(scene: &Scene) {
    let old = scene.create(CREDENTIAL).await;
    scene.delete(&scene.secret, &old).await.expect("it is its own");
    assert!(swap(scene, &old, CREDENTIAL, OTHER).await.is_err(), "a swap of nothing");
    let new = scene.create(CREDENTIAL).await;
    refused(
        "a swap at a stale reference",
        swap(scene, &old, CREDENTIAL, OTHER).await,
    );
    scene.holds(&new, CREDENTIAL).await;
}

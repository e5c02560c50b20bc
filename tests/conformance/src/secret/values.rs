//! Values, kept and found again (spec/contracts 9.1).

use occ_core::{
    driver::{CONTRACT_VERSION, DriverKind},
    secret_value::{SECRET_VALUE_MAX_BYTES, SecretValue},
};

use super::scene::{Scene, identity};
use crate::{
    canary::{CREDENTIAL, OTHER},
    records::{context, watched},
};

pub(super) async fn it_says_who_it_is(scene: &Scene) {
    let mine = scene.driver.identity();
    assert_eq!(mine.kind, DriverKind::Secret);
    assert!(!mine.id.is_empty() && !mine.implementation.is_empty());
    assert!(CONTRACT_VERSION.accepts(mine.contract));
    assert_eq!(
        scene.subject.driver().identity(),
        mine,
        "Secrets are pinned to an identity, so it outlives a restart"
    );
}

pub(super) async fn a_look_ahead_may_be_repeated(scene: &Scene) {
    for _ in 0..2 {
        let cx = context(&scene.records);
        watched("preflight", scene.driver.preflight(&cx).await).expect("it can work here");
    }
    let at = scene.create(CREDENTIAL).await;
    let cx = context(&scene.records);
    watched("preflight", scene.driver.preflight(&cx).await).expect("it can still work");
    scene.holds(&at, CREDENTIAL).await;
}

pub(super) async fn a_value_comes_back_to_the_last_byte(scene: &Scene) {
    let bytes: Vec<u8> = (1..=255).collect();
    let text = "line one\n\tline two \u{1f511} \"quoted\" {\"json\": true}\n\n";
    for value in [bytes, text.as_bytes().to_vec(), b"x".to_vec()] {
        let secret = identity(scene.secret.namespace_id);
        let through = scene.through(scene.subject.driver());
        let created = through.create(&secret, &SecretValue::new(value.clone())).await;
        let at = created.expect("a new Secret is stored");
        let back = scene.value(&secret, &at).await.expect("the value is there");
        assert!(back.expose() == value, "{} bytes came back otherwise", value.len());
    }
}

pub(super) async fn the_longest_value_comes_back(scene: &Scene) {
    let longest = "x".repeat(SECRET_VALUE_MAX_BYTES);
    let at = scene.create("x").await;
    scene
        .update(&scene.secret, &at, &longest)
        .await
        .expect("it is not too long");
    scene.holds(&at, &longest).await;
}

pub(super) async fn a_new_driver_reads_what_an_old_one_stored(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    let later = scene.through(scene.subject.driver());
    let value = later.value(&scene.secret, &at).await.expect("it is kept");
    assert!(value.expose() == CREDENTIAL.as_bytes());
    assert_eq!(later.resolve(&scene.secret, &at).await, Ok(at));
}

pub(super) async fn a_repeated_create_adopts_its_own_object(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    for _ in 0..2 {
        let again = scene.try_create(&scene.secret, CREDENTIAL).await;
        assert_eq!(again, Ok(at.clone()), "the answer to the first call was lost");
    }
    let later = scene.through(scene.subject.driver());
    let value = SecretValue::from(CREDENTIAL.to_owned());
    assert_eq!(
        later.create(&scene.secret, &value).await,
        Ok(at.clone()),
        "after a restart"
    );
    scene.holds(&at, CREDENTIAL).await;
}

pub(super) async fn a_repeated_create_keeps_the_value_that_is_there(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    // It may refuse, or give its own object; it does not overwrite.
    if let Ok(again) = scene.try_create(&scene.secret, OTHER).await {
        assert_eq!(again, at);
    }
    scene.holds(&at, CREDENTIAL).await;
}

pub(super) async fn an_update_replaces_the_value_and_keeps_the_object(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    for _ in 0..2 {
        scene.update(&scene.secret, &at, OTHER).await.expect("it is its own");
        scene.holds(&at, OTHER).await;
    }
    assert_eq!(scene.resolve(&scene.secret, &at).await, Ok(at.clone()));
    scene
        .update(&scene.secret, &at, CREDENTIAL)
        .await
        .expect("it is its own");
    scene.holds(&at, CREDENTIAL).await;
}

pub(super) async fn a_reference_is_resolved_to_itself(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    for part in [&at.name, &at.key, &at.uid] {
        assert!(!part.is_empty(), "{at:?}");
    }
    for _ in 0..2 {
        assert_eq!(scene.resolve(&scene.secret, &at).await, Ok(at.clone()));
    }
}

pub(super) async fn secrets_keep_apart(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    let neighbour = identity(scene.secret.namespace_id);
    let theirs = scene
        .try_create(&neighbour, OTHER)
        .await
        .expect("a new Secret is stored");
    assert_ne!(at, theirs, "the name is for people, and may be the same");
    scene.delete(&neighbour, &theirs).await.expect("it is its own");
    scene.holds(&at, CREDENTIAL).await;
}

pub(super) async fn deletion_may_be_repeated(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    for _ in 0..3 {
        scene.delete(&scene.secret, &at).await.expect("absent is well");
    }
    let later = scene.through(scene.subject.driver());
    later
        .delete(&scene.secret, &at)
        .await
        .expect("absent is well after a restart");
}

pub(super) async fn what_does_not_exist_is_an_error(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    scene.delete(&scene.secret, &at).await.expect("it is its own");
    assert!(
        scene.value(&scene.secret, &at).await.is_err(),
        "a value that was deleted"
    );
    assert!(
        scene.resolve(&scene.secret, &at).await.is_err(),
        "a reference to nothing"
    );
    assert!(
        scene.update(&scene.secret, &at, OTHER).await.is_err(),
        "an update makes nothing"
    );
    assert!(
        scene.value(&scene.secret, &at).await.is_err(),
        "an update made something"
    );
}

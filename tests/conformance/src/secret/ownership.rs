//! Whose an object is (spec/contracts 9.3 and 9.9: foreign labels, another driver, another namespace, another uid).

use occ_core::{id::NamespaceId, resource::BackendRef};

use super::scene::{Scene, identity, refused, value};
use crate::canary::{CREDENTIAL, OTHER};

pub(super) async fn what_is_created_anew_is_another_object(scene: &Scene) {
    let old = scene.create(CREDENTIAL).await;
    scene.delete(&scene.secret, &old).await.expect("it is its own");
    let new = scene.create(OTHER).await;
    assert_ne!(new.uid, old.uid, "a recreated object has another identity");
    refused("the value at a stale reference", scene.value(&scene.secret, &old).await);
    refused("resolving a stale reference", scene.resolve(&scene.secret, &old).await);
    refused(
        "an update at a stale reference",
        scene.update(&scene.secret, &old, CREDENTIAL).await,
    );
    refused(
        "a deletion at a stale reference",
        scene.delete(&scene.secret, &old).await,
    );
    scene.holds(&new, OTHER).await;
}

pub(super) async fn every_part_of_a_reference_counts(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    let other = |change: fn(&mut BackendRef)| {
        let mut wrong = at.clone();
        change(&mut wrong);
        wrong
    };
    for wrong in [
        other(|at| at.namespace_name.push('x')),
        other(|at| at.name.push('x')),
        other(|at| at.key.push('x')),
        other(|at| at.uid.push('x')),
        other(|at| at.uid.clear()),
    ] {
        // What is looked for under another name may also not be there at all.
        assert!(scene.value(&scene.secret, &wrong).await.is_err(), "{wrong:?}");
        assert!(scene.resolve(&scene.secret, &wrong).await.is_err(), "{wrong:?}");
        assert!(scene.update(&scene.secret, &wrong, OTHER).await.is_err(), "{wrong:?}");
        let _ = scene.delete(&scene.secret, &wrong).await;
        scene.holds(&at, CREDENTIAL).await;
    }
}

pub(super) async fn another_namespace_is_refused(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    let mut stranger = scene.secret.clone();
    stranger.namespace_id = NamespaceId::random();
    refused("the value for another Namespace", scene.value(&stranger, &at).await);
    refused("resolving for another Namespace", scene.resolve(&stranger, &at).await);
    refused(
        "an update for another Namespace",
        scene.update(&stranger, &at, OTHER).await,
    );
    refused("a deletion for another Namespace", scene.delete(&stranger, &at).await);
    // The same id in another Namespace: refused, or an object of its own; never this one.
    if let Ok(theirs) = scene.try_create(&stranger, OTHER).await {
        assert_ne!(theirs, at, "a foreign object was adopted");
    }
    scene.holds(&at, CREDENTIAL).await;
}

pub(super) async fn another_secret_is_refused(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    let neighbour = identity(scene.secret.namespace_id);
    assert!(
        scene.value(&neighbour, &at).await.is_err(),
        "the value of another Secret"
    );
    assert!(
        scene.resolve(&neighbour, &at).await.is_err(),
        "the reference of another Secret"
    );
    assert!(
        scene.update(&neighbour, &at, OTHER).await.is_err(),
        "an update of another Secret"
    );
    let _ = scene.delete(&neighbour, &at).await;
    scene.holds(&at, CREDENTIAL).await;
}

pub(super) async fn another_instance_neither_reads_nor_removes(scene: &Scene) {
    let at = scene.create(CREDENTIAL).await;
    let another = scene.subject.another().expect("the rule needs another instance");
    assert_ne!(another.identity().id, scene.driver.identity().id);
    let another = scene.through(another);
    assert!(
        another.value(&scene.secret, &at).await.is_err(),
        "another instance read it"
    );
    assert!(
        another.resolve(&scene.secret, &at).await.is_err(),
        "another instance resolved it"
    );
    assert!(another.update(&scene.secret, &at, &value(OTHER)).await.is_err());
    let _ = another.delete(&scene.secret, &at).await;
    scene.holds(&at, CREDENTIAL).await;
}

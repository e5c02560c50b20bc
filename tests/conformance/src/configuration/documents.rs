//! Documents, kept and found again.

use occ_core::{
    driver::{CONTRACT_VERSION, DriverKind},
    id::{ConfigurationId, NamespaceId},
    resource::Document,
};
use serde_json::{Value, json};

use super::scene::{Scene, document, failed};
use crate::{canary::OTHER, records::context};

pub(super) async fn it_says_who_it_is(scene: &Scene) {
    let mine = scene.driver.identity();
    assert_eq!(mine.kind, DriverKind::Configuration);
    assert!(!mine.id.is_empty() && !mine.implementation.is_empty());
    assert!(CONTRACT_VERSION.accepts(mine.contract));
    assert_eq!(scene.subject.driver().identity(), mine);
}

/// Documents of every shape that JSON has, and numbers at their edges.
fn documents() -> Vec<Document> {
    let mut deep = json!("deep");
    for _ in 0..25 {
        deep = json!({ "k": [deep] });
    }
    let values = [
        json!({}),
        json!({ "": "", "a": null, "b": true, "c": [], "d": {}, "e": [[], [{}]] }),
        json!({ "min": i64::MIN, "max": u64::MAX, "zero": 0, "one": 1.0, "small": 5e-324, "large": f64::MAX }),
        json!({ "tenth": 0.1, "third": 1.0 / 3.0, "negative": -0.0, "exponent": 1e21 }),
        json!({ "Ünïcödé \u{1f511}": "\u{0}\u{7f}\u{2028}\"\\/\n\t", "$ref": { "source": "env" } }),
        json!({ "long": "x".repeat(300_000) }),
        json!({ "deep": deep }),
    ];
    let object = |value| match value {
        Value::Object(object) => object,
        _ => unreachable!("each is an object"),
    };
    values.into_iter().map(object).collect()
}

pub(super) async fn a_document_reads_back_as_it_was_written(scene: &Scene) {
    for (number, document) in documents().into_iter().enumerate() {
        let place = scene.elsewhere(scene.namespace, ConfigurationId::random());
        place.create(&document).await.expect("a new document is stored");
        let (generation, stored) = place.stored().await.expect("it is there");
        assert_eq!(generation, 1);
        assert!(stored == document, "document {number} came back otherwise");
    }
}

pub(super) async fn a_new_driver_reads_what_an_old_one_stored(scene: &Scene) {
    scene.create(&document("a")).await.expect("a new document is stored");
    scene
        .update(1, &document("b"))
        .await
        .expect("it is the present generation");
    let later = scene.subject.driver();
    let cx = context(&scene.records);
    let read = later.read(&cx, scene.namespace, scene.id).await;
    assert_eq!(read, Ok(Some((2, document("b")))));
}

pub(super) async fn documents_keep_apart(scene: &Scene) {
    let neighbour = scene.elsewhere(scene.namespace, ConfigurationId::random());
    scene.create(&document("mine")).await.expect("a new document is stored");
    neighbour
        .create(&document("theirs"))
        .await
        .expect("a new document is stored");
    neighbour
        .update(1, &document("changed"))
        .await
        .expect("it is the present generation");
    assert_eq!(scene.stored().await, Some((1, document("mine"))));
    neighbour.delete().await.expect("it is deleted");
    assert_eq!(scene.stored().await, Some((1, document("mine"))));
}

pub(super) async fn another_namespace_neither_reads_nor_changes_a_document(scene: &Scene) {
    scene.create(&document("mine")).await.expect("a new document is stored");
    let stranger = scene.elsewhere(NamespaceId::random(), scene.id);
    // Refused, or not there; never another Namespace's document.
    assert!(!matches!(stranger.read().await, Ok(Some(_))), "it was read");
    failed(
        "an update for another Namespace",
        stranger.update(1, &document(OTHER)).await,
    );
    let _ = stranger.delete().await;
    assert_eq!(scene.stored().await, Some((1, document("mine"))));
}

pub(super) async fn what_does_not_exist_is_none(scene: &Scene) {
    assert_eq!(scene.stored().await, None);
    scene.create(&document("a")).await.expect("a new document is stored");
    scene.delete().await.expect("it is deleted");
    assert_eq!(scene.stored().await, None);
}

pub(super) async fn a_repeated_deletion_is_well(scene: &Scene) {
    scene.delete().await.expect("absent is well");
    scene.create(&document("a")).await.expect("a new document is stored");
    for _ in 0..3 {
        scene.delete().await.expect("absent is well");
    }
}

pub(super) async fn a_deleted_document_may_be_created_anew(scene: &Scene) {
    scene.create(&document("a")).await.expect("a new document is stored");
    scene
        .update(1, &document("b"))
        .await
        .expect("it is the present generation");
    scene.delete().await.expect("it is deleted");
    scene.create(&document("c")).await.expect("a new document is stored");
    assert_eq!(scene.stored().await, Some((1, document("c"))));
}

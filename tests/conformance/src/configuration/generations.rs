//! Generations: at 1 with the creation, and one more with each update.

use super::scene::{Scene, document, failed};
use crate::{canary::OTHER, records::context};

pub(super) async fn generations_start_at_one_and_grow_by_one(scene: &Scene) {
    scene.create(&document("0")).await.expect("a new document is stored");
    for generation in 1..5 {
        let text = generation.to_string();
        scene
            .update(generation, &document(&text))
            .await
            .expect("it is the present generation");
        assert_eq!(scene.stored().await, Some((generation + 1, document(&text))));
    }
}

pub(super) async fn a_repeated_call_reports_that_it_is_done(scene: &Scene) {
    for _ in 0..2 {
        scene
            .create(&document("a"))
            .await
            .expect("the answer to the first call was lost");
    }
    for _ in 0..2 {
        scene
            .update(1, &document("b"))
            .await
            .expect("the answer to the first call was lost");
    }
    assert_eq!(scene.stored().await, Some((2, document("b"))));
}

pub(super) async fn a_create_does_not_replace_another_document(scene: &Scene) {
    scene.create(&document("a")).await.expect("a new document is stored");
    failed("creating another document", scene.create(&document(OTHER)).await);
    assert_eq!(scene.stored().await, Some((1, document("a"))));
}

pub(super) async fn a_stale_generation_changes_nothing(scene: &Scene) {
    scene.create(&document("a")).await.expect("a new document is stored");
    scene
        .update(1, &document("b"))
        .await
        .expect("it is the present generation");
    for stale in [0, 1, 3, u64::MAX] {
        failed(
            "an update of another generation",
            scene.update(stale, &document(OTHER)).await,
        );
        assert_eq!(scene.stored().await, Some((2, document("b"))), "{stale}");
    }
}

pub(super) async fn of_two_updates_of_one_generation_one_happens(scene: &Scene) {
    scene.create(&document("a")).await.expect("a new document is stored");
    let (left, right) = (document("left"), document("right"));
    let (one, two) = (context(&scene.records), context(&scene.records));
    let (first, second) = tokio::join!(
        scene.driver.update(&one, scene.namespace, scene.id, 1, &left),
        scene.driver.update(&two, scene.namespace, scene.id, 1, &right),
    );
    // It happened when the driver said so and what it staged was committed.
    let mut happened = Vec::new();
    for (answer, cx, document) in [(first, one, left), (second, two, right)] {
        if answer.is_ok() && scene.records.commit(cx.state().take_staged()).is_ok() {
            happened.push(document);
        }
    }
    assert_eq!(happened.len(), 1, "so many of two updates happened");
    assert_eq!(scene.stored().await, happened.pop().map(|document| (2, document)));
}

pub(super) async fn an_update_makes_nothing(scene: &Scene) {
    failed("an update of nothing", scene.update(1, &document(OTHER)).await);
    failed("an update of nothing", scene.update(0, &document(OTHER)).await);
    assert_eq!(scene.stored().await, None);
}

pub(super) async fn an_operation_sees_its_own_write(scene: &Scene) {
    let cx = context(&scene.records);
    let created = scene
        .driver
        .create(&cx, scene.namespace, scene.id, &document("a"))
        .await;
    created.expect("a new document is stored");
    let read = scene.driver.read(&cx, scene.namespace, scene.id).await;
    assert_eq!(read, Ok(Some((1, document("a")))));
}

//! Refreshes, beside deletions.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use occ_core::{
    control::UpdateCredentialSource,
    driver::{Action, EffectError, ResourceKind, SourceCondition},
    id::SecretId,
    reason::ApiCode,
    resource::CredentialSource,
};
use occ_test_support::drivers::{MediatingGateway, NullCompute, Optional};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{UNDER_WAY, VALUE, away, is, scene};

#[tokio::test]
async fn a_deletion_removes_nothing_while_a_refresh_tells_the_gateway() {
    let scene = scene().await;
    let id = scene.model().await;
    let (release, held) = tokio::sync::oneshot::channel::<()>();
    scene.gateway.register.during(|_| async move {
        held.await.expect("it is released");
        Ok(SourceCondition::Ready)
    });
    let delete = async {
        while scene.gateway.register.waiting() > 0 {
            tokio::task::yield_now().await;
        }
        let early = scene.delete(id).await.unwrap_err();
        is(&early, ApiCode::DependencyUnavailable, UNDER_WAY);
        release.send(()).unwrap();
    };
    let (refreshed, ()) = tokio::join!(scene.refresh(id), delete);
    is(
        &refreshed.unwrap_err(),
        ApiCode::ResourceConflict,
        "The credential source is not ready.",
    );
    // The refresh said that it is over.
    scene.delete(id).await.unwrap();
    assert_eq!((scene.row(id).await, scene.gateway.kept(id)), (None, None));
}

#[tokio::test]
async fn what_a_refresh_that_died_may_have_told_the_gateway_is_waited_for_and_removed() {
    let scene = scene().await;
    let id = scene.model().await;
    let died = Arc::new(tokio::sync::Notify::new());
    let reached = Arc::clone(&died);
    scene.gateway.register.during(|_| async move {
        reached.notify_one();
        std::future::pending().await
    });
    tokio::select! {
        _ = scene.refresh(id) => unreachable!("it does not come back"),
        () = died.notified() => {}
    }
    for _ in 0..2 {
        let early = scene.delete(id).await.unwrap_err();
        is(&early, ApiCode::DependencyUnavailable, UNDER_WAY);
        assert!(scene.gateway.kept(id).is_some());
        scene.age(id, CredentialSource::LATE / 3).await;
    }
    scene.age(id, CredentialSource::LATE / 2).await;
    scene.delete(id).await.unwrap();
    assert_eq!((scene.row(id).await, scene.gateway.kept(id)), (None, None));
}

#[tokio::test]
async fn a_refresh_that_failed_for_certain_keeps_no_deletion_waiting() {
    let scene = scene().await;
    let id = scene.model().await;
    for answer in [Err(away()), Ok(SourceCondition::Failed), Ok(SourceCondition::Absent)] {
        scene.gateway.register.next(answer);
        scene.refresh(id).await.unwrap_err();
        assert_eq!(scene.row(id).await.unwrap().tellings, []);
    }
    scene.gateway.register.next(Err(EffectError::UnknownOutcome));
    scene.refresh(id).await.unwrap_err();
    let early = scene.delete(id).await.unwrap_err();
    is(&early, ApiCode::DependencyUnavailable, UNDER_WAY);
    scene.age(id, CredentialSource::LATE).await;
    scene.delete(id).await.unwrap();
}

#[tokio::test]
async fn each_of_several_refreshes_is_known_until_it_is_over() {
    let scene = scene().await;
    let id = scene.model().await;
    for _ in 0..CredentialSource::MAX_TELLINGS {
        scene.gateway.register.next(Err(EffectError::UnknownOutcome));
        scene.refresh(id).await.unwrap_err();
    }
    let refused = scene.refresh(id).await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "The credential source is being refreshed too often.",
    );
    scene.age(id, CredentialSource::LATE).await;
    scene.refresh(id).await.unwrap();
    assert_eq!(scene.row(id).await.unwrap().tellings, []);
}

/// How often the gateway is told from now on, beside what a test scripts.
fn count(gateway: &MediatingGateway) -> Arc<AtomicUsize> {
    let told = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&told);
    gateway.register.every(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok(SourceCondition::Ready) }
    });
    told
}

#[tokio::test]
async fn refreshes_beside_each_other_do_not_keep_each_other_from_their_end() {
    let scene = scene().await;
    let (id, world) = (scene.model().await, &scene.world);
    let other = scene.from(world.secret("other", "sk-canary-3333333333").await);
    let input = || serde_json::from_value(json!({ "secrets": { "api_key": other } })).unwrap();
    let (first, second) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begun, released) = (Arc::clone(&first), Arc::clone(&second));
    // The first is told until the second is, the second until the first is over.
    scene.gateway.register.during(|_| async move {
        begun.notify_one();
        released.notified().await;
        Ok(SourceCondition::Ready)
    });
    let (over, ends) = tokio::sync::oneshot::channel::<()>();
    scene.gateway.register.during(|_| async move {
        second.notify_one();
        ends.await.expect("the first is over");
        Ok(SourceCondition::Ready)
    });
    let told = count(&scene.gateway);
    let one = async {
        scene.refresh(id).await.unwrap();
        assert_eq!(told.load(Ordering::Relaxed), 0, "the first was told once");
        over.send(()).unwrap();
    };
    let two = async {
        first.notified().await;
        world
            .plane
            .update_credential_source(&world.admin, world.namespace, id, input())
            .await
            .unwrap();
    };
    tokio::join!(one, two);
    // Whose credentials came last nobody knew, so the second was told again.
    assert_eq!(told.load(Ordering::Relaxed), 1);
    assert_eq!(scene.gateway.kept(id).unwrap(), ["sk-canary-3333333333"]);
    let row = scene.row(id).await.unwrap();
    let named: Vec<_> = row.secrets.values().map(|secret| json!(secret)).collect();
    assert_eq!((named, row.tellings), (vec![other["id"].clone()], vec![]));
}

#[tokio::test]
async fn a_refresh_tells_again_when_another_began_and_ended_meanwhile() {
    let scene = scene().await;
    let id = scene.model().await;
    for ends in [Ok(SourceCondition::Ready), Ok(SourceCondition::Failed)] {
        let (plane, admin, namespace) = (
            scene.world.plane.clone(),
            scene.world.admin.clone(),
            scene.world.namespace,
        );
        scene.gateway.register.during(move |_| async move {
            let again = UpdateCredentialSource::default();
            // It leaves the record as it was, and the gateway perhaps not.
            let _ended = plane.update_credential_source(&admin, namespace, id, again).await;
            Ok(SourceCondition::Ready)
        });
        scene.gateway.register.next(ends);
        let told = count(&scene.gateway);
        scene.refresh(id).await.unwrap();
        assert_eq!(told.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test]
async fn a_refresh_needs_its_grant_the_gateway_of_the_source_and_the_fields_of_its_type() {
    let scene = scene().await;
    let (id, world) = (scene.model().await, &scene.world);
    let (admin, namespace) = (&world.admin, world.namespace);
    let other = scene.from(world.secret("other", "sk-canary-3333333333").await);
    let with = |secrets: Value| serde_json::from_value(json!({ "secrets": secrets })).unwrap();
    let refused = world
        .plane
        .update_credential_source(admin, namespace, id, with(json!({ "token": other })))
        .await
        .unwrap_err();
    assert_eq!(
        (refused.code(), refused.details()[0].path.as_str()),
        (ApiCode::InvalidRequest, "/secrets/token")
    );
    let plane = world.selecting(
        None,
        NullCompute::default(),
        Optional {
            credential_gateway: Some(Arc::new(MediatingGateway::named("other"))),
            ..Optional::default()
        },
    );
    let refused = plane
        .update_credential_source(admin, namespace, id, UpdateCredentialSource::default())
        .await
        .unwrap_err();
    is(
        &refused,
        ApiCode::DependencyUnavailable,
        "The credential source is another Credential Gateway's",
    );
    world
        .iam
        .deny(&admin.principal, Action::Update, ResourceKind::CredentialSource);
    assert_eq!(scene.refresh(id).await.unwrap_err().code(), ApiCode::Forbidden);
    world.iam.relent();
    assert_eq!(scene.gateway.kept(id).unwrap(), [VALUE]);

    // With another Secret, which is the one that stays from then on.
    world
        .plane
        .update_credential_source(admin, namespace, id, with(json!({ "api_key": other })))
        .await
        .unwrap();
    assert_eq!(scene.gateway.kept(id).unwrap(), ["sk-canary-3333333333"]);
    world.plane.delete_secret(admin, namespace, scene.secret).await.unwrap();
    let kept: SecretId = serde_json::from_value(other["id"].clone()).unwrap();
    let kept = world.plane.delete_secret(admin, namespace, kept).await.unwrap_err();
    is(&kept, ApiCode::ResourceConflict, "The Secret is still referenced by");
}

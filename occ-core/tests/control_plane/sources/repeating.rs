//! Registrations that name themselves: several attempts of one request, also at once.

use std::{sync::Arc, time::Duration};

use occ_core::{
    admission::Refusal,
    control::{ControlPlane, CredentialSourceView, Once, RegisterCredentialSource},
    driver::{EffectError, EffectResult, SourceCondition},
    id::CredentialSourceId,
    reason::ApiCode,
    resource::{CredentialSource, OwnedKind, SourceState},
    store::{CommitError, Slice, Store as _},
};
use occ_test_support::drivers::{MediatingGateway, NullCompute, Optional};
use serde_json::json;
use tokio::sync::{Notify, oneshot};

use super::{Scene, UNDER_WAY, away, is, scene};

impl Scene {
    /// An attempt of always the same request.
    async fn attempt(&self) -> Result<CredentialSourceView, Refusal> {
        self.attempt_at(&self.world.plane).await
    }

    async fn attempt_at(&self, plane: &ControlPlane) -> Result<CredentialSourceView, Refusal> {
        let mut caller = self.world.admin.clone();
        caller.conditions.once = Some(Once {
            key: "k".to_owned(),
            fingerprint: "0".repeat(64),
        });
        let body = self.body("model", "openai", "api_key", &json!({}));
        let input: RegisterCredentialSource = serde_json::from_value(body).unwrap();
        plane
            .register_credential_source(&caller, self.world.namespace, input)
            .await
    }

    /// What is recorded of the request, if anything.
    async fn record(&self) -> Option<CredentialSource> {
        let world = &self.world;
        let rows = world
            .store
            .all_owned(world.namespace, OwnedKind::CredentialSource, &Slice::ALL);
        rows.await.unwrap().pop().map(|row| row.try_into().unwrap())
    }

    /// The call of the next attempt reaches the gateway, says so and is answered when that is sent.
    fn hold(&self) -> (Arc<Notify>, oneshot::Sender<EffectResult<SourceCondition>>) {
        let reached = Arc::new(Notify::new());
        let (answer, held) = oneshot::channel();
        let told = Arc::clone(&reached);
        self.gateway.register.during(|_| async move {
            told.notify_one();
            held.await.expect("it is answered")
        });
        (reached, answer)
    }

    /// An attempt that dies while the gateway is told.
    async fn attempt_that_dies(&self) -> CredentialSourceId {
        let (reached, _answer) = self.hold();
        tokio::select! {
            _ = self.attempt() => unreachable!("it does not come back"),
            () = reached.notified() => {}
        }
        self.record().await.unwrap().id
    }
}

#[tokio::test]
async fn an_attempt_that_fails_beside_one_that_registered_the_source_leaves_it() {
    for ends in [
        Err(away()),
        Ok(SourceCondition::Failed),
        Err(EffectError::UnknownOutcome),
    ] {
        let scene = scene().await;
        let (reached, answer) = scene.hold();
        let beside = async {
            reached.notified().await;
            let made = scene.attempt().await.unwrap();
            answer.send(ends).unwrap();
            made
        };
        let (first, made) = tokio::join!(scene.attempt(), beside);
        assert_eq!(first.unwrap(), made, "the request was done");
        assert_eq!(scene.record().await.unwrap().state, SourceState::Ready);
        assert!(scene.gateway.kept(made.id).is_some());
    }
}

#[tokio::test]
async fn an_attempt_that_fails_removes_nothing_while_another_tells_the_gateway() {
    let scene = scene().await;
    let (reached, answer) = scene.hold();
    let beside = async {
        reached.notified().await;
        scene.gateway.register.next(Err(away()));
        let refused = scene.attempt().await.unwrap_err();
        is(
            &refused,
            ApiCode::DependencyUnavailable,
            "The Credential Gateway is unavailable.",
        );
        answer.send(Ok(SourceCondition::Ready)).unwrap();
    };
    let (first, ()) = tokio::join!(scene.attempt(), beside);
    is(
        &first.unwrap_err(),
        ApiCode::ResourceConflict,
        "The credential source changed while it was registered.",
    );
    // What arrived late is on record, and a deletion removes it.
    let left = scene.record().await.unwrap();
    assert_eq!((left.state, left.tellings.len()), (SourceState::Deleting, 1));
    assert!(scene.gateway.kept(left.id).is_some());
    is(
        &scene.delete(left.id).await.unwrap_err(),
        ApiCode::DependencyUnavailable,
        UNDER_WAY,
    );
}

#[tokio::test]
async fn what_an_attempt_that_died_may_have_told_stays_on_record_until_it_cannot_arrive() {
    for since in [Duration::ZERO, CredentialSource::LATE] {
        let scene = scene().await;
        let id = scene.attempt_that_dies().await;
        scene.age(id, since).await;
        scene.gateway.register.next(Err(away()));
        scene.attempt().await.unwrap_err();
        let left = scene.record().await.map(|left| (left.state, left.tellings.len()));
        let stays = since < CredentialSource::LATE;
        assert_eq!(left, stays.then_some((SourceState::Deleting, 1)));
    }
}

#[tokio::test]
async fn a_repetition_goes_on_with_an_attempt_that_died() {
    let scene = scene().await;
    let id = scene.attempt_that_dies().await;
    let made = scene.attempt().await.unwrap();
    assert_eq!((made.id, made.state), (id, SourceState::Ready));
    assert_eq!(scene.attempt().await.unwrap(), made);
    assert_eq!(scene.rows().await, 1);
}

#[tokio::test]
async fn an_attempt_that_fails_takes_nothing_from_a_deletion() {
    let scene = scene().await;
    let (reached, answer) = scene.hold();
    let delete = async {
        reached.notified().await;
        let id = scene.record().await.unwrap().id;
        is(
            &scene.delete(id).await.unwrap_err(),
            ApiCode::DependencyUnavailable,
            UNDER_WAY,
        );
        // Nobody asks for a removal but the deletion.
        scene.gateway.remove.next(Ok(()));
        answer.send(Ok(SourceCondition::Failed)).unwrap();
    };
    let (refused, ()) = tokio::join!(scene.attempt(), delete);
    is(
        &refused.unwrap_err(),
        ApiCode::ResourceConflict,
        "The Credential Gateway did not accept",
    );
    assert_eq!(scene.record().await.unwrap().state, SourceState::Deleting);
    assert_eq!(scene.gateway.remove.waiting(), 1, "nothing was removed");
}

#[tokio::test]
async fn a_repetition_says_what_kept_it_from_being_recorded() {
    for (error, says) in [
        (CommitError::NoSpace, "The database has no space left"),
        (CommitError::Unavailable, "The database is unavailable"),
    ] {
        let scene = scene().await;
        scene.attempt_that_dies().await;
        scene.world.store.fail(error);
        is(
            &scene.attempt().await.unwrap_err(),
            ApiCode::DependencyUnavailable,
            says,
        );
        scene.attempt().await.unwrap();
    }
}

#[tokio::test]
async fn two_attempts_that_begin_at_once_are_one_registration() {
    let scene = scene().await;
    let (plane, admin, namespace) = (
        scene.world.plane.clone(),
        scene.world.admin.clone(),
        scene.world.namespace,
    );
    let body = scene.body("model", "openai", "api_key", &json!({}));
    scene.world.store.race(async move {
        let mut caller = admin;
        caller.conditions.once = Some(Once {
            key: "k".to_owned(),
            fingerprint: "0".repeat(64),
        });
        let input: RegisterCredentialSource = serde_json::from_value(body).unwrap();
        plane
            .register_credential_source(&caller, namespace, input)
            .await
            .unwrap();
    });
    let made = scene.attempt().await.unwrap();
    assert_eq!((made.state, scene.rows().await), (SourceState::Ready, 1));
}

#[tokio::test]
async fn a_registration_is_not_repeated_without_end() {
    let scene = scene().await;
    for _ in 0..CredentialSource::MAX_TELLINGS {
        scene.attempt_that_dies().await;
    }
    let refused = scene.attempt().await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "The credential source is being registered too often.",
    );
    scene
        .age(scene.record().await.unwrap().id, CredentialSource::LATE)
        .await;
    scene.attempt().await.unwrap();
    assert_eq!(scene.record().await.unwrap().tellings, []);
}

#[tokio::test]
async fn a_registration_is_gone_on_with_by_the_gateway_that_was_told_alone() {
    let scene = scene().await;
    scene.attempt_that_dies().await;
    let other = Arc::new(MediatingGateway::named("other"));
    let plane = scene.world.selecting(
        None,
        NullCompute::default(),
        Optional {
            credential_gateway: Some(Arc::clone(&other) as _),
            ..Optional::default()
        },
    );
    is(
        &scene.attempt_at(&plane).await.unwrap_err(),
        ApiCode::DependencyUnavailable,
        "The credential source is another Credential Gateway's",
    );
    assert_eq!(other.sources(), 0);
    assert_eq!(scene.record().await.unwrap().gateway_id, "broker");
}

#[tokio::test]
async fn a_gateway_is_not_told_long_after_the_record() {
    let scene = scene().await;
    // As if the commit had taken so long: what it recorded counts from before.
    let late = async || {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(11)).await;
        tokio::time::resume();
    };
    let version = async || scene.record().await.unwrap().version;
    scene.world.store.race(late());
    scene.attempt().await.unwrap();
    assert_eq!(version().await, 3, "recorded, recorded anew and done");
    scene.world.store.race(late());
    scene.refresh(scene.record().await.unwrap().id).await.unwrap();
    assert_eq!(version().await, 6);
}

#[tokio::test]
async fn a_key_does_not_take_up_what_is_no_registration_any_more() {
    let scene = scene().await;
    scene.gateway.register.next(Err(EffectError::UnknownOutcome));
    scene.attempt().await.unwrap_err();
    let refused = scene.attempt().await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "The Idempotency-Key was used for a credential source that is there already",
    );
    assert_eq!(scene.rows().await, 1);
}

//! Withdrawal of a source from the version that runs.

use std::{sync::Arc, time::Duration};

use occ_core::{
    admission::Refusal,
    control::{Caller, UpdateAgent, WithdrawalView},
    driver::{Action, AttachmentCondition, EffectError, EffectResult, ResourceKind, Terminal},
    id::{AgentId, CredentialSourceId, RevisionId},
    reason::{ApiCode, Failure},
    resource::WithdrawalState,
    store::{Change, Store as _, Write},
    work::Policy,
    worker::Worker,
};
use occ_test_support::drivers::{MediatingGateway, NullCompute, Optional};
use serde_json::json;

use super::{Scene, away, by, is, scene};
use crate::people::person;

/// An Agent whose running version uses a model credential and another source, and that other source.
async fn running(scene: &Scene) -> (AgentId, RevisionId, CredentialSourceId) {
    let (model, web) = (scene.model().await, scene.bearer("web", "WEB_TOKEN").await);
    let agent = scene.agent(by(model), &[model, web]).await;
    let revision = scene.deploy(agent).await.unwrap().id;
    let worker = scene.work();
    assert_eq!(scene.ends(agent, revision).await, None);
    worker.shutdown().await;
    (agent, revision, web)
}

impl Scene {
    async fn withdraw(
        &self,
        caller: &Caller,
        agent: AgentId,
        id: CredentialSourceId,
    ) -> Result<WithdrawalView, Refusal> {
        let world = &self.world;
        world
            .plane
            .withdraw_credential_source(caller, world.namespace, agent, id)
            .await
    }

    async fn withdrawal(&self, agent: AgentId, id: CredentialSourceId) -> Result<WithdrawalView, Refusal> {
        let world = &self.world;
        world
            .plane
            .credential_source_withdrawal(&world.admin, world.namespace, agent, id)
            .await
    }

    /// What a worker makes of a withdrawal.
    async fn tried(&self, agent: AgentId, id: CredentialSourceId) -> WithdrawalView {
        let worker = self.work();
        let tried = loop {
            let view = self.withdrawal(agent, id).await.unwrap();
            if !view.withdrawal_in_progress {
                break view;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        worker.shutdown().await;
        tried
    }

    /// Leaves the model credential alone in the draft.
    async fn forget(&self, agent: AgentId, id: CredentialSourceId) {
        let world = &self.world;
        let draft = world.plane.agent(&world.admin, world.namespace, agent).await.unwrap();
        let kept: Vec<_> = draft
            .credential_sources
            .iter()
            .filter(|source| source.source_id != id)
            .map(|source| json!({ "sourceId": source.source_id }))
            .collect();
        let body = json!({ "configurationId": draft.configuration_id, "credentialSources": kept });
        let input: UpdateAgent = serde_json::from_value(body).unwrap();
        world
            .plane
            .update_agent(&world.admin, world.namespace, agent, input)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_withdrawal_is_work_that_is_done_once_a_fresh_look_shows_it() {
    let scene = scene().await;
    let admin = &scene.world.admin;
    let idle = scene.model().await;
    let agent = scene.agent(by(idle), &[idle]).await;
    is(
        &scene.withdraw(admin, agent, idle).await.unwrap_err(),
        ApiCode::ResourceConflict,
        "The Agent has no selected version.",
    );

    let scene = super::scene().await;
    let admin = &scene.world.admin;
    let (agent, revision, web) = running(&scene).await;
    assert_eq!(
        scene.withdrawal(agent, web).await.unwrap_err().code(),
        ApiCode::NotFound
    );
    let unknown = scene.withdraw(admin, agent, CredentialSourceId::random()).await;
    assert_eq!(unknown.unwrap_err().code(), ApiCode::NotFound);
    let unused = scene.bearer("unused", "UNUSED").await;
    let unused = scene.withdraw(admin, agent, unused).await;
    assert_eq!(unused.unwrap_err().code(), ApiCode::NotFound);
    scene.world.store.take_audit();

    let asked = scene.withdraw(admin, agent, web).await.unwrap();
    assert_eq!((asked.state, asked.revision_id), (WithdrawalState::Pending, revision));
    assert!(asked.withdrawal_in_progress, "a worker has it to do");
    assert_eq!(
        scene.withdraw(admin, agent, web).await.unwrap(),
        asked,
        "it is one work"
    );
    assert_eq!(scene.withdrawal(agent, web).await.unwrap(), asked);

    scene.gateway.attachment.next(Ok(AttachmentCondition::Ready));
    scene.gateway.attachment.next(Err(away()));
    let shown = scene.tried(agent, web).await;
    assert_eq!(
        scene.gateway.attachment.waiting(),
        0,
        "it was looked at until that showed it"
    );
    assert_eq!((shown.state, shown.reason), (WithdrawalState::Revoked, None));
    assert!(shown.completed_at.is_some());
    assert_eq!(shown.requested_at, asked.requested_at);
    assert_eq!(
        scene.withdraw(admin, agent, web).await.unwrap(),
        shown,
        "nothing is left to do"
    );
    let audit = serde_json::to_string(&scene.world.store.take_audit()).unwrap();
    for action in [
        "openclaw.agents.credential_sources.withdraw",
        "openclaw.agents.lifecycle.credentials_withdraw",
    ] {
        assert_eq!(audit.matches(&format!("\"{action}\"")).count(), 1, "{action}: {audit}");
    }
}

#[tokio::test]
async fn a_source_is_deleted_once_it_is_withdrawn_from_what_runs() {
    let scene = scene().await;
    let admin = &scene.world.admin;
    let (agent, _, web) = running(&scene).await;
    scene.forget(agent, web).await;
    is(
        &scene.delete(web).await.unwrap_err(),
        ApiCode::ResourceConflict,
        "The credential source is still referenced by",
    );
    scene.withdraw(admin, agent, web).await.unwrap();
    let refused = scene.delete(web).await.unwrap_err();
    assert_eq!(refused.code(), ApiCode::CredentialWithdrawalInProgress);
    assert!(
        scene.gateway.kept(web).is_some(),
        "the gateway keeps what it must end the use of"
    );
    assert_eq!(scene.tried(agent, web).await.state, WithdrawalState::Revoked);
    scene.delete(web).await.unwrap();
    assert_eq!((scene.row(web).await, scene.gateway.kept(web)), (None, None));
}

#[tokio::test]
async fn a_withdrawal_whose_requester_lost_the_grant_is_left_to_whoever_has_it() {
    let scene = scene().await;
    let (agent, _, web) = running(&scene).await;
    scene.forget(agent, web).await;
    let operator = person(&scene.world, &[(Action::Operate, ResourceKind::Agent)]).await;
    scene.withdraw(&operator, agent, web).await.unwrap();
    scene
        .world
        .iam
        .deny(&operator.principal, Action::Operate, ResourceKind::Agent);
    let ended = scene.tried(agent, web).await;
    assert_eq!(
        (ended.state, ended.reason),
        (WithdrawalState::Pending, Some(Failure::AuthorizationDenied))
    );
    // What runs uses it as before.
    is(
        &scene.delete(web).await.unwrap_err(),
        ApiCode::ResourceConflict,
        "The credential source is still referenced by",
    );
    let refused = scene.withdraw(&operator, agent, web).await.unwrap_err();
    assert_eq!(refused.code(), ApiCode::Forbidden);
    scene.withdraw(&scene.world.admin, agent, web).await.unwrap();
    assert_eq!(scene.tried(agent, web).await.state, WithdrawalState::Revoked);
}

#[tokio::test]
async fn a_withdrawal_that_was_asked_for_anew_is_done_by_its_own_work() {
    let scene = scene().await;
    let admin = &scene.world.admin;
    let (agent, revision, web) = running(&scene).await;
    scene.withdraw(admin, agent, web).await.unwrap();
    // Somebody asked anew, as when the first request had ended: its work finds that it is not meant.
    let mut row = scene.row(web).await.unwrap();
    let mut anew = row.withdrawal(revision).unwrap().clone();
    anew.operation = uuid::Uuid::new_v4();
    row = row.withdrawn(anew);
    let change = Change::new().write(Write::UpdateOwned((&row).into()));
    scene.world.store.commit(change).await.unwrap();
    let worker = scene.work();
    loop {
        let left = scene.world.store.queue_depth().await.unwrap();
        if left.queued + left.claimed == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    worker.shutdown().await;
    assert_eq!(scene.row(web).await.unwrap(), row, "nothing of it is said to be done");
    // It has no work, so that it can be asked for again.
    let asked = scene.withdraw(admin, agent, web).await.unwrap();
    assert!(asked.withdrawal_in_progress);
    assert_eq!(scene.tried(agent, web).await.state, WithdrawalState::Revoked);
}

#[tokio::test]
async fn a_withdrawal_that_cannot_be_done_says_why_and_can_be_asked_for_again() {
    let scene = scene().await;
    let world = &scene.world;
    let (agent, _, web) = running(&scene).await;
    // Of this source alone: a worker that starts looks after what the version may still use.
    let shown = |answer: EffectResult<AttachmentCondition>| {
        scene.gateway.attachment.every(move |source| {
            let answer = if source == web {
                answer.clone()
            } else {
                Ok(AttachmentCondition::Ready)
            };
            async move { answer }
        });
    };
    let unavailable = EffectError::Terminal(Terminal::CredentialSourceUnavailable);
    for (answer, why) in [
        (EffectError::Ownership, Failure::OwnershipConflict),
        (unavailable, Failure::CredentialSourceUnavailable),
    ] {
        scene.withdraw(&world.admin, agent, web).await.unwrap();
        shown(Err(answer));
        let ended = scene.tried(agent, web).await;
        assert_eq!((ended.state, ended.reason), (WithdrawalState::Pending, Some(why)));
    }
    shown(Ok(AttachmentCondition::Revoked));
    // Another gateway is not asked, neither by a request nor by work.
    let other = Optional {
        credential_gateway: Some(Arc::new(MediatingGateway::named("other"))),
        ..Optional::default()
    };
    let plane = world.selecting(None, NullCompute::default(), other);
    let refused = plane
        .withdraw_credential_source(&world.admin, world.namespace, agent, web)
        .await
        .unwrap_err();
    is(
        &refused,
        ApiCode::DependencyUnavailable,
        "The credential source is another Credential Gateway's",
    );
    scene.withdraw(&world.admin, agent, web).await.unwrap();
    let worker = Worker::new(
        Arc::clone(&world.store) as _,
        Arc::clone(plane.drivers()),
        Policy::default(),
    )
    .start();
    let ended = loop {
        let view = scene.withdrawal(agent, web).await.unwrap();
        if !view.withdrawal_in_progress {
            break view;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    worker.shutdown().await;
    assert_eq!(ended.reason, Some(Failure::CredentialGatewayMismatch));
    scene.withdraw(&world.admin, agent, web).await.unwrap();
    assert_eq!(scene.tried(agent, web).await.state, WithdrawalState::Revoked);
}

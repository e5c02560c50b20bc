//! Credential sources and the gateway that mediates them (spec/engine 1.8, spec/contracts 11).

use std::{sync::Arc, time::Duration};

use occ_core::{
    admission::Refusal,
    control::{
        Caller, CredentialSourceView, RegisterCredentialSource, RevisionView, UpdateAgent, UpdateCredentialSource,
        WithdrawalView,
    },
    driver::{Action, AttachmentCondition, EffectError, Fault, FaultKind, ResourceKind, SourceCondition},
    id::{AgentId, CredentialSourceId, RevisionId, SecretId},
    plan::{EnvValue, Text},
    reason::{ApiCode, Failure},
    resource::{CredentialSource, ExecutionMode, OwnedKind, PrincipalId, SourceState, WithdrawalState},
    secret_value::SecretValue,
    status::Deployment,
    store::{Change, CommitError, Slice, Store as _, Write},
    time::Timestamp,
    work::Policy,
    worker::{Worker, WorkerHandle},
};
use occ_test_support::drivers::{MediatingGateway, NullCompute, Optional, PlainHarness, World};
use serde_json::{Value, json};

use crate::people::person;

const VALUE: &str = "sk-canary-0123456789";

struct Scene {
    world: World,
    gateway: Arc<MediatingGateway>,
    secret: SecretId,
}

async fn scene() -> Scene {
    let gateway = Arc::new(MediatingGateway::named("broker"));
    let world = World::builder()
        .harness(PlainHarness::named("plain", &[ExecutionMode::Dedicated]))
        .credential_gateway(Arc::clone(&gateway) as _)
        .build()
        .await;
    let secret = world.secret("key", VALUE).await;
    Scene { world, gateway, secret }
}

fn away() -> EffectError {
    Fault::new("reach the broker", FaultKind::Unavailable).into()
}

fn is(refusal: &Refusal, code: ApiCode, beginning: &str) {
    assert_eq!(refusal.code(), code, "{refusal}");
    assert!(refusal.message().starts_with(beginning), "{refusal}");
}

impl Scene {
    fn body(&self, name: &str, kind: &str, field: &str, config: &Value) -> Value {
        let from = json!({ "kind": "secret", "namespaceId": self.world.namespace, "id": self.secret });
        json!({ "name": name, "type": kind, "config": config, "secrets": { field: from } })
    }

    async fn register(&self, body: Value) -> Result<CredentialSourceView, Refusal> {
        let world = &self.world;
        let input: RegisterCredentialSource = serde_json::from_value(body).unwrap();
        world
            .plane
            .register_credential_source(&world.admin, world.namespace, input)
            .await
    }

    /// A model credential.
    async fn model(&self) -> CredentialSourceId {
        let made = self.register(self.body("model", "openai", "api_key", &json!({}))).await;
        made.unwrap().id
    }

    /// A credential of something else, in this variable.
    async fn bearer(&self, name: &str, variable: &str) -> CredentialSourceId {
        let body = self.body(name, "bearer-token", "token", &json!({ "host": variable }));
        self.register(body).await.unwrap().id
    }

    async fn row(&self, id: CredentialSourceId) -> Option<CredentialSource> {
        let world = &self.world;
        let id = id.to_string();
        let row = world
            .store
            .owned(world.namespace, OwnedKind::CredentialSource, &id)
            .await;
        row.unwrap().map(|row| row.try_into().unwrap())
    }

    async fn rows(&self) -> usize {
        let world = &self.world;
        let rows = world
            .store
            .all_owned(world.namespace, OwnedKind::CredentialSource, &Slice::ALL);
        rows.await.unwrap().len()
    }

    async fn delete(&self, id: CredentialSourceId) -> Result<(), Refusal> {
        let world = &self.world;
        world
            .plane
            .delete_credential_source(&world.admin, world.namespace, id)
            .await
    }

    async fn let_operate(&self, principal: &PrincipalId) {
        let role = self
            .world
            .role(&[(Action::Operate, ResourceKind::CredentialSource)])
            .await;
        let input = serde_json::from_value(json!({ "principalId": principal, "roleId": role.id })).unwrap();
        let world = &self.world;
        world
            .plane
            .create_access_binding(&world.admin, world.namespace, input)
            .await
            .unwrap();
    }

    /// A dedicated Agent that authenticates with `auth` and lists `listed`; its principal may operate every source.
    async fn agent(&self, auth: Value, listed: &[CredentialSourceId]) -> AgentId {
        let world = &self.world;
        let listed: Vec<_> = listed.iter().map(|id| json!({ "sourceId": id })).collect();
        let input = json!({
            "name": "a",
            "configurationId": world.configuration(json!({})).await,
            "executionMode": "dedicated",
            "harnessAuth": auth,
            "credentialSources": listed,
        });
        let input = serde_json::from_value(input).unwrap();
        let agent = world.plane.create_agent(&world.admin, world.namespace, input).await;
        let agent = agent.unwrap();
        self.let_operate(&agent.service_principal_id).await;
        agent.id
    }

    async fn deploy(&self, agent: AgentId) -> Result<RevisionView, Refusal> {
        let world = &self.world;
        world.plane.deploy_agent(&world.admin, world.namespace, agent).await
    }

    fn work(&self) -> WorkerHandle {
        let store = Arc::clone(&self.world.store) as _;
        Worker::new(store, Arc::clone(&self.world.drivers), Policy::default()).start()
    }

    async fn status(&self, agent: AgentId, revision: RevisionId) -> Deployment {
        let world = &self.world;
        let read = world
            .plane
            .deployment(&world.admin, world.namespace, agent, revision)
            .await;
        read.unwrap()
    }

    /// How the deployment ends.
    async fn ends(&self, agent: AgentId, revision: RevisionId) -> Option<Failure> {
        loop {
            let status = self.status(agent, revision).await;
            if status.status.is_terminal() {
                return status.error.map(|error| error.code);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn by(source: CredentialSourceId) -> Value {
    json!({ "method": "credential_source", "sourceId": source })
}

#[tokio::test]
async fn a_source_is_registered_once_and_only_the_gateway_keeps_its_credentials() {
    let scene = scene().await;
    let world = &scene.world;
    world.store.take_audit();
    let made = scene
        .register(scene.body("web", "bearer-token", "token", &json!({ "host": "WEB_TOKEN" })))
        .await
        .unwrap();
    assert_eq!(made.state, SourceState::Ready);
    assert_eq!(scene.gateway.kept(made.id).unwrap(), [VALUE]);
    let read = world
        .plane
        .credential_source(&world.admin, world.namespace, made.id)
        .await
        .unwrap();
    assert_eq!(json!(read.status), json!({ "state": "ready" }));
    let row = occ_core::store::OwnedRow::from(&scene.row(made.id).await.unwrap());
    let audit = serde_json::to_string(&world.store.take_audit()).unwrap();
    assert!(audit.contains("openclaw.credential_sources.create"));
    for text in [format!("{row:?}"), audit, serde_json::to_string(&read).unwrap()] {
        assert!(!text.contains("canary"), "{text}");
    }
    let taken = scene.register(scene.body("web", "openai", "api_key", &json!({}))).await;
    is(&taken.unwrap_err(), ApiCode::ResourceConflict, "The name is taken");

    // Its credentials are read anew when that is asked for.
    let value = SecretValue::from("sk-canary-9876543210".to_owned());
    world
        .plane
        .update_secret(&world.admin, world.namespace, scene.secret, value)
        .await
        .unwrap();
    assert_eq!(scene.gateway.kept(made.id).unwrap(), [VALUE]);
    let again = UpdateCredentialSource::default();
    let updated = world
        .plane
        .update_credential_source(&world.admin, world.namespace, made.id, again)
        .await;
    updated.unwrap();
    assert_eq!(scene.gateway.kept(made.id).unwrap(), ["sk-canary-9876543210"]);
    // The Secret that it was read from stays while it is named.
    let kept = world
        .plane
        .delete_secret(&world.admin, world.namespace, scene.secret)
        .await;
    is(
        &kept.unwrap_err(),
        ApiCode::ResourceConflict,
        "The Secret is still referenced by",
    );
}

#[tokio::test]
async fn a_source_has_exactly_the_fields_of_its_type() {
    let scene = scene().await;
    let cases = [
        (scene.body("a", "unknown", "token", &json!({})), "/type"),
        (scene.body("a", "openai", "token", &json!({})), "/secrets/token"),
        (json!({ "name": "a", "type": "openai" }), "/secrets/api_key"),
        (
            scene.body("a", "openai", "api_key", &json!({ "host": "h" })),
            "/config/host",
        ),
        (scene.body("a", "bearer-token", "token", &json!({})), "/config/host"),
        (
            scene.body("a", "bearer-token", "token", &json!({ "host": "" })),
            "/config/host",
        ),
        (
            scene.body("a", "bearer-token", "token", &json!({ "host": "a b" })),
            "/config/host",
        ),
    ];
    for (body, at) in cases {
        let refused = scene.register(body.clone()).await.unwrap_err();
        assert_eq!(refused.code(), ApiCode::InvalidRequest, "{body}");
        assert_eq!(refused.details()[0].path, at, "{body}");
    }
    assert_eq!(scene.rows().await, 0, "nothing is left of what was refused");
}

#[tokio::test]
async fn a_registration_that_fails_leaves_nothing_and_one_that_is_unknown_is_deleted_later() {
    let scene = scene().await;
    let body = || scene.body("model", "openai", "api_key", &json!({}));
    scene.gateway.register.next(Err(away()));
    let refused = scene.register(body()).await.unwrap_err();
    is(
        &refused,
        ApiCode::DependencyUnavailable,
        "The Credential Gateway is unavailable.",
    );
    scene.gateway.register.next(Ok(SourceCondition::Failed));
    let refused = scene.register(body()).await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "The Credential Gateway did not accept",
    );
    assert_eq!(scene.rows().await, 0);

    scene.gateway.register.next(Err(EffectError::UnknownOutcome));
    let unknown = scene.register(body()).await.unwrap_err();
    assert!(unknown.message().contains("do not retry automatically"), "{unknown}");
    let world = &scene.world;
    let rows = world
        .store
        .all_owned(world.namespace, OwnedKind::CredentialSource, &Slice::ALL)
        .await
        .unwrap();
    let left: CredentialSource = rows[0].clone().try_into().unwrap();
    assert_eq!((left.state, left.registered), (SourceState::Deleting, false));
    // It may still arrive at the gateway.
    let early = scene.delete(left.id).await.unwrap_err();
    is(&early, ApiCode::DependencyUnavailable, UNDER_WAY);
    assert!(scene.row(left.id).await.is_some());
}

#[tokio::test]
async fn a_deletion_that_was_cut_off_is_finished_by_a_repetition() {
    let scene = scene().await;
    let id = scene.model().await;
    scene.gateway.remove.next(Err(away()));
    let cut = scene.delete(id).await.unwrap_err();
    assert_eq!(cut.code(), ApiCode::DependencyUnavailable);
    assert_eq!(scene.row(id).await.unwrap().state, SourceState::Deleting);
    scene.world.store.fail(CommitError::Unavailable);
    scene.delete(id).await.unwrap_err();
    assert_eq!(scene.gateway.kept(id), None);
    scene.delete(id).await.unwrap();
    assert_eq!(scene.row(id).await, None);
}

impl Scene {
    async fn refresh(&self, id: CredentialSourceId) -> Result<CredentialSourceView, Refusal> {
        let world = &self.world;
        let again = UpdateCredentialSource::default();
        let refreshed = world
            .plane
            .update_credential_source(&world.admin, world.namespace, id, again);
        refreshed.await
    }

    /// As if so much time had passed since what the record of a source knows of.
    async fn age(&self, id: CredentialSourceId, by: Duration) {
        let mut row = self.row(id).await.unwrap();
        let earlier = |at: Timestamp| Timestamp::from_millis(at.as_millis() - i64::try_from(by.as_millis()).unwrap());
        for telling in &mut row.tellings {
            telling.since = earlier(telling.since);
        }
        row.version += 1;
        let change = Change::new().write(Write::UpdateOwned((&row).into()));
        self.world.store.commit(change).await.unwrap();
    }
}

const UNDER_WAY: &str = "The registration or a refresh of the credential source may still be under way.";

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

#[tokio::test]
async fn a_version_is_given_placeholders_and_nothing_else() {
    let scene = scene().await;
    let (model, web) = (scene.model().await, scene.bearer("web", "WEB_TOKEN").await);
    let agent = scene.agent(by(model), &[model, web]).await;
    let revision = scene.deploy(agent).await.unwrap();
    let judged = scene.world.compute.judged_source();
    assert_eq!(judged.as_ref().map(ToString::to_string).as_deref(), Some("openai"));
    assert_eq!(
        json!(revision.credential_sources),
        json!([{ "sourceId": model }, { "sourceId": web }])
    );
    let shown = serde_json::to_string(&revision).unwrap();
    assert!(!shown.contains("broker") && !shown.contains("canary"), "{shown}");
    let world = &scene.world;
    let saved = world
        .store
        .revision(world.namespace, agent, revision.id)
        .await
        .unwrap()
        .unwrap();
    let frozen =
        json!({ "sourceId": model, "credentialGatewayId": "broker", "sourceType": "openai", "loginMode": "api_key" });
    assert_eq!(json!(saved.revision.snapshot.harness_auth.source), frozen);
    let worker = scene.work();
    assert_eq!(scene.ends(agent, revision.id).await, None);
    worker.shutdown().await;
    let plan = world.compute.planned(revision.id).unwrap();
    let environment = &plan.components[0].environment;
    for (name, source) in [("MEDIATED_KEY", model), ("WEB_TOKEN", web)] {
        let placeholder = EnvValue::Text(Text::literal(format!("placeholder-{source}")));
        assert_eq!(environment[name], placeholder);
    }
    assert!(!serde_json::to_string(&plan).unwrap().contains("canary"));
    // It is in use: by the draft, and then by the version that runs.
    is(
        &scene.delete(web).await.unwrap_err(),
        ApiCode::ResourceConflict,
        "The credential source is still",
    );
}

#[tokio::test]
async fn what_admission_wants_of_a_mediated_credential() {
    let scene = scene().await;
    let (model, web) = (scene.model().await, scene.bearer("web", "WEB_TOKEN").await);
    let world = &scene.world;
    let unlisted = scene.agent(by(model), &[web]).await;
    let refused = scene.deploy(unlisted).await.unwrap_err();
    is(
        &refused,
        ApiCode::InvalidRequest,
        "The credential source of harnessAuth must also be listed",
    );
    let change = |auth: Value, listed: &[CredentialSourceId]| {
        let listed: Vec<_> = listed.iter().map(|id| json!({ "sourceId": id })).collect();
        let body = json!({ "harnessAuth": auth, "credentialSources": listed });
        async move {
            let row = world.store.agent(world.namespace, unlisted).await.unwrap().unwrap();
            let mut body = body;
            body["configurationId"] = json!(row.agent.configuration_id);
            let input: UpdateAgent = serde_json::from_value(body).unwrap();
            world
                .plane
                .update_agent(&world.admin, world.namespace, unlisted, input)
                .await
        }
    };
    change(by(web), &[web]).await.unwrap();
    let refused = scene.deploy(unlisted).await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "A credential source of this type is no model credential.",
    );
    let secret = json!({ "kind": "secret", "namespaceId": world.namespace, "id": scene.secret });
    change(json!({ "method": "api_key", "source": secret }), &[])
        .await
        .unwrap();
    let refused = scene.deploy(unlisted).await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "The selected Credential Gateway mediates model credentials",
    );
    let nowhere = change(by(CredentialSourceId::random()), &[]).await.unwrap_err();
    assert_eq!(nowhere.code(), ApiCode::NotFound);

    change(by(model), &[model]).await.unwrap();
    let row = world.store.agent(world.namespace, unlisted).await.unwrap().unwrap();
    let principal = &row.agent.service_principal_id;
    world
        .iam
        .deny(principal, Action::Operate, ResourceKind::CredentialSource);
    let refused = scene.deploy(unlisted).await.unwrap_err();
    let text =
        format!("The Agent service principal {principal} is not authorized to operate credential_source {model}.");
    is(&refused, ApiCode::Forbidden, &text);
    world
        .iam
        .deny(&world.admin.principal, Action::Operate, ResourceKind::CredentialSource);
    let refused = scene.deploy(unlisted).await.unwrap_err();
    is(&refused, ApiCode::Forbidden, "You are not authorized to do this.");
}

#[tokio::test]
async fn two_placeholders_in_one_variable_end_the_deployment() {
    let scene = scene().await;
    let (one, two) = (scene.bearer("one", "SAME").await, scene.bearer("two", "SAME").await);
    let model = scene.model().await;
    let agent = scene.agent(by(model), &[model, one, two]).await;
    let revision = scene.deploy(agent).await.unwrap().id;
    let worker = scene.work();
    let conflict = Failure::CredentialSourceEnvironmentConflict;
    assert_eq!(scene.ends(agent, revision).await, Some(conflict));
    worker.shutdown().await;
}

#[tokio::test]
async fn a_version_waits_for_its_attachments_and_fails_with_them() {
    for (condition, failure) in [
        (AttachmentCondition::Failed, Failure::CredentialSourceUnavailable),
        (AttachmentCondition::Absent, Failure::CredentialSourceUnavailable),
        (AttachmentCondition::Revoked, Failure::CredentialWithdrawn),
    ] {
        let scene = scene().await;
        let model = scene.model().await;
        let agent = scene.agent(by(model), &[model]).await;
        scene.gateway.attachment.next(Ok(AttachmentCondition::Pending));
        scene.gateway.attachment.next(Ok(AttachmentCondition::Withheld));
        scene.gateway.attachment.times(9, &Ok(condition));
        let revision = scene.deploy(agent).await.unwrap().id;
        let worker = scene.work();
        assert_eq!(scene.ends(agent, revision).await, Some(failure), "{condition:?}");
        worker.shutdown().await;
    }
}

#[tokio::test]
async fn another_gateway_never_touches_what_one_has() {
    let scene = scene().await;
    let world = &scene.world;
    let model = scene.model().await;
    let agent = scene.agent(by(model), &[model]).await;
    let revision = scene.deploy(agent).await.unwrap().id;
    let other = Arc::new(MediatingGateway::named("other"));
    let plane = world.selecting(
        None,
        NullCompute::default(),
        Optional {
            credential_gateway: Some(other),
            ..Optional::default()
        },
    );
    let text = "The credential source is another Credential Gateway's";
    let (admin, namespace) = (&world.admin, world.namespace);
    let refused = plane.deploy_agent(admin, namespace, agent).await.unwrap_err();
    is(&refused, ApiCode::DependencyUnavailable, text);
    let refused = plane
        .delete_credential_source(admin, namespace, model)
        .await
        .unwrap_err();
    is(&refused, ApiCode::DependencyUnavailable, text);
    // A draft can still be cleared.
    let row = world.store.agent(namespace, agent).await.unwrap().unwrap();
    let body = json!({ "configurationId": row.agent.configuration_id, "harnessAuth": null, "credentialSources": [] });
    let cleared = plane
        .update_agent(admin, namespace, agent, serde_json::from_value(body).unwrap())
        .await
        .unwrap();
    assert!(cleared.credential_sources.is_empty() && cleared.harness_auth.is_none());
    // What was admitted before ends.
    let store = Arc::clone(&world.store) as _;
    let worker = Worker::new(store, Arc::clone(plane.drivers()), Policy::default()).start();
    assert_eq!(
        scene.ends(agent, revision).await,
        Some(Failure::CredentialGatewayMismatch)
    );
    worker.shutdown().await;
}

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

    let scene = self::scene().await;
    let admin = &scene.world.admin;
    let (agent, revision, web) = running(&scene).await;
    assert_eq!(
        scene.withdrawal(agent, web).await.unwrap_err().code(),
        ApiCode::NotFound
    );
    let unknown = scene.withdraw(admin, agent, CredentialSourceId::random()).await;
    assert_eq!(unknown.unwrap_err().code(), ApiCode::NotFound);
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
async fn a_version_whose_model_credential_was_withdrawn_before_it_ran_never_runs() {
    let scene = scene().await;
    let world = &scene.world;
    let model = scene.model().await;
    let agent = scene.agent(by(model), &[model]).await;
    let revision = scene.deploy(agent).await.unwrap().id;
    let mut row = scene.row(model).await.unwrap();
    row.version += 1;
    row.withdrawals.push(occ_core::resource::Withdrawal {
        revision_id: revision,
        agent_id: agent,
        state: WithdrawalState::Pending,
        requested_by: world.admin.principal.clone(),
        requested_at: row.created_at,
        operation: uuid::Uuid::new_v4(),
        completed_at: None,
    });
    let change = Change::new().write(Write::UpdateOwned((&row).into()));
    world.store.commit(change).await.unwrap();
    let worker = scene.work();
    assert_eq!(scene.ends(agent, revision).await, Some(Failure::CredentialWithdrawn));
    worker.shutdown().await;
}

#[tokio::test]
async fn a_pending_attachment_is_waited_for() {
    let scene = scene().await;
    let model = scene.model().await;
    let agent = scene.agent(by(model), &[model]).await;
    scene.gateway.attachment.next(Ok(AttachmentCondition::Pending));
    let revision = scene.deploy(agent).await.unwrap().id;
    let worker = scene.work();
    assert_eq!(scene.ends(agent, revision).await, None);
    worker.shutdown().await;
}

//! Issued tokens of service accounts (spec/engine 1.7, spec/contracts 12.3).

use std::sync::Arc;

use occ_core::{
    admission::Refusal,
    control::{AccountView, CreateAgent, CreateServiceAccount, Patch, RevisionView, SetAccountCredential, UpdateAgent},
    driver::{
        Action, EffectError, Fault, FaultKind, OperationContext, ResourceKind, SecretIdentity, ServiceAccountDriver,
    },
    id::{AgentId, SecretId, ServiceAccountId},
    reason::ApiCode,
    resource::{
        AccountCredentialKind, ExecutionMode, HarnessAuth, SecretSource, SecretSourceKind, ServiceAccount, TokenSource,
    },
    secret_value::SecretValue,
    store::{CommitError, Expect, Store as _},
    work::Policy,
    worker::Worker,
};
use occ_test_support::drivers::{IssuingAccounts, NullCompute, Optional, OutsideSecrets, PlainHarness, World, chatgpt};
use serde_json::json;

use crate::people::person;

struct Scene {
    world: World,
    provider: Arc<IssuingAccounts>,
    vault: Arc<OutsideSecrets>,
    account: ServiceAccountId,
}

fn away() -> EffectError {
    Fault::new("reach the provider", FaultKind::Unavailable).into()
}

/// An account without a credential, with values kept outside of the database.
async fn scene() -> Scene {
    let provider = Arc::new(IssuingAccounts::named("accounts"));
    let vault = Arc::new(OutsideSecrets::named("vault"));
    let modes = [ExecutionMode::Dedicated, ExecutionMode::Embedded];
    let world = World::builder()
        .compute(NullCompute::default().reading_the_credential())
        .harness(PlainHarness::named("plain", &modes))
        .secret(Arc::clone(&vault) as _)
        .service_account(Arc::clone(&provider) as _)
        .build()
        .await;
    let input = CreateServiceAccount {
        name: "shared".parse().unwrap(),
        credential: None,
    };
    let account = world.plane.create_service_account(&world.admin, world.namespace, input);
    let account = account.await.unwrap().id;
    Scene {
        world,
        provider,
        vault,
        account,
    }
}

impl Scene {
    async fn issue(&self) -> Result<AccountView, Refusal> {
        let world = &self.world;
        world
            .plane
            .issue_account_credential(&world.admin, world.namespace, self.account)
            .await
    }

    async fn delete(&self) -> Result<(), Refusal> {
        let world = &self.world;
        world
            .plane
            .delete_service_account(&world.admin, world.namespace, self.account)
            .await
    }

    /// The account as it is stored.
    async fn row(&self) -> ServiceAccount {
        let kind = occ_core::resource::OwnedKind::ServiceAccount;
        let id = self.account.to_string();
        let row = self.world.store.owned(self.world.namespace, kind, &id).await;
        row.unwrap().unwrap().try_into().unwrap()
    }

    /// The Secret of the issued token, and its value.
    async fn token(&self) -> (SecretId, SecretValue) {
        let secret = self.row().await.issued().unwrap().0;
        let world = &self.world;
        let row = world.store.secret(world.namespace, secret).await.unwrap().unwrap();
        let identity = SecretIdentity {
            id: row.id,
            namespace_id: row.namespace_id,
            name: row.name.clone(),
        };
        let cx = OperationContext::default();
        let value = world.drivers.secret.value(&cx, &identity, &row.backend_ref).await;
        (secret, value.unwrap())
    }

    /// The one token that the provider accepts, and what is stored, are the same.
    async fn has_one_token(&self) {
        let (_, value) = self.token().await;
        let accepted = self.provider.tokens(self.account).unwrap();
        assert_eq!(
            accepted,
            [value.expose_str().unwrap()],
            "the provider accepts what is stored"
        );
        assert_eq!(self.vault.len(), 1, "no other value is kept");
    }

    fn auth(&self) -> HarnessAuth {
        HarnessAuth::CodexPat {
            source: TokenSource::ServiceAccount {
                namespace_id: self.world.namespace,
                id: self.account,
            },
        }
    }

    async fn agent(&self, called: &str, backend: Option<&str>) -> Result<AgentId, Refusal> {
        let world = &self.world;
        let input: CreateAgent = serde_json::from_value(json!({
            "name": called,
            "configurationId": world.configuration(json!({})).await,
            "executionMode": "dedicated",
            "backendId": backend,
            "harnessAuth": self.auth(),
        }))
        .unwrap();
        let agent = world.plane.create_agent(&world.admin, world.namespace, input).await?;
        Ok(agent.id)
    }

    async fn deploy(&self, agent: AgentId) -> Result<RevisionView, Refusal> {
        let world = &self.world;
        world.plane.deploy_agent(&world.admin, world.namespace, agent).await
    }

    async fn work(&self) {
        let store = Arc::clone(&self.world.store) as _;
        let worker = Worker::new(store, Arc::clone(&self.world.drivers), Policy::default()).start();
        while self.world.store.queue_depth().await.unwrap().queued > 0
            || self.world.store.queue_depth().await.unwrap().claimed > 0
        {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        worker.shutdown().await;
    }

    /// Sets the draft's authentication.
    async fn bind(&self, agent: AgentId, auth: Patch<HarnessAuth>) {
        let world = &self.world;
        let row = world.store.agent(world.namespace, agent).await.unwrap().unwrap();
        let mut input: UpdateAgent =
            serde_json::from_value(json!({ "configurationId": row.agent.configuration_id })).unwrap();
        input.harness_auth = auth;
        let changed = world
            .plane
            .update_agent(&world.admin, world.namespace, agent, input)
            .await;
        changed.unwrap();
    }
}

fn is(refusal: &Refusal, code: ApiCode, beginning: &str) {
    assert_eq!(refusal.code(), code, "{refusal}");
    assert!(refusal.message().starts_with(beginning), "{refusal}");
}

#[tokio::test]
async fn a_token_is_issued_once_and_only_the_secret_driver_has_its_value() {
    let scene = scene().await;
    let world = &scene.world;
    world.store.take_audit();
    let view = scene.issue().await.unwrap();
    assert_eq!(
        view.credential.as_ref().unwrap().kind,
        AccountCredentialKind::AccessToken
    );
    scene.has_one_token().await;
    let (secret, _) = scene.token().await;
    let audit = serde_json::to_string(&world.store.take_audit()).unwrap();
    assert!(audit.contains("openclaw.service_accounts.credentials.create") && audit.contains(&secret.to_string()));
    let row = occ_core::store::OwnedRow::from(&scene.row().await);
    for text in [
        audit,
        format!("{view:?}"),
        format!("{row:?}"),
        serde_json::to_string(&view).unwrap(),
    ] {
        assert!(!text.contains("canary"), "{text}");
    }

    let again = scene.issue().await.unwrap_err();
    is(
        &again,
        ApiCode::ResourceConflict,
        "The service account has a credential already.",
    );
    let imported = SetAccountCredential {
        kind: AccountCredentialKind::ApiKey,
        source: SecretSource {
            kind: SecretSourceKind::Secret,
            namespace_id: world.namespace,
            id: world.secret("mine", "sk-test-0123456789").await,
        },
    };
    let replaced = world
        .plane
        .set_account_credential(&world.admin, world.namespace, scene.account, imported)
        .await;
    is(
        &replaced.unwrap_err(),
        ApiCode::ResourceConflict,
        "The service account's access token is issued",
    );
    let value = SecretValue::from("sk-other-0123456789".to_owned());
    let overwritten = world
        .plane
        .update_secret(&world.admin, world.namespace, secret, value)
        .await;
    is(
        &overwritten.unwrap_err(),
        ApiCode::ResourceConflict,
        "The Secret holds an access token",
    );
    let removed = world.plane.delete_secret(&world.admin, world.namespace, secret).await;
    is(
        &removed.unwrap_err(),
        ApiCode::ResourceConflict,
        "The Secret is still referenced by",
    );
    assert_eq!(scene.provider.ever(), 1);
}

#[tokio::test]
async fn a_version_freezes_the_token_and_delivers_it_without_a_grant_of_the_agents_principal() {
    let scene = scene().await;
    scene.issue().await.unwrap();
    let agent = scene.agent("a", Some("chatgpt")).await.unwrap();
    let revision = scene.deploy(agent).await.unwrap();
    let shown = serde_json::to_string(&revision).unwrap();
    let (secret, value) = scene.token().await;
    for private in ["provider-", "workspace", "canary", &secret.to_string()] {
        assert!(!shown.contains(private), "{private}: {shown}");
    }
    scene.work().await;
    let world = &scene.world;
    let row = world.store.agent(world.namespace, agent).await.unwrap().unwrap();
    assert_eq!(row.agent.active_revision_id, Some(revision.id));
    let delivered = world.compute.delivered(revision.id).unwrap();
    assert_eq!(delivered.expose(), value.expose());
}

#[tokio::test]
async fn a_deployment_needs_the_token_its_backend_its_driver_and_the_callers_read() {
    let scene = scene().await;
    let world = &scene.world;
    let agent = scene.agent("a", Some("chatgpt")).await.unwrap();
    let without = scene.deploy(agent).await.unwrap_err();
    is(
        &without,
        ApiCode::ResourceConflict,
        "The selected account has no issued access token.",
    );
    scene.issue().await.unwrap();
    let other = scene.agent("b", None).await.unwrap();
    let elsewhere = scene.deploy(other).await.unwrap_err();
    is(
        &elsewhere,
        ApiCode::ResourceConflict,
        "The service account belongs to another Backend",
    );

    let others: Arc<dyn ServiceAccountDriver> = Arc::new(IssuingAccounts::named("others"));
    for service_account in [None, Some(others)] {
        let optional = Optional {
            service_account,
            backends: vec![chatgpt()],
            ..Optional::default()
        };
        let vault = Arc::clone(&scene.vault);
        let plane = world.selecting(Some(vault), NullCompute::default(), optional);
        let refused = plane.deploy_agent(&world.admin, world.namespace, agent).await;
        let text = "The service account's access token was issued by another Service Account Driver";
        is(&refused.unwrap_err(), ApiCode::ResourceConflict, text);
    }
    world
        .iam
        .deny(&world.admin.principal, Action::Read, ResourceKind::ServiceAccount);
    assert_eq!(scene.deploy(agent).await.unwrap_err().code(), ApiCode::Forbidden);
}

#[tokio::test]
async fn what_a_killed_attempt_left_is_ended_by_the_next_one() {
    let scene = Arc::new(scene().await);
    // The provider issued a token, and whoever asked for it is gone before it is recorded.
    scene.provider.issued.during(|_| std::future::pending());
    let killed = Arc::clone(&scene);
    let killed = tokio::spawn(async move { killed.issue().await });
    while scene.provider.ever() == 0 {
        tokio::task::yield_now().await;
    }
    killed.abort();
    assert!(killed.await.unwrap_err().is_cancelled());
    assert_eq!(scene.row().await.binding.unwrap().tokens.len(), 1, "it is remembered");
    assert_eq!(scene.provider.tokens(scene.account).unwrap(), ["canary-token-1"]);

    scene.issue().await.unwrap();
    scene.has_one_token().await;
    assert_eq!(scene.provider.tokens(scene.account).unwrap(), ["canary-token-2"]);
    assert_eq!(scene.row().await.binding.unwrap().tokens.len(), 1);
}

#[tokio::test]
async fn a_value_that_a_killed_attempt_stored_is_removed_by_the_next_one() {
    let scene = Arc::new(scene().await);
    let killed = Arc::clone(&scene);
    // Killed when the value is stored, before the commit.
    let (reached, waits) = tokio::sync::oneshot::channel::<()>();
    scene.provider.issued.with(|_| Ok(()));
    scene.world.store.race(async {});
    scene.world.store.race(async move {
        let _ = reached.send(());
        std::future::pending::<()>().await;
    });
    let killed = tokio::spawn(async move { killed.issue().await });
    waits.await.unwrap();
    assert_eq!(scene.vault.len(), 1);
    killed.abort();
    let _ = killed.await;
    scene.issue().await.unwrap();
    scene.has_one_token().await;
}

#[tokio::test]
async fn an_attempt_that_fails_leaves_nothing_and_can_be_repeated() {
    let scene = scene().await;
    for script in [&scene.provider.issue, &scene.provider.issued] {
        script.next(Err(away()));
        let refused = scene.issue().await.unwrap_err();
        is(
            &refused,
            ApiCode::DependencyUnavailable,
            "The Service Account Driver is unavailable.",
        );
    }
    scene.provider.create.next(Err(EffectError::UnknownOutcome));
    let refused = scene.issue().await.unwrap_err();
    is(
        &refused,
        ApiCode::DependencyUnavailable,
        "The Service Account Driver is unavailable.",
    );
    scene.vault.set_away(true);
    let refused = scene.issue().await.unwrap_err();
    is(
        &refused,
        ApiCode::DependencyUnavailable,
        "The Secret Driver is unavailable.",
    );
    scene.vault.set_away(false);
    let row = scene.row().await;
    assert_eq!(row.credential, None);
    assert_eq!(
        row.binding.unwrap().tokens.len(),
        1,
        "what was cut off may still come, and of the others nothing is left"
    );
    assert!(scene.provider.tokens(scene.account).unwrap().is_empty() && scene.vault.is_empty());
    scene.issue().await.unwrap();
    scene.has_one_token().await;
}

#[tokio::test]
async fn a_token_that_cannot_be_taken_back_stays_remembered() {
    let scene = scene().await;
    scene.provider.issued.next(Err(away()));
    scene.provider.end.next(Err(away()));
    scene.issue().await.unwrap_err();
    assert_eq!(scene.provider.tokens(scene.account).unwrap().len(), 1);
    assert_eq!(scene.row().await.binding.unwrap().tokens.len(), 1);
    scene.issue().await.unwrap();
    scene.has_one_token().await;
}

#[tokio::test]
async fn a_commit_that_fails_takes_the_token_back_and_one_that_is_unknown_keeps_it() {
    let scene = scene().await;
    scene.world.store.race(async {});
    scene.world.store.fail(CommitError::Unavailable);
    assert_eq!(scene.issue().await.unwrap_err().code(), ApiCode::DependencyUnavailable);
    assert!(scene.provider.tokens(scene.account).unwrap().is_empty() && scene.vault.is_empty());
    scene.world.store.race(async {});
    scene.world.store.lose_answer();
    let unknown = scene.issue().await.unwrap_err();
    assert!(unknown.message().contains("do not retry automatically"), "{unknown}");
    scene.has_one_token().await;
}

#[tokio::test]
async fn of_two_attempts_at_once_one_token_is_left() {
    let scene = Arc::new(scene().await);
    // The first is overtaken while it asks the provider, and comes back late.
    let (overtake, overtaken) = tokio::sync::oneshot::channel::<()>();
    scene.provider.issued.during(|_| async move {
        let _ = overtaken.await;
        Ok(())
    });
    let first = Arc::clone(&scene);
    let first = tokio::spawn(async move { first.issue().await });
    while scene.provider.ever() == 0 {
        tokio::task::yield_now().await;
    }
    scene.issue().await.unwrap();
    overtake.send(()).unwrap();
    let late = first.await.unwrap().unwrap_err();
    is(
        &late,
        ApiCode::ResourceConflict,
        "The service account has a credential already.",
    );
    scene.has_one_token().await;
}

#[tokio::test]
async fn an_account_goes_with_its_token_once_no_draft_and_no_live_version_uses_it() {
    let scene = scene().await;
    let world = &scene.world;
    scene.issue().await.unwrap();
    let (secret, _) = scene.token().await;
    let agent = scene.agent("a", Some("chatgpt")).await.unwrap();
    scene.deploy(agent).await.unwrap();
    scene.work().await;
    let refused = scene.delete().await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "The service account is still referenced by agent",
    );
    scene.bind(agent, Patch::Clear).await;
    let refused = scene.delete().await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "The service account is still referenced by agent",
    );
    assert!(!scene.row().await.deleting);
    scene.has_one_token().await;

    world
        .plane
        .stop_agent(&world.admin, world.namespace, agent)
        .await
        .unwrap();
    scene.work().await;
    scene.delete().await.unwrap();
    assert_eq!(scene.provider.tokens(scene.account), None);
    assert!(scene.vault.is_empty());
    assert_eq!(world.store.secret(world.namespace, secret).await.unwrap(), None);
    assert_eq!(scene.delete().await.unwrap_err().code(), ApiCode::NotFound);
}

#[tokio::test]
async fn a_deletion_that_was_cut_off_is_remembered_and_finished_by_a_repetition() {
    let scene = scene().await;
    scene.issue().await.unwrap();
    scene.provider.delete.next(Err(away()));
    assert_eq!(scene.delete().await.unwrap_err().code(), ApiCode::DependencyUnavailable);
    assert!(scene.row().await.deleting);
    let bound = scene.agent("a", Some("chatgpt")).await.unwrap_err();
    is(
        &bound,
        ApiCode::ResourceConflict,
        "The service account is being deleted.",
    );
    is(
        &scene.issue().await.unwrap_err(),
        ApiCode::ResourceConflict,
        "The service account is being deleted.",
    );
    // The provider did it, and the record stayed.
    scene.world.store.fail(CommitError::Unavailable);
    scene.delete().await.unwrap_err();
    assert_eq!(scene.provider.tokens(scene.account), None);
    scene.delete().await.unwrap();
    assert!(scene.vault.is_empty());
}

#[tokio::test]
async fn a_deployment_that_comes_between_keeps_the_account() {
    let scene = Arc::new(scene().await);
    scene.issue().await.unwrap();
    let agent = scene.agent("a", Some("chatgpt")).await.unwrap();
    scene.bind(agent, Patch::Clear).await;
    let other = Arc::clone(&scene);
    scene.world.store.race(async move {
        other.bind(agent, Patch::Set(other.auth())).await;
        other.deploy(agent).await.unwrap();
        other.bind(agent, Patch::Clear).await;
    });
    let refused = scene.delete().await.unwrap_err();
    is(
        &refused,
        ApiCode::ResourceConflict,
        "The service account is still referenced by agent",
    );
    assert!(!scene.row().await.deleting);
    scene.has_one_token().await;
}

#[tokio::test]
async fn another_driver_never_touches_what_one_issued() {
    let scene = scene().await;
    let world = &scene.world;
    scene.issue().await.unwrap();
    let other = Arc::new(IssuingAccounts::named("others"));
    let plane = world.selecting(
        Some(Arc::clone(&scene.vault) as _),
        NullCompute::default(),
        Optional {
            service_account: Some(other),
            backends: vec![chatgpt()],
            ..Optional::default()
        },
    );
    let refused = plane
        .delete_service_account(&world.admin, world.namespace, scene.account)
        .await;
    is(
        &refused.unwrap_err(),
        ApiCode::DependencyUnavailable,
        "The service account's token is another Service Account Driver's",
    );
    assert!(!scene.row().await.deleting, "nothing was begun");
    scene.has_one_token().await;
    scene.delete().await.unwrap();
}

#[tokio::test]
async fn issuing_needs_update_and_says_no_more() {
    let scene = scene().await;
    let world = &scene.world;
    let reader = person(world, &[(Action::Read, ResourceKind::ServiceAccount)]).await;
    let refused = world
        .plane
        .issue_account_credential(&reader, world.namespace, scene.account)
        .await;
    assert_eq!(refused.unwrap_err().code(), ApiCode::Forbidden);
    assert_eq!(scene.provider.tokens(scene.account), None);
}

#[tokio::test]
async fn a_change_between_two_reads_is_looked_at_again() {
    let scene = scene().await;
    let stale = Expect::Owned(scene.account.to_string(), 1);
    scene.world.store.fail(CommitError::Conflict(stale));
    scene.issue().await.unwrap();
    scene.has_one_token().await;
}

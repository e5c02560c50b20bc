//! Drafts of Agents (seed: Agents; spec/engine 1.9, 3.1).

use std::sync::Arc;

use occ_core::{
    control::{CreateAgent, Patch, UpdateAgent},
    driver::{Action, ResourceKind},
    id::{ConfigurationId, CredentialSourceId, NamespaceId, ServiceAccountId},
    reason::ApiCode,
    resource::{
        AgentStatus, DesiredRuntimeState, ExecutionMode, HarnessAuth, NamespaceStatus, TokenSource, WorkspaceFileName,
        WorkspaceFiles,
    },
    store::Store as _,
    work::Target,
};
use occ_test_support::drivers::{NullCompute, OutsideSecrets, PlainHarness, World};
use serde_json::json;

use crate::{configurations::binding, people::person};

fn named(name: &str, configuration_id: ConfigurationId) -> CreateAgent {
    CreateAgent {
        name: name.parse().unwrap(),
        configuration_id,
        execution_mode: ExecutionMode::default(),
        backend_id: None,
        harness_auth: None,
        credential_sources: Vec::new(),
        plugins: std::collections::BTreeMap::default(),
        plugin_approvers: None,
        initial_workspace_files: WorkspaceFiles::default(),
        workspace_defaults_id: None,
    }
}

#[tokio::test]
async fn a_new_agent_is_a_stopped_draft_with_a_principal_of_its_own() {
    let world = World::new().await;
    let configuration = world.configuration(json!({})).await;
    let agent = world
        .plane
        .create_agent(&world.admin, world.namespace, named("a", configuration))
        .await
        .unwrap();
    let other = world
        .plane
        .create_agent(&world.admin, world.namespace, named("b", configuration))
        .await
        .unwrap();
    assert_eq!(
        (agent.status, agent.desired_runtime_state),
        (AgentStatus::Active, DesiredRuntimeState::Stopped)
    );
    assert_eq!(
        (agent.execution_mode, agent.active_revision_id),
        (ExecutionMode::Embedded, None)
    );
    assert_ne!(agent.service_principal_id, other.service_principal_id);
    assert!(
        !agent
            .service_principal_id
            .as_str()
            .contains(&agent.id.uuid().to_string()),
        "it cannot be derived"
    );
    let principals = world
        .plane
        .service_principals(&world.admin, world.namespace)
        .await
        .unwrap();
    assert!(
        principals
            .iter()
            .any(|p| p.id == agent.service_principal_id && p.agent_id == Some(agent.id))
    );
    assert!(
        world
            .plane
            .revisions(&world.admin, world.namespace, agent.id)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(world.compute.calls().is_empty());
    let taken = world
        .plane
        .create_agent(&world.admin, world.namespace, named("a", configuration))
        .await
        .unwrap_err();
    assert_eq!(taken.code(), ApiCode::ResourceConflict);
}

#[tokio::test]
async fn creation_refuses_what_is_not_there_or_not_supported() {
    let world = World::new().await;
    let configuration = world.configuration(json!({})).await;
    let create = |input| {
        let (plane, admin, namespace) = (world.plane.clone(), world.admin.clone(), world.namespace);
        async move { plane.create_agent(&admin, namespace, input).await.unwrap_err() }
    };
    assert_eq!(
        create(named("a", ConfigurationId::random())).await.code(),
        ApiCode::NotFound
    );
    let backend = CreateAgent {
        backend_id: Some("chatgpt".parse().unwrap()),
        ..named("a", configuration)
    };
    assert_eq!(create(backend).await.code(), ApiCode::NotFound);
    let auth = |auth| CreateAgent {
        harness_auth: Some(auth),
        ..named("a", configuration)
    };
    let source_id = CredentialSourceId::random();
    let refusal = create(auth(HarnessAuth::CredentialSource { source_id })).await;
    assert_eq!(refusal.code(), ApiCode::CredentialGatewayNotConfigured);
    let id = ServiceAccountId::random();
    let account = TokenSource::ServiceAccount {
        namespace_id: world.namespace,
        id,
    };
    assert_eq!(
        create(auth(HarnessAuth::CodexPat { source: account })).await.code(),
        ApiCode::NotFound
    );
    let foreign = TokenSource::ServiceAccount {
        namespace_id: NamespaceId::random(),
        id,
    };
    let refusal = create(auth(HarnessAuth::CodexPat { source: foreign })).await;
    assert_eq!(
        refusal.code(),
        ApiCode::NotFound,
        "an account of another Namespace is not found"
    );
    let foreign = TokenSource::Secret {
        namespace_id: NamespaceId::random(),
        id: occ_core::id::SecretId::random(),
    };
    let refusal = create(auth(HarnessAuth::CodexPat { source: foreign })).await;
    assert_eq!(
        (refusal.code(), refusal.details()[0].path.as_str()),
        (ApiCode::InvalidRequest, "/harnessAuth/source/namespaceId")
    );
    for status in [NamespaceStatus::Failed, NamespaceStatus::Deleting] {
        world.set_namespace(world.namespace, status).await;
        assert_eq!(
            create(named("a", configuration)).await.code(),
            ApiCode::ResourceConflict
        );
    }
    assert!(world.store.agents(world.namespace).await.unwrap().is_empty());
    let principals = world
        .plane
        .service_principals(&world.admin, world.namespace)
        .await
        .unwrap();
    assert!(principals.is_empty(), "no principal stays of a refused Agent");
}

#[tokio::test]
async fn initial_files_are_staged_and_shown_nowhere() {
    let world = World::new().await;
    let configuration = world.configuration(json!({})).await;
    let files = WorkspaceFiles([(WorkspaceFileName::Agents, "canary-instructions\n".to_owned())].into());
    let input = CreateAgent {
        initial_workspace_files: files.clone(),
        ..named("a", configuration)
    };
    let agent = world
        .plane
        .create_agent(&world.admin, world.namespace, input)
        .await
        .unwrap();
    assert!(!serde_json::to_string(&agent).unwrap().contains("canary"));
    for event in world.store.take_audit() {
        assert!(!serde_json::to_string(&event).unwrap().contains("canary"));
    }
    let target = Target::AgentDeleted {
        namespace: world.namespace,
        agent: agent.id,
    };
    let setup = world.store.pass_read(&target).await.unwrap().setup.unwrap();
    assert_eq!(setup.files, Some(files));
    let plain = world
        .plane
        .create_agent(&world.admin, world.namespace, named("b", configuration))
        .await
        .unwrap();
    let target = Target::AgentDeleted {
        namespace: world.namespace,
        agent: plain.id,
    };
    assert_eq!(world.store.pass_read(&target).await.unwrap().setup, None);
}

#[tokio::test]
async fn files_that_are_too_long_and_stale_defaults_are_refused() {
    let (current, stale) = ("a".repeat(64), "b".repeat(64));
    let harness = PlainHarness::default().with_defaults(&current);
    let world = World::builder().harness(harness).build().await;
    let configuration = world.configuration(json!({})).await;
    let create = |content: &str, defaults: &str| {
        let files = WorkspaceFiles([(WorkspaceFileName::User, content.to_owned())].into());
        let input = CreateAgent {
            initial_workspace_files: files,
            workspace_defaults_id: Some(defaults.to_owned()),
            ..named("a", configuration)
        };
        let (plane, admin, namespace) = (world.plane.clone(), world.admin.clone(), world.namespace);
        async move { plane.create_agent(&admin, namespace, input).await }
    };
    let refusal = create(&"é".repeat(8 * 1024 + 1), &current).await.unwrap_err();
    assert_eq!(refusal.details()[0].path, "/initialWorkspaceFiles/USER.md");
    assert_eq!(
        create("a\0b", &current).await.unwrap_err().code(),
        ApiCode::InvalidRequest
    );
    assert_eq!(
        create("", "ABC").await.unwrap_err().details()[0].path,
        "/workspaceDefaultsId"
    );
    assert_eq!(create("", &stale).await.unwrap_err().code(), ApiCode::ResourceConflict);
    assert!(create(&"é".repeat(8 * 1024), &current).await.is_ok());
}

#[tokio::test]
async fn a_change_keeps_what_it_does_not_name_and_null_clears() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let next = world.configuration(json!({ "n": 2 })).await;
    let update = |input| world.plane.update_agent(&world.admin, world.namespace, agent.id, input);
    let kept = update(UpdateAgent::configuration(next)).await.unwrap();
    assert_eq!((kept.configuration_id, kept.harness_auth), (next, agent.harness_auth));
    assert_eq!(kept.service_principal_id, agent.service_principal_id);
    let dedicated = UpdateAgent {
        execution_mode: Some(ExecutionMode::Dedicated),
        ..UpdateAgent::configuration(next)
    };
    assert_eq!(
        update(dedicated).await.unwrap().execution_mode,
        ExecutionMode::Dedicated
    );
    let cleared = UpdateAgent {
        harness_auth: Patch::Clear,
        ..UpdateAgent::configuration(next)
    };
    let cleared = update(cleared).await.unwrap();
    assert_eq!(
        (cleared.harness_auth, cleared.execution_mode),
        (None, ExecutionMode::Dedicated)
    );
    assert!(
        world.compute.calls().is_empty(),
        "a change of a draft queues and calls nothing"
    );
}

#[test]
fn a_bodys_null_is_not_an_absent_field() {
    let id = ConfigurationId::random();
    let read = |body| serde_json::from_value::<UpdateAgent>(body);
    assert_eq!(
        read(json!({ "configurationId": id })).unwrap().harness_auth,
        Patch::Keep
    );
    assert_eq!(
        read(json!({ "configurationId": id, "harnessAuth": null }))
            .unwrap()
            .harness_auth,
        Patch::Clear
    );
    let set = read(json!({ "configurationId": id, "harnessAuth": { "method": "runtime" } })).unwrap();
    assert_eq!(set.harness_auth, Patch::Set(HarnessAuth::Runtime {}));
    for bad in [
        json!({}),
        json!({ "configurationId": id, "servicePrincipalId": "spn_x" }),
        json!({ "configurationId": id, "configuration": {} }),
        json!({ "configurationId": id, "modelApiKey": "x" }),
    ] {
        assert!(read(bad.clone()).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn after_a_driver_switch_a_binding_can_be_kept_cleared_and_replaced_but_not_named_again() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let vault = Arc::new(OutsideSecrets::named("vault"));
    let switched = world.with(Some(vault), NullCompute::default());
    let keep = UpdateAgent::configuration(agent.configuration_id);
    let update = |input| switched.update_agent(&world.admin, world.namespace, agent.id, input);
    assert!(update(keep.clone()).await.is_ok());
    let again = UpdateAgent {
        harness_auth: Patch::Set(agent.harness_auth.unwrap()),
        ..keep.clone()
    };
    let refusal = update(again).await.unwrap_err();
    assert_eq!(refusal.code(), ApiCode::DependencyUnavailable);
    assert!(
        refusal
            .message()
            .contains("Bind a Secret that is stored through the selected one"),
        "{refusal}"
    );
    let refusal = switched
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::DependencyUnavailable, "{refusal}");

    let value = occ_core::secret_value::SecretValue::from("sk-test-new".to_owned());
    let name = "new".parse().unwrap();
    let secret = switched
        .create_secret(&world.admin, world.namespace, name, value)
        .await
        .unwrap()
        .id;
    let replaced = UpdateAgent {
        harness_auth: Patch::Set(world.api_key(secret)),
        ..keep.clone()
    };
    assert_eq!(
        update(replaced).await.unwrap().harness_auth,
        Some(world.api_key(secret))
    );
    let cleared = UpdateAgent {
        harness_auth: Patch::Clear,
        ..keep
    };
    assert_eq!(update(cleared).await.unwrap().harness_auth, None);
}

#[tokio::test]
async fn a_configuration_that_binds_another_drivers_secret_blocks_changes_until_it_is_rebound() {
    let world = World::new().await;
    let bound = world.secret("slack", "xoxb-0123456789").await;
    let input = occ_core::control::CreateConfiguration {
        kind: occ_core::resource::ConfigurationKind::Agent,
        values: occ_core::resource::Document::new(),
        secret_bindings: binding(world.namespace, bound),
    };
    let configuration = world
        .plane
        .create_configuration(&world.admin, world.namespace, input)
        .await
        .unwrap()
        .id;
    let agent = world
        .plane
        .create_agent(&world.admin, world.namespace, named("a", configuration))
        .await
        .unwrap();
    let switched = world.with(Some(Arc::new(OutsideSecrets::named("vault"))), NullCompute::default());
    let update = |id| switched.update_agent(&world.admin, world.namespace, agent.id, UpdateAgent::configuration(id));
    let refusal = update(configuration).await.unwrap_err();
    assert_eq!(refusal.code(), ApiCode::DependencyUnavailable);
    assert!(refusal.message().contains("secretBindings"), "{refusal}");
    let other = world.configuration(json!({})).await;
    assert!(update(other).await.is_ok(), "naming another Configuration resolves it");
}

#[tokio::test]
async fn every_change_needs_the_callers_grant_on_the_current_secret() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let editor = person(
        &world,
        &[
            (Action::Update, ResourceKind::Agent),
            (Action::Read, ResourceKind::Configuration),
        ],
    )
    .await;
    let clear = UpdateAgent {
        harness_auth: Patch::Clear,
        ..UpdateAgent::configuration(agent.configuration_id)
    };
    let refusal = world
        .plane
        .update_agent(&editor, world.namespace, agent.id, clear.clone())
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::Forbidden);
    let secret = agent.harness_auth.unwrap().secret().unwrap().1;
    world.let_operate(&editor.principal, secret).await;
    assert!(
        world
            .plane
            .update_agent(&editor, world.namespace, agent.id, clear)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn lists_show_what_may_be_read() {
    let world = World::new().await;
    let (seen, _hidden) = (world.deployable("a").await, world.deployable("b").await);
    let reader = person(&world, &[(Action::Read, ResourceKind::Namespace)]).await;
    let role = world.role(&[(Action::Read, ResourceKind::Agent)]).await;
    let input = occ_core::control::CreateAccessBinding {
        principal_id: reader.principal.clone(),
        role_id: role.id,
        resource: Some(occ_core::iam::ExactResource {
            kind: ResourceKind::Agent,
            id: seen.id.to_string(),
        }),
    };
    world
        .plane
        .create_access_binding(&world.admin, world.namespace, input)
        .await
        .unwrap();
    let listed = world.plane.agents(&reader, world.namespace).await.unwrap();
    assert_eq!(listed.iter().map(|agent| agent.id).collect::<Vec<_>>(), [seen.id]);
    world.iam.set_away(true);
    assert_eq!(
        world.plane.agents(&reader, world.namespace).await.unwrap_err().code(),
        ApiCode::DependencyUnavailable
    );
}

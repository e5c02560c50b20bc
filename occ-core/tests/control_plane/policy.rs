//! A Namespace's own policy (spec/engine 11).

use occ_core::{
    control::{CreateAccessBinding, CreateRole},
    driver::{Action, ResourceKind},
    iam::{ExactResource, Permission},
    id::{NamespaceId, SecretId},
    reason::ApiCode,
    resource::NamespaceStatus,
};
use occ_test_support::drivers::World;

use crate::people::person;

fn permission(action: Action, kind: ResourceKind) -> Permission {
    Permission { action, kind }
}

fn exact(kind: ResourceKind, id: &impl ToString) -> ExactResource {
    ExactResource {
        kind,
        id: id.to_string(),
    }
}

#[tokio::test]
async fn a_role_permits_one_to_sixty_four_supported_things_once_each() {
    let world = World::new().await;
    let create = |permissions| {
        let (plane, admin, namespace) = (world.plane.clone(), world.admin.clone(), world.namespace);
        async move { plane.create_role(&admin, namespace, CreateRole { permissions }).await }
    };
    let read = permission(Action::Read, ResourceKind::Agent);
    assert!(create(vec![read]).await.is_ok());
    assert_eq!(create(Vec::new()).await.unwrap_err().details()[0].path, "/permissions");
    assert_eq!(
        create(vec![read, read]).await.unwrap_err().details()[0].path,
        "/permissions/1"
    );
    for (action, kind) in [
        (Action::Administer, ResourceKind::Installation),
        (Action::Read, ResourceKind::Installation),
        (Action::Delete, ResourceKind::Namespace),
        (Action::Create, ResourceKind::Agent),
        (Action::ReadLogs, ResourceKind::Secret),
        (Action::Use, ResourceKind::Secret),
        (Action::Operate, ResourceKind::Configuration),
        (Action::Delete, ResourceKind::AgentRevision),
    ] {
        let refusal = create(vec![read, permission(action, kind)]).await.unwrap_err();
        assert_eq!(refusal.code(), ApiCode::InvalidRequest, "{action:?} {kind:?}");
        assert_eq!(refusal.details()[0].path, "/permissions/1");
    }
    assert_eq!(world.plane.roles(&world.admin, world.namespace).await.unwrap().len(), 1);
}

#[tokio::test]
async fn policy_is_for_administrators_who_can_read_the_namespace() {
    let world = World::new().await;
    let bob = person(&world, &[(Action::Read, ResourceKind::Namespace)]).await;
    let input = || CreateRole {
        permissions: vec![permission(Action::Read, ResourceKind::Agent)],
    };
    let refusal = world
        .plane
        .create_role(&bob, world.namespace, input())
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::Forbidden);
    world
        .iam
        .deny(&world.admin.principal, Action::Read, ResourceKind::Namespace);
    let refusal = world
        .plane
        .create_role(&world.admin, world.namespace, input())
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::Forbidden);
    world.iam.relent();
    let refusal = world
        .plane
        .create_role(&world.admin, NamespaceId::random(), input())
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::NotFound);
    world.set_namespace(world.namespace, NamespaceStatus::Deleting).await;
    let refusal = world
        .plane
        .create_role(&world.admin, world.namespace, input())
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::ResourceConflict);
}

#[tokio::test]
async fn a_binding_names_an_existing_subject_role_and_target() {
    let world = World::new().await;
    let secret = world.secret("openai", "sk-test-0123456789").await;
    let role = world.role(&[(Action::Operate, ResourceKind::Secret)]).await.id;
    let bob = person(&world, &[(Action::Read, ResourceKind::Namespace)])
        .await
        .principal;
    let bind = |principal: &str, role_id: &str, resource| {
        let input = CreateAccessBinding {
            principal_id: principal.parse().unwrap(),
            role_id: role_id.to_owned(),
            resource,
        };
        let (plane, admin, namespace) = (world.plane.clone(), world.admin.clone(), world.namespace);
        async move { plane.create_access_binding(&admin, namespace, input).await }
    };
    let target = || Some(exact(ResourceKind::Secret, &secret));
    let refusal = bind("prn_nobody", &role, target()).await.unwrap_err();
    assert_eq!(
        (refusal.code(), refusal.details()[0].path.as_str()),
        (ApiCode::InvalidRequest, "/principalId")
    );
    assert_eq!(
        bind(bob.as_str(), "role_none", target()).await.unwrap_err().code(),
        ApiCode::NotFound
    );
    let absent = Some(exact(ResourceKind::Secret, &SecretId::random()));
    assert_eq!(
        bind(bob.as_str(), &role, absent).await.unwrap_err().code(),
        ApiCode::NotFound
    );
    let malformed = Some(exact(ResourceKind::Secret, &"sec_x"));
    assert_eq!(
        bind(bob.as_str(), &role, malformed).await.unwrap_err().details()[0].path,
        "/resource/id"
    );
    let foreign = Some(exact(ResourceKind::Namespace, &NamespaceId::random()));
    assert_eq!(
        bind(bob.as_str(), &role, foreign).await.unwrap_err().code(),
        ApiCode::NotFound
    );
    let installation = Some(exact(ResourceKind::Installation, &"ins_x"));
    assert_eq!(
        bind(bob.as_str(), &role, installation).await.unwrap_err().details()[0].path,
        "/resource/kind"
    );
    let useless = Some(exact(ResourceKind::Namespace, &world.namespace));
    assert_eq!(
        bind(bob.as_str(), &role, useless).await.unwrap_err().details()[0].path,
        "/roleId"
    );
    let binding = bind(bob.as_str(), &role, target()).await.unwrap();
    assert_eq!(binding.namespace_id, Some(world.namespace));
    let listed = world
        .plane
        .access_bindings(&world.admin, world.namespace)
        .await
        .unwrap();
    assert!(listed.contains(&binding));
}

#[tokio::test]
async fn a_binding_needs_the_right_to_read_its_target() {
    let world = World::new().await;
    let secret = world.secret("openai", "sk-test-0123456789").await;
    let role = world.role(&[(Action::Operate, ResourceKind::Secret)]).await.id;
    world
        .iam
        .deny(&world.admin.principal, Action::Read, ResourceKind::Secret);
    let bind = |id: SecretId| {
        let input = CreateAccessBinding {
            principal_id: world.admin.principal.clone(),
            role_id: role.clone(),
            resource: Some(exact(ResourceKind::Secret, &id)),
        };
        let (plane, admin, namespace) = (world.plane.clone(), world.admin.clone(), world.namespace);
        async move { plane.create_access_binding(&admin, namespace, input).await.unwrap_err() }
    };
    let (there, nowhere) = (bind(secret).await, bind(SecretId::random()).await);
    assert_eq!((there.code(), there.message()), (ApiCode::Forbidden, nowhere.message()));
}

#[tokio::test]
async fn an_agents_principal_is_bound_in_its_own_namespace_only() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let other = occ_core::control::CreateNamespace {
        name: "other".parse().unwrap(),
        existing_namespace: None,
    };
    let other = world.plane.create_namespace(&world.admin, other).await.unwrap().id;
    let permissions = vec![permission(Action::Read, ResourceKind::Agent)];
    let role = world
        .plane
        .create_role(&world.admin, other, CreateRole { permissions })
        .await
        .unwrap();
    let input = CreateAccessBinding {
        principal_id: agent.service_principal_id.clone(),
        role_id: role.id,
        resource: None,
    };
    let refusal = world
        .plane
        .create_access_binding(&world.admin, other, input)
        .await
        .unwrap_err();
    assert_eq!(refusal.details()[0].path, "/principalId");
    let shown = world
        .plane
        .service_principals(&world.admin, world.namespace)
        .await
        .unwrap();
    assert_eq!(
        shown.iter().map(|p| &p.id).collect::<Vec<_>>(),
        [&agent.service_principal_id]
    );
    assert!(
        world
            .plane
            .service_principals(&world.admin, other)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_role_in_use_stays_and_a_withdrawn_grant_counts_at_once() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let bindings = world
        .plane
        .access_bindings(&world.admin, world.namespace)
        .await
        .unwrap();
    let grant = bindings
        .iter()
        .find(|b| b.subject == occ_core::iam::Subject::Identity(agent.service_principal_id.clone()));
    let grant = grant.unwrap();
    let refusal = world
        .plane
        .delete_role(&world.admin, world.namespace, &grant.role_id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::ResourceConflict);
    world
        .plane
        .delete_access_binding(&world.admin, world.namespace, &grant.id)
        .await
        .unwrap();
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert!(refusal.message().contains("service principal"), "{refusal}");
    world
        .plane
        .delete_role(&world.admin, world.namespace, &grant.role_id)
        .await
        .unwrap();
    assert_eq!(
        world
            .plane
            .role(&world.admin, world.namespace, &grant.role_id)
            .await
            .unwrap_err()
            .code(),
        ApiCode::NotFound
    );
    let again = world
        .plane
        .delete_access_binding(&world.admin, world.namespace, &grant.id)
        .await
        .unwrap_err();
    assert_eq!(again.code(), ApiCode::NotFound);
}

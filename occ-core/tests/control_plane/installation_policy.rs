//! The Installation's own policy (seed: "an appropriately scoped Role and `AccessBinding` can grant any platform action, including
//! administrative actions"; spec/engine 11).

use occ_core::{
    control::{Caller, CreateAccessBinding, CreateNamespace, CreateRole},
    driver::{Action, ResourceKind},
    iam::{AccessBinding, ExactResource, Permission, Role},
    id::NamespaceId,
    reason::ApiCode,
};
use occ_test_support::drivers::World;
use serde_json::json;

use crate::people::person;

const INSTALLATION: Option<NamespaceId> = None;

fn permission(action: Action, kind: ResourceKind) -> Permission {
    Permission { action, kind }
}

async fn role(world: &World, permissions: &[(Action, ResourceKind)]) -> Role {
    let permissions = permissions.iter().map(|(action, kind)| permission(*action, *kind));
    let input = CreateRole {
        permissions: permissions.collect(),
    };
    let made = world.plane.create_role(&world.admin, INSTALLATION, input).await;
    made.expect("a Role of the Installation")
}

fn grant(to: &Caller, role: &Role) -> CreateAccessBinding {
    CreateAccessBinding {
        principal_id: to.principal.clone(),
        role_id: role.id.clone(),
        resource: None,
    }
}

async fn granted(world: &World, scope: Option<NamespaceId>, to: &Caller, role: &Role) -> AccessBinding {
    let binding = world.plane.create_access_binding(&world.admin, scope, grant(to, role));
    binding.await.expect("a binding")
}

fn called(name: &str) -> CreateNamespace {
    CreateNamespace {
        name: name.parse().unwrap(),
        existing_namespace: None,
    }
}

#[tokio::test]
async fn a_second_administrator_is_made_by_the_first_and_makes_a_third() {
    let world = World::new().await;
    let (grace, mary) = (person(&world, &[]).await, person(&world, &[]).await);
    let administrator = role(
        &world,
        &[
            (Action::Administer, ResourceKind::Installation),
            (Action::Create, ResourceKind::Namespace),
        ],
    )
    .await;
    let create = world.plane.create_namespace(&grace, called("hers"));
    assert_eq!(create.await.unwrap_err().code(), ApiCode::Forbidden);
    granted(&world, INSTALLATION, &grace, &administrator).await;
    world.plane.create_namespace(&grace, called("hers")).await.unwrap();
    let third = world
        .plane
        .create_access_binding(&grace, INSTALLATION, grant(&mary, &administrator));
    third.await.unwrap();
    world.plane.create_namespace(&mary, called("theirs")).await.unwrap();
}

#[tokio::test]
async fn it_permits_whatever_anybody_is_asked_for_and_nothing_else() {
    let world = World::new().await;
    let create = |permission| {
        let input = CreateRole {
            permissions: vec![permission],
        };
        world.plane.create_role(&world.admin, INSTALLATION, input)
    };
    for (action, kind) in [
        (Action::Administer, ResourceKind::Installation),
        (Action::Read, ResourceKind::Installation),
        (Action::Create, ResourceKind::Namespace),
        (Action::Delete, ResourceKind::Namespace),
        (Action::Create, ResourceKind::Agent),
        (Action::Create, ResourceKind::Secret),
        (Action::Create, ResourceKind::CredentialSource),
        (Action::Create, ResourceKind::ServiceAccount),
        (Action::Create, ResourceKind::Preset),
        (Action::Create, ResourceKind::Configuration),
        (Action::ReadLogs, ResourceKind::Agent),
        (Action::Operate, ResourceKind::Secret),
    ] {
        assert!(create(permission(action, kind)).await.is_ok(), "{action:?} {kind:?}");
    }
    for (action, kind) in [
        (Action::Create, ResourceKind::Installation),
        (Action::Use, ResourceKind::Secret),
        (Action::ReadLogs, ResourceKind::Secret),
        (Action::Delete, ResourceKind::AgentRevision),
        (Action::Create, ResourceKind::AgentRevision),
    ] {
        let refusal = create(permission(action, kind)).await.unwrap_err();
        assert_eq!(refusal.code(), ApiCode::InvalidRequest, "{action:?} {kind:?}");
    }
}

#[tokio::test]
async fn granted_for_one_namespace_it_permits_there_alone() {
    let world = World::new().await;
    let grace = person(&world, &[]).await;
    let creator = role(
        &world,
        &[
            (Action::Create, ResourceKind::Configuration),
            (Action::Read, ResourceKind::Namespace),
            (Action::Delete, ResourceKind::Namespace),
        ],
    )
    .await;
    let other = world
        .plane
        .create_namespace(&world.admin, called("other"))
        .await
        .unwrap();
    granted(&world, Some(world.namespace), &grace, &creator).await;
    let here = world.plane.namespace(&grace, world.namespace).await;
    assert!(here.is_ok());
    let there = world.plane.namespace(&grace, other.id).await;
    assert_eq!(there.unwrap_err().code(), ApiCode::Forbidden);
    let input = serde_json::from_value(json!({ "kind": "agent", "values": {} })).unwrap();
    world
        .plane
        .create_configuration(&grace, world.namespace, input)
        .await
        .unwrap();
    // It is no Role of the Namespace, and an exact resource cannot be created.
    let own = world.plane.roles(&world.admin, world.namespace).await.unwrap();
    assert!(own.iter().all(|role| role.id != creator.id));
    let exact = CreateAccessBinding {
        resource: Some(ExactResource {
            kind: ResourceKind::Configuration,
            id: occ_core::id::ConfigurationId::random().to_string(),
        }),
        ..grant(&grace, &creator)
    };
    let refusal = world
        .plane
        .create_access_binding(&world.admin, world.namespace, exact)
        .await;
    let refusal = refusal.unwrap_err();
    assert_eq!(
        (refusal.code(), refusal.details()[0].path.as_str()),
        (ApiCode::InvalidRequest, "/roleId"),
        "what is created is no exact resource"
    );
}

#[tokio::test]
async fn only_administrators_of_the_installation_change_it_and_only_people_are_granted_everywhere() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let bob = person(&world, &[(Action::Read, ResourceKind::Namespace)]).await;
    let reader = role(&world, &[(Action::Read, ResourceKind::Agent)]).await;
    let (plane, admin) = (&world.plane, &world.admin);
    let denied = plane
        .create_access_binding(&bob, INSTALLATION, grant(&bob, &reader))
        .await;
    assert_eq!(denied.unwrap_err().code(), ApiCode::Forbidden);
    let denied = plane.roles(&bob, INSTALLATION).await;
    assert_eq!(denied.unwrap_err().code(), ApiCode::Forbidden);
    let to_agent = CreateAccessBinding {
        principal_id: agent.service_principal_id.clone(),
        ..grant(&bob, &reader)
    };
    let refused = plane.create_access_binding(admin, INSTALLATION, to_agent.clone()).await;
    assert_eq!(refused.unwrap_err().details()[0].path, "/principalId");
    // In its own Namespace it may have the same Role.
    plane
        .create_access_binding(admin, world.namespace, to_agent)
        .await
        .unwrap();
    let of_namespace = world.role(&[(Action::Read, ResourceKind::Agent)]).await;
    let refused = plane
        .create_access_binding(admin, INSTALLATION, grant(&bob, &of_namespace))
        .await;
    assert_eq!(refused.unwrap_err().code(), ApiCode::NotFound);
    let confined = CreateAccessBinding {
        resource: Some(ExactResource {
            kind: ResourceKind::Namespace,
            id: world.namespace.to_string(),
        }),
        ..grant(&bob, &reader)
    };
    let refused = plane.create_access_binding(admin, INSTALLATION, confined).await;
    assert_eq!(refused.unwrap_err().details()[0].path, "/resource");
}

#[tokio::test]
async fn nobody_deletes_the_last_binding_by_which_they_administer_and_no_role_that_is_granted_anywhere() {
    let world = World::new().await;
    let grace = person(&world, &[]).await;
    let administrator = role(&world, &[(Action::Administer, ResourceKind::Installation)]).await;
    let (plane, admin) = (&world.plane, &world.admin);
    let first = plane.access_bindings(admin, INSTALLATION).await.unwrap();
    assert_eq!(first.len(), 1, "the bootstrap's");
    let kept = plane.delete_access_binding(admin, INSTALLATION, &first[0].id).await;
    assert_eq!(kept.unwrap_err().code(), ApiCode::ResourceConflict);

    let hers = granted(&world, INSTALLATION, &grace, &administrator).await;
    let own = plane.delete_access_binding(&grace, INSTALLATION, &hers.id).await;
    assert_eq!(own.unwrap_err().code(), ApiCode::ResourceConflict);
    plane
        .delete_access_binding(&grace, INSTALLATION, &first[0].id)
        .await
        .unwrap();
    let gone = plane.roles(admin, INSTALLATION).await;
    assert_eq!(
        gone.unwrap_err().code(),
        ApiCode::Forbidden,
        "the first administers no more"
    );

    let input = CreateRole {
        permissions: vec![permission(Action::Create, ResourceKind::Agent)],
    };
    let creator = plane.create_role(&grace, INSTALLATION, input).await.unwrap();
    let read = CreateRole {
        permissions: vec![permission(Action::Read, ResourceKind::Namespace)],
    };
    let read = plane.create_role(&grace, INSTALLATION, read).await.unwrap();
    plane
        .create_access_binding(&grace, INSTALLATION, grant(&grace, &read))
        .await
        .unwrap();
    plane
        .create_access_binding(&grace, world.namespace, grant(&grace, &creator))
        .await
        .unwrap();
    let used = plane.delete_role(&grace, INSTALLATION, &creator.id).await.unwrap_err();
    assert!(used.message().contains("still granted"), "{used}");
}

#[tokio::test]
async fn two_administrators_who_delete_each_other_at_once_leave_one() {
    let world = World::new().await;
    let grace = person(&world, &[]).await;
    let administrator = role(&world, &[(Action::Administer, ResourceKind::Installation)]).await;
    let hers = granted(&world, INSTALLATION, &grace, &administrator).await;
    let all = world.plane.access_bindings(&world.admin, INSTALLATION).await.unwrap();
    let first = all.iter().find(|binding| binding.id != hers.id).unwrap().id.clone();
    let (plane, admin, mine) = (world.plane.clone(), world.admin.clone(), hers.id.clone());
    world.store.race(async move {
        plane.delete_access_binding(&admin, INSTALLATION, &mine).await.unwrap();
    });
    let second = world.plane.delete_access_binding(&grace, INSTALLATION, &first).await;
    assert_eq!(second.unwrap_err().code(), ApiCode::Forbidden);
    assert_eq!(
        world
            .plane
            .access_bindings(&world.admin, INSTALLATION)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_policy_that_its_driver_keeps_itself_is_neither_shown_nor_changed_here() {
    let world = World::new().await;
    let role = world.role(&[(Action::Read, ResourceKind::Agent)]).await;
    let bob = person(&world, &[]).await;
    let (plane, admin) = (&world.plane, &world.admin);
    let binding = plane
        .create_access_binding(admin, world.namespace, grant(&bob, &role))
        .await
        .unwrap();
    world.iam.keeps_its_policy();
    let input = CreateRole {
        permissions: vec![permission(Action::Read, ResourceKind::Agent)],
    };
    for scope in [INSTALLATION, Some(world.namespace)] {
        let refusals = [
            plane.create_role(admin, scope, input.clone()).await.map(drop),
            plane.roles(admin, scope).await.map(drop),
            plane.role(admin, scope, &role.id).await.map(drop),
            plane.delete_role(admin, scope, &role.id).await,
            plane
                .create_access_binding(admin, scope, grant(&bob, &role))
                .await
                .map(drop),
            plane.access_bindings(admin, scope).await.map(drop),
            plane.access_binding(admin, scope, &binding.id).await.map(drop),
            plane.delete_access_binding(admin, scope, &binding.id).await,
        ];
        for refusal in refusals {
            assert_eq!(refusal.unwrap_err().code(), ApiCode::DependencyUnavailable);
        }
    }
    let nobody = plane.roles(&bob, INSTALLATION).await.unwrap_err();
    assert_eq!(
        nobody.code(),
        ApiCode::Forbidden,
        "whoever may not ask learns nothing of it"
    );
}

//! Namespaces (spec/engine 1.4).

use occ_core::{
    audit::AuditOutcome,
    control::{Caller, CreateNamespace},
    driver::{Action, ResourceKind},
    id::NamespaceId,
    reason::{ApiCode, Failure, Success},
    resource::NamespaceStatus,
    store::{Store as _, WorkState},
    work::Target,
};
use occ_test_support::drivers::World;
use serde_json::json;

use crate::{people::person, queue};

fn named(name: &str, existing: Option<&str>) -> CreateNamespace {
    CreateNamespace {
        name: name.parse().unwrap(),
        existing_namespace: existing.map(str::to_owned),
    }
}

async fn deleting(world: &World) -> (NamespaceId, Target) {
    let id = world
        .plane
        .create_namespace(&world.admin, named("gone", None))
        .await
        .unwrap()
        .id;
    queue::succeed(
        world,
        &Target::NamespaceReady { namespace: id },
        Success::NamespaceReconciled,
    )
    .await;
    world.set_namespace(id, NamespaceStatus::Ready).await;
    let deleted = world.plane.delete_namespace(&world.admin, id).await.unwrap();
    assert_eq!(deleted.status, NamespaceStatus::Deleting);
    (id, Target::NamespaceDeleted { namespace: id })
}

/// Another administrator, who may delete every Namespace.
async fn second_admin(world: &World) -> Caller {
    use occ_core::{
        iam::{AccessBinding, Permission, Role, Subject},
        store::{Change, Write},
    };
    let someone = person(world, &[(Action::Read, ResourceKind::Agent)]).await;
    let permissions = vec![Permission {
        action: Action::Delete,
        kind: ResourceKind::Namespace,
    }];
    let role = Role {
        id: "role_deleters".to_owned(),
        namespace_id: None,
        permissions,
    };
    let binding = AccessBinding {
        id: "binding_deleters".to_owned(),
        namespace_id: None,
        subject: Subject::Identity(someone.principal.clone()),
        role_id: role.id.clone(),
        resource: None,
    };
    let change = Change::new()
        .write(Write::Role(role))
        .write(Write::AccessBinding(binding));
    world.store.commit(change).await.unwrap();
    someone
}

#[tokio::test]
async fn creation_queues_its_provisioning_in_the_same_change() {
    let world = World::new().await;
    world.store.take_audit();
    let namespace = world
        .plane
        .create_namespace(&world.admin, named("team", None))
        .await
        .unwrap();
    assert_eq!(namespace.status, NamespaceStatus::Provisioning);
    let work = queue::state(
        &world,
        &Target::NamespaceReady {
            namespace: namespace.id,
        },
    )
    .await;
    assert!(matches!(work, Some(WorkState::Queued { .. })));
    let audit = world.store.take_audit();
    assert_eq!(audit.len(), 1);
    assert_eq!(
        (audit[0].action.as_str(), audit[0].outcome),
        ("openclaw.namespaces.create", AuditOutcome::Success)
    );
    assert_eq!(audit[0].authorization.as_ref().unwrap().request.action, Action::Create);

    let taken = world
        .plane
        .create_namespace(&world.admin, named("team", None))
        .await
        .unwrap_err();
    assert_eq!(taken.code(), ApiCode::ResourceConflict);
}

#[tokio::test]
async fn adoption_needs_a_label_the_administrators_grant_and_a_compute_that_accepts_it() {
    let world = World::new().await;
    for bad in ["", "-a", "a-", "A", "a_b", &"a".repeat(64)] {
        let refusal = world
            .plane
            .create_namespace(&world.admin, named("x", Some(bad)))
            .await
            .unwrap_err();
        assert_eq!(refusal.details()[0].path, "/existingNamespace", "{bad}");
    }
    let refusal = world
        .plane
        .create_namespace(&world.admin, named("x", Some("kube-system")))
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::ResourceConflict);
    world
        .iam
        .deny(&world.admin.principal, Action::Administer, ResourceKind::Installation);
    let refusal = world
        .plane
        .create_namespace(&world.admin, named("x", Some("team-a")))
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::Forbidden);
    world.iam.relent();
    let namespace = world
        .plane
        .create_namespace(&world.admin, named("x", Some("team-a")))
        .await
        .unwrap();
    assert_eq!(namespace.existing_namespace.as_deref(), Some("team-a"));
}

#[tokio::test]
async fn a_denial_does_not_tell_whether_the_namespace_exists() {
    let world = World::new().await;
    let stranger = person(&world, &[(Action::Read, ResourceKind::Agent)]).await;
    let there = world.plane.namespace(&stranger, world.namespace).await.unwrap_err();
    let nowhere = world
        .plane
        .namespace(&stranger, NamespaceId::random())
        .await
        .unwrap_err();
    assert_eq!((there.code(), there.message()), (ApiCode::Forbidden, nowhere.message()));
    assert_eq!(there.code(), nowhere.code());
    assert_eq!(
        world
            .plane
            .namespace(&world.admin, NamespaceId::random())
            .await
            .unwrap_err()
            .code(),
        ApiCode::NotFound
    );
    assert!(world.plane.namespaces(&stranger).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_a_namespace_owns_keeps_it_and_is_named() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for index in 0..8 {
        ids.push(world.secret(&format!("key-{index}"), "sk-test-0123456789").await);
    }
    let refusal = world
        .plane
        .delete_namespace(&world.admin, world.namespace)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::NamespaceNotEmpty);
    let message = refusal.message();
    assert!(message.contains(&ids[0].to_string()), "{message}");
    assert!(message.chars().count() <= 256 && message.contains("more"), "{message}");
    let namespace = world.plane.namespace(&world.admin, world.namespace).await.unwrap();
    assert_eq!(namespace.status, NamespaceStatus::Ready);
}

#[tokio::test]
async fn of_what_a_namespace_owns_only_what_the_caller_may_read_is_named() {
    let world = World::new().await;
    let secret = world.secret("key", "sk-test-0123456789").await;
    let configuration = world.configuration(json!({})).await;
    let delete = (Action::Delete, ResourceKind::Namespace);
    let bob = person(&world, &[delete]).await;
    let refusal = world.plane.delete_namespace(&bob, world.namespace).await.unwrap_err();
    assert_eq!(refusal.code(), ApiCode::NamespaceNotEmpty);
    assert_eq!(
        refusal.message(),
        "The Namespace still owns 2 resources that you may not read."
    );
    let mary = person(&world, &[delete, (Action::Read, ResourceKind::Secret)]).await;
    let refusal = world.plane.delete_namespace(&mary, world.namespace).await.unwrap_err();
    assert!(refusal.message().contains(&secret.to_string()), "{refusal}");
    assert!(
        refusal.message().contains("1 resources that you may not read"),
        "{refusal}"
    );
    assert!(!refusal.message().contains(&configuration.to_string()), "{refusal}");
}

#[tokio::test]
async fn a_repeated_deletion_changes_nothing_while_one_is_under_way() {
    let world = World::new().await;
    let (id, work) = deleting(&world).await;
    world.store.take_audit();
    world.plane.delete_namespace(&world.admin, id).await.unwrap();
    assert!(world.store.take_audit().is_empty());
    queue::claim(&world, &work).await;
    world.plane.delete_namespace(&world.admin, id).await.unwrap();
    assert!(matches!(
        queue::state(&world, &work).await,
        Some(WorkState::Running { .. })
    ));
}

#[tokio::test]
async fn a_failed_deletion_is_repeated_by_its_initiator() {
    let world = World::new().await;
    let (id, work) = deleting(&world).await;
    queue::fail(&world, &work, Failure::DependencyUnavailable).await;
    world.store.take_audit();
    world.plane.delete_namespace(&world.admin, id).await.unwrap();
    assert!(matches!(
        queue::state(&world, &work).await,
        Some(WorkState::Queued { .. })
    ));
    let audit = world.store.take_audit();
    assert_eq!(audit[0].action, "openclaw.namespaces.delete.retry");
    assert_eq!(audit[0].details["previousReasonCode"], "DEPENDENCY_UNAVAILABLE");
    assert_eq!(audit[0].details["previousAttemptCount"], 1);
    assert!(!audit[0].details.contains_key("takeover"));
}

#[tokio::test]
async fn another_caller_takes_a_failed_deletion_over_only_once_the_initiator_may_not_delete() {
    let world = World::new().await;
    let other = second_admin(&world).await;
    let (id, work) = deleting(&world).await;
    queue::fail(&world, &work, Failure::DependencyUnavailable).await;
    world.store.take_audit();

    let refusal = world.plane.delete_namespace(&other, id).await.unwrap_err();
    assert_eq!(refusal.code(), ApiCode::Forbidden);
    let denial = world.store.take_audit().remove(0);
    assert_eq!(denial.details["initiatingActorId"], world.admin.principal.as_str());
    assert_eq!(denial.outcome, AuditOutcome::Denied);

    world
        .iam
        .deny(&world.admin.principal, Action::Delete, ResourceKind::Namespace);
    world.plane.delete_namespace(&other, id).await.unwrap();
    let takeover = world.store.take_audit().remove(0);
    assert_eq!(takeover.details["takeover"], true);
    assert_eq!(takeover.details["previousActorId"], world.admin.principal.as_str());
    assert_eq!(queue::claim(&world, &work).await.actor, other.principal);
}

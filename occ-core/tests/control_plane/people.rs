//! Principals with exactly the grants that a test gives them.

use occ_core::{
    control::Caller,
    driver::{Action, ResourceKind},
    iam::{AccessBinding, Permission, Role, Subject},
    resource::PrincipalId,
    store::{Change, Store as _, Write},
};
use occ_test_support::drivers::World;
use uuid::Uuid;

/// A person who may do this in the whole Namespace `default`, and nothing else.
pub async fn person(world: &World, permissions: &[(Action, ResourceKind)]) -> Caller {
    let id: PrincipalId = format!("prn_{}", Uuid::new_v4()).parse().unwrap();
    let role = Role {
        id: format!("role_{}", Uuid::new_v4()),
        namespace_id: Some(world.namespace),
        permissions: permissions
            .iter()
            .map(|(action, kind)| Permission {
                action: *action,
                kind: *kind,
            })
            .collect(),
    };
    let binding = AccessBinding {
        id: format!("binding_{}", Uuid::new_v4()),
        namespace_id: Some(world.namespace),
        subject: Subject::Identity(id.clone()),
        role_id: role.id.clone(),
        resource: None,
    };
    let change = Change::new()
        .write(Write::Principal(id.clone(), "somebody".to_owned()))
        .write(Write::Role(role))
        .write(Write::AccessBinding(binding));
    world.store.commit(change).await.unwrap();
    Caller::new(id)
}

/// A person who may do everything that the Agent's life needs.
pub async fn operator(world: &World) -> Caller {
    use Action::{Create, Delete, Deploy, Operate, Read, Update};
    let mut permissions = vec![(Read, ResourceKind::Namespace), (Read, ResourceKind::AgentRevision)];
    for action in [Create, Read, Update, Delete, Deploy, Operate] {
        permissions.push((action, ResourceKind::Agent));
    }
    for action in [Create, Read, Update, Delete] {
        permissions.push((action, ResourceKind::Configuration));
        permissions.push((action, ResourceKind::Secret));
    }
    permissions.push((Operate, ResourceKind::Secret));
    person(world, &permissions).await
}

//! What IAM reads.

use std::{sync::Arc, time::Duration};

use occ_core::{
    driver::{Action, IdentityKind, ResourceKind, StateWrite, StoredRecord},
    iam::{AccessBinding, ExactResource, Permission, PolicyReader as _, Role, Subject as Granted},
    id::{NamespaceId, ServiceKeyId},
    resource::{Agent, PrincipalId},
    store::{BindingsOf, Change, CommitError, DeployQuery, Expect, NewServiceKey, Write},
    time::Timestamp,
};

use super::{
    Subject,
    world::{World, principal, secret, until},
};

pub(super) fn role(id: &str, namespace_id: Option<NamespaceId>) -> Role {
    let permissions = vec![Permission {
        action: Action::Deploy,
        kind: ResourceKind::Agent,
    }];
    Role {
        id: id.to_owned(),
        namespace_id,
        permissions,
    }
}

pub(super) fn binding(id: &str, role: &Role, subject: &PrincipalId, resource: Option<ExactResource>) -> AccessBinding {
    AccessBinding {
        id: id.to_owned(),
        namespace_id: role.namespace_id,
        subject: Granted::Identity(subject.clone()),
        role_id: role.id.clone(),
        resource,
    }
}

pub(super) async fn grants_are_those_of_the_principal(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let (own, other) = (role("role_own", Some(world.namespace)), role("role_other", None));
    let exact = ExactResource {
        kind: ResourceKind::Agent,
        id: agent.id.to_string(),
    };
    let granted = binding("binding_own", &own, &world.actor, Some(exact));
    let change = Change::new()
        .write(Write::Role(own.clone()))
        .write(Write::Role(other.clone()))
        .write(Write::AccessBinding(granted.clone()))
        .write(Write::AccessBinding(binding(
            "binding_other",
            &other,
            &agent.service_principal_id,
            None,
        )));
    world.commit(change).await;

    let grants = world.store.grants(&world.actor).await.expect("a read");
    assert_eq!(
        (grants.bindings, grants.roles),
        (vec![granted.clone()], vec![own.clone()])
    );
    let identity = grants.identity.expect("an identity");
    assert_eq!((identity.kind, identity.namespace_id), (IdentityKind::Human, None));

    let identity = world
        .store
        .grants(&agent.service_principal_id)
        .await
        .expect("a read")
        .identity
        .expect("an identity");
    assert_eq!(
        (identity.kind, identity.namespace_id, identity.agent_id),
        (IdentityKind::Service, Some(world.namespace), Some(agent.id))
    );
    let nobody = world.store.grants(&principal("prn_nobody")).await.expect("a read");
    assert_eq!((nobody.identity, nobody.bindings), (None, vec![]));

    assert_eq!(world.store.roles(Some(world.namespace)).await, Ok(vec![own]));
    let principals = world.store.service_principals(world.namespace).await.expect("a read");
    assert_eq!(
        principals.iter().map(|p| &p.id).collect::<Vec<_>>(),
        [&agent.service_principal_id]
    );
}

/// One object is found without the list of all.
pub(super) async fn of_the_policy_of_a_namespace_what_is_asked_for_is_found(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let (agent, other) = (world.agent("triage").await, world.agent("other").await);
    let roles = [
        role("role_a", Some(world.namespace)),
        role("role_b", Some(world.namespace)),
    ];
    let elsewhere = role("role_elsewhere", None);
    let on = |agent: &Agent| ExactResource {
        kind: ResourceKind::Agent,
        id: agent.id.to_string(),
    };
    let bindings = [
        binding("binding_a", &roles[0], &agent.service_principal_id, Some(on(&other))),
        binding("binding_b", &roles[1], &agent.service_principal_id, None),
        binding("binding_c", &roles[1], &other.service_principal_id, Some(on(&agent))),
        AccessBinding {
            subject: Granted::Group(agent.service_principal_id.to_string()),
            ..binding("binding_d", &roles[0], &world.actor, Some(on(&agent)))
        },
    ];
    let mut change = Change::new().write(Write::Role(elsewhere.clone()));
    for role in &roles {
        change = change.write(Write::Role(role.clone()));
    }
    for binding in &bindings {
        change = change.write(Write::AccessBinding(binding.clone()));
    }
    let of_the_installation = binding("binding_elsewhere", &elsewhere, &agent.service_principal_id, None);
    world
        .commit(change.write(Write::AccessBinding(of_the_installation)))
        .await;

    let asked = [
        (BindingsOf::Namespace, vec![0, 1, 2, 3]),
        (BindingsOf::Id("binding_b"), vec![1]),
        (BindingsOf::Id("binding_elsewhere"), vec![]),
        (BindingsOf::Role("role_b"), vec![1, 2]),
        (BindingsOf::Role("role_elsewhere"), vec![]),
        (BindingsOf::Principal(&agent.service_principal_id), vec![0, 1]),
        (BindingsOf::Resource(&on(&agent)), vec![2, 3]),
    ];
    for (of, expected) in asked {
        let expected = expected.into_iter().map(|at: usize| bindings[at].clone());
        let found = world.store.access_bindings(Some(world.namespace), of).await;
        assert_eq!(found, Ok(expected.collect()), "{of:?}");
    }
    let kind_of_another = ExactResource {
        kind: ResourceKind::Secret,
        ..on(&agent)
    };
    let found = world
        .store
        .access_bindings(Some(world.namespace), BindingsOf::Resource(&kind_of_another));
    assert_eq!(found.await, Ok(vec![]));
    let found = world
        .store
        .access_bindings(Some(NamespaceId::random()), BindingsOf::Id("binding_a"));
    assert_eq!(found.await, Ok(vec![]));
    assert_eq!(
        world.store.role(Some(world.namespace), "role_a").await,
        Ok(Some(roles[0].clone()))
    );
    assert_eq!(
        world.store.role(Some(world.namespace), "role_elsewhere").await,
        Ok(None)
    );
    assert_eq!(world.store.role(Some(NamespaceId::random()), "role_a").await, Ok(None));
}

pub(super) async fn admission_reads_the_policy_and_the_records_that_it_would_ask_for(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let (agent, other) = (world.agent("triage").await, world.agent("other").await);
    let (own, unbound) = (role("role_own", Some(world.namespace)), role("role_unbound", None));
    let both = role("role_both", None);
    let staged = |driver: &str, key: String| StateWrite {
        driver: driver.to_owned(),
        key,
        expected: None,
        value: Some(b"bytes".to_vec()),
    };
    let (configuration, secret) = (agent.configuration_id.to_string(), world.secret.id.to_string());
    let change = Change::new()
        .write(Write::Role(own.clone()))
        .write(Write::Role(unbound))
        .write(Write::Role(both.clone()))
        .write(Write::AccessBinding(binding("b_actor", &own, &world.actor, None)))
        .write(Write::AccessBinding(binding("a_actor", &both, &world.actor, None)))
        .write(Write::AccessBinding(binding(
            "agent",
            &both,
            &agent.service_principal_id,
            None,
        )))
        .write(Write::AccessBinding(binding(
            "other",
            &own,
            &other.service_principal_id,
            None,
        )))
        .state(vec![
            staged("configuration/local", configuration.clone()),
            staged("secret/local", secret.clone()),
            staged("secret/local", "another".to_owned()),
            staged("secret/elsewhere", secret.clone()),
        ]);
    world.commit(change).await;

    let query = DeployQuery {
        policy_of: Some(world.actor.clone()),
        records_of: vec!["configuration/local".to_owned(), "secret/local".to_owned()],
        ..DeployQuery::rows(world.namespace, agent.id)
    };
    let mut read = world.store.deploy_read(&query).await.expect("a read");
    let mut expected = Vec::new();
    for principal in [&world.actor, &agent.service_principal_id] {
        expected.push((principal.clone(), world.store.grants(principal).await.expect("a read")));
    }
    assert!(expected.iter().all(|(_, grants)| !grants.bindings.is_empty()));
    let by_id = |left: &(PrincipalId, _), right: &(PrincipalId, _)| left.0.as_str().cmp(right.0.as_str());
    read.policy.sort_by(by_id);
    expected.sort_by(by_id);
    assert_eq!(read.policy, expected);
    let mut kept = Vec::new();
    for (driver, key) in [("configuration/local", configuration), ("secret/local", secret)] {
        let entry = world
            .store
            .read(driver, &key)
            .await
            .expect("a read")
            .expect("the record");
        let driver = driver.to_owned();
        kept.push(StoredRecord { driver, key, entry });
    }
    read.records.sort_by(|left, right| left.driver.cmp(&right.driver));
    assert_eq!(read.records, kept);

    // Nothing is read that is not asked for, and nothing of an Agent of another Namespace.
    let rows = DeployQuery::rows(world.namespace, agent.id);
    let rows = world.store.deploy_read(&rows).await.expect("a read");
    assert_eq!((rows.policy, rows.records), (Vec::new(), Vec::new()));
    let elsewhere = DeployQuery {
        namespace: NamespaceId::random(),
        ..query
    };
    let elsewhere = world.store.deploy_read(&elsewhere).await.expect("a read");
    assert_eq!(elsewhere.records, Vec::new());
    let principals: Vec<_> = elsewhere.policy.iter().map(|(principal, _)| principal).collect();
    assert_eq!(principals, [&world.actor]);
}

pub(super) async fn policy_of_a_removed_resource_goes_with_it(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let at = world.now().await;
    let (gone, kept) = (secret(world.namespace, "gone", at), secret(world.namespace, "kept", at));
    let role = role("role", None);
    let exact = |id: &str| {
        Some(ExactResource {
            kind: ResourceKind::Secret,
            id: id.to_owned(),
        })
    };
    let change = Change::new()
        .write(Write::Secret(gone.clone()))
        .write(Write::Secret(kept.clone()))
        .write(Write::Role(role.clone()))
        .write(Write::AccessBinding(binding(
            "of_gone",
            &role,
            &world.actor,
            exact(&gone.id.to_string()),
        )))
        .write(Write::AccessBinding(binding(
            "of_kept",
            &role,
            &world.actor,
            exact(&kept.id.to_string()),
        )))
        .write(Write::AccessBinding(binding("of_all", &role, &world.actor, None)));
    world.commit(change).await;
    world.write(Write::DeleteSecret(gone.id)).await;
    let grants = world.store.grants(&world.actor).await.expect("a read");
    assert_eq!(
        grants.bindings.iter().map(|b| b.id.as_str()).collect::<Vec<_>>(),
        ["of_all", "of_kept"]
    );
}

pub(super) async fn a_service_key_ends_by_the_databases_clock(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let now = world.now().await;
    let key = |expires_at: Option<Timestamp>| NewServiceKey {
        id: ServiceKeyId::random(),
        principal: world.actor.clone(),
        name: "laptop".to_owned(),
        secret_hash: "0".repeat(64),
        namespace_id: Some(world.namespace),
        expires_at,
    };
    let keys = [
        key(None),
        key(Some(now.plus(Duration::from_hours(1)))),
        key(Some(now.plus(Duration::from_millis(50)))),
        key(None),
    ];
    for key in &keys {
        world.write(Write::ServiceKey(key.clone())).await;
    }
    let [lasting, later, soon, revoked] = &keys;
    let read = async |key: &NewServiceKey| world.store.service_key(key.id).await.expect("a read").expect("the key");
    assert_eq!(read(lasting).await.key, *lasting);
    assert!(!read(lasting).await.expired && !read(later).await.expired);
    until("the end of the key", async || read(soon).await.expired.then_some(())).await;
    world.write(Write::RevokeServiceKey(revoked.id)).await;
    world.write(Write::RevokeServiceKey(revoked.id)).await;
    assert!(read(revoked).await.expired);
    assert_eq!(world.store.service_key(ServiceKeyId::random()).await, Ok(None));
    let ghost = NewServiceKey {
        principal: principal("prn_nobody"),
        ..key(None)
    };
    assert_eq!(
        world.refused(Change::new().write(Write::ServiceKey(ghost))).await,
        CommitError::Refused
    );
}

pub(super) async fn a_role_in_use_is_not_deleted(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let role = role("role", Some(world.namespace));
    let bound = binding("binding", &role, &world.actor, None);
    let unused = Expect::RoleUnreferenced(role.id.clone());
    world.write(Write::Role(role.clone())).await;
    world
        .commit(
            Change::new()
                .expect(unused.clone())
                .expect(Expect::Role(role.id.clone())),
        )
        .await;
    world.write(Write::AccessBinding(bound.clone())).await;
    let delete = Change::new().write(Write::DeleteRole(role.id.clone()));
    assert_eq!(world.refused(delete.clone()).await, CommitError::Refused);
    assert_eq!(
        world.refused(delete.clone().expect(unused.clone())).await,
        CommitError::Conflict(unused)
    );
    world.write(Write::DeleteAccessBinding(bound.id.clone())).await;
    world.write(Write::DeleteAccessBinding(bound.id)).await;
    world.commit(delete).await;
    assert_eq!(world.store.roles(Some(world.namespace)).await, Ok(vec![]));
    let absent = Expect::Role(role.id.clone());
    assert_eq!(
        world.refused(Change::new().expect(absent.clone())).await,
        CommitError::Conflict(absent)
    );
}

/// The Installation's own Roles and bindings are those that are confined to no Namespace. A change under a binding is committed while it
/// is there.
pub(super) async fn the_policy_of_the_installation_is_confined_to_no_namespace(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let (everywhere, here) = (role("role_everywhere", None), role("role_here", Some(world.namespace)));
    let wide = binding("binding_wide", &everywhere, &world.actor, None);
    let wide = AccessBinding {
        namespace_id: None,
        ..wide
    };
    let confined = AccessBinding {
        namespace_id: Some(world.namespace),
        ..binding("binding_confined", &everywhere, &world.actor, None)
    };
    let change = Change::new()
        .write(Write::Role(everywhere.clone()))
        .write(Write::Role(here.clone()))
        .write(Write::AccessBinding(wide.clone()))
        .write(Write::AccessBinding(confined.clone()));
    world.commit(change).await;
    let own = world.store.roles(None).await.expect("a read");
    assert!(own.contains(&everywhere) && !own.contains(&here));
    assert_eq!(world.store.role(None, "role_everywhere").await, Ok(Some(everywhere)));
    assert_eq!(world.store.role(None, "role_here").await, Ok(None));
    let all = world
        .store
        .access_bindings(None, BindingsOf::Namespace)
        .await
        .expect("a read");
    assert!(all.contains(&wide) && !all.contains(&confined));
    let found = |scope, of| world.store.access_bindings(scope, of);
    assert_eq!(
        found(None, BindingsOf::Id("binding_wide")).await,
        Ok(vec![wide.clone()])
    );
    assert_eq!(found(None, BindingsOf::Id("binding_confined")).await, Ok(vec![]));
    let of_role = BindingsOf::Role("role_everywhere");
    assert_eq!(
        found(None, of_role).await,
        Ok(vec![confined.clone(), wide.clone()]),
        "wherever"
    );
    assert_eq!(found(Some(world.namespace), of_role).await, Ok(vec![confined]));

    let under = || {
        Change::new()
            .expect(Expect::AccessBinding(wide.id.clone()))
            .audit(world.event("allowed"))
    };
    world.commit(under()).await;
    world.write(Write::DeleteAccessBinding(wide.id.clone())).await;
    let refused = world.refused(under()).await;
    assert_eq!(refused, CommitError::Conflict(Expect::AccessBinding(wide.id.clone())));
}

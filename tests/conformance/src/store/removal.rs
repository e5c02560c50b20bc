//! What a removal takes with it, and what it leaves (spec/engine 5.5 and 5.6).

use std::sync::Arc;

use occ_core::{
    driver::{Action, ResourceKind},
    iam::{AccessBinding, ExactResource, Permission, PolicyReader as _, Role, Subject as Granted},
    id::{NamespaceId, ServiceKeyId},
    reason::Success,
    resource::{Agent, Namespace, NamespaceStatus, WorkspaceFiles, WorkspaceSetup},
    store::{BindingsOf, Change, CommitError, Expect, NewServiceKey, Slice, Taken, WorkState, Write},
    work::Target,
};
use uuid::Uuid;

use super::{
    Subject,
    world::{LONG, SHORT, World, complete, namespace, until},
};

fn role(id: &str, namespace_id: Option<NamespaceId>) -> Role {
    let permissions = vec![Permission {
        action: Action::Operate,
        kind: ResourceKind::Secret,
    }];
    Role {
        id: id.to_owned(),
        namespace_id,
        permissions,
    }
}

fn key(of: &occ_core::resource::PrincipalId) -> NewServiceKey {
    NewServiceKey {
        id: ServiceKeyId::random(),
        principal: of.clone(),
        name: "a key".to_owned(),
        secret_hash: "0".repeat(64),
        namespace_id: None,
        expires_at: None,
    }
}

/// An Agent with everything that belongs to it, in the middle of being deleted.
async fn furnished(world: &World) -> (Agent, NewServiceKey) {
    let agent = world.draft("triage", world.now().await);
    let setup = WorkspaceSetup {
        id: Uuid::new_v4(),
        defaults_id: None,
        files: Some(WorkspaceFiles::default()),
    };
    world.write(Write::Agent(agent.clone(), Some(setup))).await;
    let (first, second) = (world.deploy(&agent).await, world.deploy(&agent).await);
    let claim = world.claim(LONG).await;
    world.select(&first).await;
    world.settle(&claim, complete(Success::RevisionActivated)).await;
    let role = role("role", Some(world.namespace));
    let binding = |id: &str, subject: Granted, resource: Option<(ResourceKind, String)>| {
        Write::AccessBinding(AccessBinding {
            id: id.to_owned(),
            namespace_id: Some(world.namespace),
            subject,
            role_id: role.id.clone(),
            resource: resource.map(|(kind, id)| ExactResource { kind, id }),
        })
    };
    let actor = || Granted::Identity(world.actor.clone());
    let key = key(&agent.service_principal_id);
    let change = Change::new()
        .write(Write::Role(role.clone()))
        .write(binding(
            "of_the_principal",
            Granted::Identity(agent.service_principal_id.clone()),
            None,
        ))
        .write(binding(
            "of_the_agent",
            actor(),
            Some((ResourceKind::Agent, agent.id.to_string())),
        ))
        .write(binding(
            "of_a_version",
            actor(),
            Some((ResourceKind::AgentRevision, second.id.to_string())),
        ))
        .write(binding("of_everything", actor(), None))
        .write(Write::ServiceKey(key.clone()));
    world.commit(change).await;
    (agent, key)
}

pub(super) async fn a_removed_agent_leaves_only_its_audit(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let (agent, key) = furnished(&world).await;
    let versions = world.store.revisions(world.namespace, agent.id).await.expect("a read");
    let target = world.delete(agent.id).await;
    let claims = world.store.claim(16, LONG).await.expect("a claim");
    // The second version's deployment came first; it is superseded by the deletion and goes with the Agent.
    let [claim] = &claims[..] else {
        panic!("one claim a lane")
    };
    world.settle(claim, complete(Success::RevisionStopped)).await;
    let claim = world.claim(LONG).await;
    assert_eq!(claim.target, target);
    let events = world.audit().await.len();
    let change = Change::new()
        .expect(Expect::ClaimHeld(claim.token))
        .write(Write::RemoveAgent(agent.id))
        .write(Write::Settle(claim.token, complete(Success::AgentDeleted)))
        .audit(world.event("openclaw.agents.lifecycle.delete"));
    world.commit(change).await;

    assert_eq!(world.read_agent(agent.id).await, None);
    assert_eq!(world.store.revisions(world.namespace, agent.id).await, Ok(vec![]));
    assert_eq!(world.store.service_key(key.id).await, Ok(None));
    assert_eq!(world.store.service_principals(world.namespace).await, Ok(vec![]));
    assert_eq!(
        world
            .store
            .grants(&agent.service_principal_id)
            .await
            .expect("a read")
            .identity,
        None
    );
    let left = world
        .store
        .access_bindings(Some(world.namespace), BindingsOf::Namespace)
        .await
        .expect("a read");
    assert_eq!(
        left.iter().map(|binding| binding.id.as_str()).collect::<Vec<_>>(),
        ["of_everything"]
    );
    for version in versions {
        assert_eq!(
            world.store.revision_owner(world.namespace, version.revision.id).await,
            Ok(None)
        );
        assert_eq!(
            world.store.work_state(&world.deployment(&version.revision).key()).await,
            Ok(None)
        );
    }
    assert!(matches!(
        world.state(&target).await,
        WorkState::Succeeded {
            code: Success::AgentDeleted,
            ..
        }
    ));
    let read = world.store.pass_read(&target).await.expect("a read");
    assert!(read.agent.is_none() && read.setup.is_none() && read.live.is_empty());
    // Configurations and Secrets survive, and so does what was recorded.
    assert_eq!(
        world
            .store
            .namespace_contents(world.namespace, 10)
            .await
            .expect("a read")
            .len(),
        2
    );
    assert_eq!(world.audit().await.len(), events + 2);
    world.write(Write::DeleteConfiguration(world.configuration.id)).await;
    world.write(Write::DeleteSecret(world.secret.id)).await;
}

pub(super) async fn a_removal_and_its_settlement_are_one_change(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let target = world.delete(agent.id).await;
    let claim = world.claim(LONG).await;
    // In either order.
    let change = Change::new()
        .write(Write::Settle(claim.token, complete(Success::AgentDeleted)))
        .write(Write::RemoveAgent(agent.id));
    let failing = change.clone().expect(Expect::NoInstallation);
    assert_eq!(
        world.refused(failing).await,
        CommitError::Conflict(Expect::NoInstallation)
    );
    assert!(world.read_agent(agent.id).await.is_some());
    assert!(matches!(world.state(&target).await, WorkState::Running { .. }));
    world.commit(change).await;
    assert!(matches!(world.state(&target).await, WorkState::Succeeded { .. }));
}

pub(super) async fn a_stale_claim_removes_nothing(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    world.delete(agent.id).await;
    let claim = world.claim(SHORT).await;
    let end = claim.claimed_at.plus(SHORT.duration);
    until("the end of the lease", async || (world.now().await > end).then_some(())).await;
    let change = Change::new()
        .write(Write::RemoveAgent(agent.id))
        .write(Write::Settle(claim.token, complete(Success::AgentDeleted)));
    assert_eq!(
        world.refused(change).await,
        CommitError::Conflict(Expect::ClaimHeld(claim.token))
    );
    assert!(world.read_agent(agent.id).await.is_some());
    assert_eq!(
        world
            .store
            .service_principals(world.namespace)
            .await
            .expect("a read")
            .len(),
        1
    );
}

pub(super) async fn an_agent_that_is_not_deleting_is_not_removed(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    world.deploy(&agent).await;
    assert_eq!(
        world.refused(Change::new().write(Write::RemoveAgent(agent.id))).await,
        CommitError::Refused
    );
    assert_eq!(
        world
            .store
            .revisions(world.namespace, agent.id)
            .await
            .expect("a read")
            .len(),
        1
    );
    assert_eq!(world.claim(LONG).await.target.agent(), Some(agent.id));
}

fn deleting(world: &World, id: NamespaceId) -> Change {
    let status = NamespaceStatus::Deleting;
    Change::new()
        .write(Write::NamespaceStatus {
            id,
            status,
            deletion_actor: Some(world.actor.clone()),
        })
        .write(Write::Enqueue(world.work(Target::NamespaceDeleted { namespace: id })))
}

pub(super) async fn a_tombstone_keeps_the_id_and_the_name(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let second = Namespace {
        existing_namespace: Some("tenant".to_owned()),
        ..namespace("second", world.now().await)
    };
    let of = role("role_of_second", Some(second.id));
    let scoped = NewServiceKey {
        namespace_id: Some(second.id),
        ..key(&world.actor)
    };
    let ready = Target::NamespaceReady { namespace: second.id };
    let binding = AccessBinding {
        id: "exact".to_owned(),
        namespace_id: None,
        subject: Granted::Identity(world.actor.clone()),
        role_id: "role_of_all".to_owned(),
        resource: Some(ExactResource {
            kind: ResourceKind::Namespace,
            id: second.id.to_string(),
        }),
    };
    let confined = AccessBinding {
        id: "confined".to_owned(),
        namespace_id: Some(second.id),
        role_id: of.id.clone(),
        resource: None,
        ..binding.clone()
    };
    let change = Change::new()
        .write(Write::Namespace(second.clone()))
        .write(Write::Role(role("role_of_all", None)))
        .write(Write::Role(of))
        .write(Write::AccessBinding(binding))
        .write(Write::AccessBinding(confined))
        .write(Write::ServiceKey(scoped.clone()))
        .write(Write::Enqueue(world.work(ready)));
    world.commit(change).await;
    world
        .settle(&world.claim(LONG).await, complete(Success::NamespaceReconciled))
        .await;

    world.commit(deleting(&world, second.id)).await;
    let row = world
        .store
        .namespace(second.id)
        .await
        .expect("a read")
        .expect("the Namespace");
    assert_eq!(
        (row.namespace.status, row.deletion_actor),
        (NamespaceStatus::Deleting, Some(world.actor.clone()))
    );
    let claim = world.claim(LONG).await;
    let change = Change::new()
        .expect(Expect::NamespaceEmpty(second.id))
        .write(Write::NamespaceTombstone(second.id))
        .write(Write::Settle(claim.token, complete(Success::NamespaceReconciled)));
    world.commit(change).await;

    assert_eq!(world.store.namespace(second.id).await, Ok(None));
    assert_eq!(world.store.namespaces(&Slice::ALL).await.expect("a read").len(), 1);
    assert_eq!(world.store.service_key(scoped.id).await, Ok(None));
    assert_eq!(world.store.roles(Some(second.id)).await, Ok(vec![]));
    assert_eq!(world.store.grants(&world.actor).await.expect("a read").bindings, vec![]);
    assert_eq!(world.store.work_state(&ready.key()).await, Ok(None));
    // Whatever its tombstone's version is, nobody expects anything of it any more.
    let versions = (1..10).map(|version| Expect::Namespace(second.id, version));
    let gone = Expect::NamespaceStatus(second.id, &[NamespaceStatus::Deleting]);
    for gone in versions.chain([gone]) {
        assert_eq!(
            world.refused(Change::new().expect(gone.clone())).await,
            CommitError::Conflict(gone)
        );
    }
    // The name stays taken; the Compute's own namespace is free again.
    let at = world.now().await;
    let twin = namespace("second", at);
    let taken = CommitError::NameTaken(Taken::Namespace);
    assert_eq!(world.refused(Change::new().write(Write::Namespace(twin))).await, taken);
    let third = Namespace {
        existing_namespace: second.existing_namespace.clone(),
        ..namespace("third", at)
    };
    world.write(Write::Namespace(third.clone())).await;
    let fourth = Namespace {
        existing_namespace: second.existing_namespace,
        ..namespace("fourth", at)
    };
    assert_eq!(
        world.refused(Change::new().write(Write::Namespace(fourth))).await,
        taken
    );
    // And it does not come back.
    let revive = Write::NamespaceStatus {
        id: second.id,
        status: NamespaceStatus::Ready,
        deletion_actor: None,
    };
    assert_eq!(world.refused(Change::new().write(revive)).await, CommitError::Refused);
}

pub(super) async fn a_namespace_in_use_has_no_tombstone(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let tombstone = || Change::new().write(Write::NamespaceTombstone(world.namespace));
    assert_eq!(
        world.refused(tombstone()).await,
        CommitError::Refused,
        "it is not being deleted"
    );
    world.commit(deleting(&world, world.namespace)).await;
    let empty = Expect::NamespaceEmpty(world.namespace);
    assert_eq!(
        world.refused(tombstone().expect(empty.clone())).await,
        CommitError::Conflict(empty)
    );
    assert_eq!(
        world.refused(tombstone()).await,
        CommitError::Refused,
        "it owns a Secret and a Configuration"
    );
}

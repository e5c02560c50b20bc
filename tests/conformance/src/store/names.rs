//! Names are unique in their owner (spec/engine 1).

use std::sync::Arc;

use occ_core::{
    resource::Namespace,
    store::{Change, CommitError, Slice, Taken, Write},
    work::Target,
};

use super::{
    Subject,
    world::{LONG, World, complete, namespace, secret},
};

async fn second_namespace(world: &World) -> Namespace {
    let second = namespace("second", world.now().await);
    world.write(Write::Namespace(second.clone())).await;
    second
}

pub(super) async fn an_agents_name_is_unique_in_its_namespace(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let first = world.agent("triage").await;
    let at = world.now().await;
    let twin = Change::new().write(Write::Agent(world.draft("triage", at), None));
    assert_eq!(world.refused(twin).await, CommitError::NameTaken(Taken::Agent));
    // Names are compared as they are written, and renaming is checked as well.
    let mut other = world.agent("Triage").await;
    other.name = first.name;
    assert_eq!(
        world.refused(Change::new().write(Write::UpdateAgent(other))).await,
        CommitError::NameTaken(Taken::Agent)
    );
    let second = second_namespace(&world).await;
    let mut elsewhere = world.draft("triage", at);
    elsewhere.namespace_id = second.id;
    world.write(Write::Agent(elsewhere, None)).await;
}

pub(super) async fn a_secrets_name_is_unique_in_its_namespace(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let at = world.now().await;
    let twin = Change::new().write(Write::Secret(secret(world.namespace, world.secret.name.as_str(), at)));
    assert_eq!(world.refused(twin).await, CommitError::NameTaken(Taken::Secret));
    let second = second_namespace(&world).await;
    world
        .write(Write::Secret(secret(second.id, world.secret.name.as_str(), at)))
        .await;
}

pub(super) async fn a_namespaces_name_is_unique_in_the_installation(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let twin = Change::new().write(Write::Namespace(namespace("default", world.now().await)));
    assert_eq!(world.refused(twin).await, CommitError::NameTaken(Taken::Namespace));
    assert_eq!(world.store.namespaces(&Slice::ALL).await.expect("a read").len(), 1);
}

pub(super) async fn a_deleted_agents_name_is_free_again(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let target: Target = world.delete(agent.id).await;
    let twin = Change::new().write(Write::Agent(world.draft("triage", world.now().await), None));
    assert_eq!(world.refused(twin.clone()).await, CommitError::NameTaken(Taken::Agent));
    let claim = world.claim(LONG).await;
    assert_eq!(claim.target, target);
    let change = Change::new().write(Write::RemoveAgent(agent.id)).write(Write::Settle(
        claim.token,
        complete(occ_core::reason::Success::AgentDeleted),
    ));
    world.commit(change).await;
    world.commit(twin).await;
}

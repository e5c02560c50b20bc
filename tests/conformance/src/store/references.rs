//! Who refers to what, and that it is not deleted below them.

use std::sync::Arc;

use occ_core::{
    reason::Success,
    resource::{Agent, HarnessAuth, SecretBinding, SecretBindings, SecretDelivery},
    store::{Change, CommitError, Consumers, Expect, Slice, Write},
};

use super::{
    Subject,
    world::{LONG, World, complete, configuration, secret, source},
};

async fn consumers(world: &World) -> Consumers {
    world
        .store
        .secret_consumers(world.namespace, world.secret.id)
        .await
        .expect("a read")
}

async fn rebind(world: &World, agent: &Agent, auth: Option<HarnessAuth>) {
    let mut agent = world.read_agent(agent.id).await.expect("the Agent");
    agent.harness_auth = auth;
    world.write(Write::UpdateAgent(agent)).await;
}

/// A Secret is held by an Agent through its draft, its pending version and its selected one, one after the other.
pub(super) async fn a_secret_is_consumed_by_drafts_bindings_and_live_versions_only(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    assert!(consumers(&world).await.is_empty());
    let agent = world.agent("triage").await;
    assert_eq!(consumers(&world).await.agents, [agent.id]);

    let other = secret(world.namespace, "other", world.now().await);
    world.write(Write::Secret(other.clone())).await;
    rebind(&world, &agent, Some(HarnessAuth::ApiKey { source: source(&other) })).await;
    assert!(consumers(&world).await.is_empty());

    // The version that is admitted froze the first Secret, whatever the draft names now.
    let first = world.deploy(&agent).await;
    assert_eq!(consumers(&world).await.agents, [agent.id]);
    let claim = world.claim(LONG).await;
    assert_eq!(consumers(&world).await.agents, [agent.id]);
    world.select(&first).await;
    world.settle(&claim, complete(Success::RevisionActivated)).await;
    assert_eq!(consumers(&world).await.agents, [agent.id]);
    assert_eq!(
        world
            .refused(Change::new().expect(Expect::SecretUnreferenced(world.secret.id)))
            .await,
        CommitError::Conflict(Expect::SecretUnreferenced(world.secret.id))
    );

    // History that is neither selected nor pending holds nothing.
    world.write(Write::ActiveRevision(agent.id, None)).await;
    assert!(consumers(&world).await.is_empty());
    world
        .commit(Change::new().expect(Expect::SecretUnreferenced(world.secret.id)))
        .await;

    let binding = SecretBinding {
        source: source(&world.secret),
        delivery: SecretDelivery::Env,
    };
    let names = ["A_TOKEN", "B_TOKEN"].map(|name| name.to_owned().try_into().expect("an environment name"));
    let bound = names.map(|name| (name, binding.clone()));
    let mut row = configuration(world.namespace, SecretBindings::from(bound), world.now().await);
    world.write(Write::Configuration(row.clone())).await;
    assert_eq!(consumers(&world).await.configurations, [row.id]);
    row.secret_bindings.clear();
    row.generation += 1;
    world.write(Write::UpdateConfiguration(row)).await;
    assert!(consumers(&world).await.is_empty());
}

pub(super) async fn a_configuration_is_consumed_by_its_agents(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let of = async || {
        world
            .store
            .configuration_consumers(world.namespace, world.configuration.id)
            .await
    };
    assert_eq!(of().await, Ok(vec![]));
    let agent = world.agent("triage").await;
    assert_eq!(of().await, Ok(vec![agent.id]));
    let spare = configuration(world.namespace, SecretBindings::new(), world.now().await);
    let mut moved = agent.clone();
    moved.configuration_id = spare.id;
    world
        .commit(
            Change::new()
                .write(Write::Configuration(spare))
                .write(Write::UpdateAgent(moved)),
        )
        .await;
    assert_eq!(of().await, Ok(vec![]));
    world.write(Write::DeleteConfiguration(world.configuration.id)).await;
    assert_eq!(
        world.store.configuration(world.namespace, world.configuration.id).await,
        Ok(None)
    );
}

/// The engine expects that nobody refers to it; where it forgot to, the store refuses all the same.
pub(super) async fn what_is_referred_to_is_not_deleted(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    world.agent("triage").await;
    let deletions = [
        Write::DeleteSecret(world.secret.id),
        Write::DeleteConfiguration(world.configuration.id),
    ];
    for write in deletions {
        assert_eq!(world.refused(Change::new().write(write)).await, CommitError::Refused);
    }
    assert_eq!(
        world
            .store
            .secrets(world.namespace, &Slice::ALL)
            .await
            .expect("a read")
            .len(),
        1
    );
    assert_eq!(
        world
            .store
            .configurations(world.namespace, &Slice::ALL)
            .await
            .expect("a read")
            .len(),
        1
    );
}

pub(super) async fn a_namespace_lists_what_it_owns(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let contents = world
        .store
        .namespace_contents(world.namespace, 10)
        .await
        .expect("a read");
    let expected = [
        ("agent", agent.id.to_string()),
        ("configuration", world.configuration.id.to_string()),
        ("secret", world.secret.id.to_string()),
    ];
    assert_eq!(contents, expected);
    assert_eq!(
        world
            .store
            .namespace_contents(world.namespace, 2)
            .await
            .expect("a read")
            .len(),
        2
    );
}

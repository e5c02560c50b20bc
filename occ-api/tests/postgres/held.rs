//! Somebody else holds the row of an Agent.

use std::{sync::Arc, time::Duration};

use occ_core::store::postgres::PostgresStore;
use occ_test_support::{drivers::World, postgres::Database};
use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinSet;

/// More than are asked of the database at once.
const OTHERS: usize = 6;

/// For a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// What waits for that row waits alone: the deployments that came at once with it are admitted.
pub async fn a_deployment_that_waits_for_its_agent_keeps_no_other_waiting() {
    let database = Database::fresh().await;
    let store = PostgresStore::open(&database.settings().with_query_timeout(PATIENCE))
        .await
        .expect("the store opens");
    let world = Arc::new(World::builder().store(Arc::new(store)).build().await);
    let mut agents = Vec::new();
    for number in 0..=OTHERS {
        let agent = world.deployable(&format!("agent-{number}")).await.id;
        // The first one makes the Agent's credentials, in a commit of its own.
        world
            .plane
            .deploy_agent(&world.admin, world.namespace, agent)
            .await
            .expect("a deployable Agent");
        agents.push(agent);
    }
    let held = agents[0];
    let mut elsewhere = PgConnection::connect(&database.url()).await.expect("a connection");
    let mut holding = elsewhere.begin().await.expect("a transaction");
    sqlx::query("SELECT 1 FROM occ.agents WHERE id = $1 FOR UPDATE")
        .bind(held.to_string())
        .execute(&mut *holding)
        .await
        .expect("the row");

    let mut deployed = JoinSet::new();
    for agent in agents {
        let world = Arc::clone(&world);
        deployed.spawn(async move {
            let admitted = world.plane.deploy_agent(&world.admin, world.namespace, agent).await;
            (agent, admitted.map(drop))
        });
    }
    let next = async |deployed: &mut JoinSet<_>| {
        let next = tokio::time::timeout(PATIENCE, deployed.join_next()).await;
        next.expect("in time").expect("one more").expect("no panic")
    };
    for _ in 0..OTHERS {
        let (agent, admitted) = next(&mut deployed).await;
        assert_eq!(admitted, Ok(()));
        assert_ne!(agent, held, "its row is held");
    }
    holding.rollback().await.expect("it lets go");
    assert_eq!(next(&mut deployed).await, (held, Ok(())));
}

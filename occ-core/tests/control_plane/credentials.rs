//! Credentials that the Compute makes for an Agent: when, and for whom.

use occ_core::{
    driver::{Action, ResourceKind},
    reason::ApiCode,
};
use occ_test_support::drivers::{NullCompute, World};

use crate::people::{operator, person};

#[tokio::test]
async fn lost_credentials_block_a_deployment_after_the_first() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    world.compute.lose_credentials(agent.id);
    let refusal = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::ResourceConflict);
    assert!(!world.compute.has_credentials(agent.id), "they are never made anew");
}

#[tokio::test]
async fn making_credentials_needs_read_and_operate_of_the_agent() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let deployer = person(
        &world,
        &[
            (Action::Deploy, ResourceKind::Agent),
            (Action::Read, ResourceKind::Configuration),
            (Action::Operate, ResourceKind::Secret),
        ],
    )
    .await;
    let refusal = world
        .plane
        .deploy_agent(&deployer, world.namespace, agent.id)
        .await
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::Forbidden);
    let operator = operator(&world).await;
    world
        .plane
        .deploy_agent(&operator, world.namespace, agent.id)
        .await
        .unwrap();
    assert!(
        world
            .plane
            .deploy_agent(&deployer, world.namespace, agent.id)
            .await
            .is_ok(),
        "they exist now"
    );
}

#[tokio::test]
async fn a_compute_that_generates_no_credentials_is_not_asked_for_any() {
    let world = World::builder()
        .compute(NullCompute::default().without_credentials())
        .build()
        .await;
    let agent = world.deployable("triage").await;
    world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await
        .unwrap();
    assert!(world.compute.calls().is_empty());
}

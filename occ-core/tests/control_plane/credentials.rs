//! Credentials that the Compute makes for an Agent: when, for whom, and taken back.

use occ_core::{
    driver::{Action, Fault, FaultKind, ResourceKind},
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

/// A deletion that began meanwhile may have looked for credentials before these were there.
#[tokio::test]
async fn credentials_that_a_deletion_overtook_are_taken_back() {
    let world = World::new().await;
    for by_hand in [false, true] {
        let agent = world.deployable(if by_hand { "by-hand" } else { "deployed" }).await.id;
        let (plane, admin, namespace) = (world.plane.clone(), world.admin.clone(), world.namespace);
        world.compute.provision_credentials.during(move |_| async move {
            plane.delete_agent(&admin, namespace, agent).await.expect("the Agent");
            Ok(())
        });
        let refusal = if by_hand {
            let answer = world
                .plane
                .provision_runtime_credentials(&world.admin, world.namespace, agent);
            answer.await.expect_err("the Agent is being deleted")
        } else {
            let answer = world.plane.deploy_agent(&world.admin, world.namespace, agent);
            answer.await.expect_err("the Agent is being deleted")
        };
        assert_eq!(refusal.code(), ApiCode::AgentDeleting);
        assert!(!world.compute.has_credentials(agent));
    }
}

/// What refuses the deployment is in the way of taking the credentials back, too.
#[tokio::test]
async fn credentials_that_a_deletion_overtook_are_taken_back_once_that_is_possible() {
    let world = World::new().await;
    let agent = world.deployable("triage").await.id;
    let (plane, admin, namespace) = (world.plane.clone(), world.admin.clone(), world.namespace);
    world.compute.provision_credentials.during(move |_| async move {
        plane.delete_agent(&admin, namespace, agent).await.expect("the Agent");
        Ok(())
    });
    for _ in 0..2 {
        world
            .compute
            .delete_credentials
            .next(Err(Fault::new("reach the runtime", FaultKind::Unavailable).into()));
    }
    let refusal = world.plane.deploy_agent(&world.admin, namespace, agent).await;
    assert_eq!(
        refusal.expect_err("the Agent is being deleted").code(),
        ApiCode::AgentDeleting
    );
    assert!(!world.compute.has_credentials(agent));
}

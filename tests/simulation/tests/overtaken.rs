//! Deletions that overtake what was begun: credentials that the Compute is generating, and tokens that a provider is issuing, in virtual time.

use std::{sync::Arc, time::Duration};

use occ_core::{
    control::CreateServiceAccount,
    driver::EffectError,
    id::{AgentId, ServiceAccountId},
    reason::{ApiCode, Pending},
    store::{Store, WorkState},
    work::{Policy, Target},
    worker::{Worker, WorkerHandle},
};
use occ_simulation::memory::MemoryStore;
use occ_test_support::drivers::{IssuingAccounts, NullCompute, OutsideSecrets, World};

/// More than what was begun may take.
const LATE: Duration = Duration::from_secs(75);

async fn world() -> Arc<World> {
    let store = Arc::new(MemoryStore::default());
    Arc::new(World::builder().store(store).build().await)
}

fn work(world: &World) -> WorkerHandle {
    let store = Arc::clone(&world.store) as Arc<dyn Store>;
    Worker::new(store, Arc::clone(&world.drivers), Policy::default()).start()
}

async fn delete(world: &World, agent: AgentId) {
    let deleted = world.plane.delete_agent(&world.admin, world.namespace, agent).await;
    deleted.expect("the Agent");
}

async fn exists(world: &World, agent: AgentId) -> bool {
    let row = world.store.agent(world.namespace, agent).await;
    row.expect("a store that answers").is_some()
}

/// Why the deletion waits.
async fn waits_for(world: &World, agent: AgentId) -> Option<Pending> {
    let target = Target::AgentDeleted {
        namespace: world.namespace,
        agent,
    };
    match world
        .store
        .work_state(&target.key())
        .await
        .expect("a store that answers")
    {
        Some(WorkState::Queued {
            last_attempt: Some(last),
            ..
        }) => Some(last.code),
        _ => None,
    }
}

/// A deletion that looked for credentials before they were there would leave them behind.
#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_credentials_that_are_being_generated() {
    for by_hand in [false, true] {
        let world = world().await;
        let agent = world.deployable("triage").await.id;
        let during = Arc::clone(&world);
        world.compute.provision_credentials.during(move |_| async move {
            delete(&during, agent).await;
            let worker = work(&during);
            tokio::time::sleep(Duration::from_secs(20)).await;
            assert_eq!(
                waits_for(&during, agent).await,
                Some(Pending::ProvisioningEffectPending)
            );
            worker.shutdown().await;
            Ok(())
        });
        let (plane, admin, namespace) = (&world.plane, &world.admin, world.namespace);
        let refusal = if by_hand {
            let answer = plane.provision_runtime_credentials(admin, namespace, agent).await;
            answer.expect_err("the Agent is being deleted")
        } else {
            let answer = plane.deploy_agent(admin, namespace, agent).await;
            answer.expect_err("the Agent is being deleted")
        };
        assert_eq!(refusal.code(), ApiCode::AgentDeleting);
        assert!(world.compute.has_credentials(agent), "they came");
        let worker = work(&world);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(!exists(&world, agent).await, "nothing is waited for any more");
        assert!(!world.compute.has_credentials(agent));
        worker.shutdown().await;
    }
}

/// Whether it ended is not known: the process that asked is gone, or the call was cut off.
#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_credentials_that_may_come_late_and_no_longer() {
    for killed in [false, true] {
        let world = world().await;
        let agent = world.deployable("triage").await.id;
        if killed {
            world.compute.provision_credentials.during(|_| std::future::pending());
        } else {
            world
                .compute
                .provision_credentials
                .next(Err(EffectError::UnknownOutcome));
        }
        let deploying = Arc::clone(&world);
        let deploying = tokio::spawn(async move {
            let (plane, admin) = (&deploying.plane, &deploying.admin);
            plane.deploy_agent(admin, deploying.namespace, agent).await
        });
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(deploying.is_finished(), !killed);
        deploying.abort();
        delete(&world, agent).await;
        let worker = work(&world);
        tokio::time::sleep(Duration::from_secs(50)).await;
        assert_eq!(waits_for(&world, agent).await, Some(Pending::ProvisioningEffectPending));
        // What was cut off takes effect after all.
        world.compute.find_credentials(agent);
        tokio::time::sleep(LATE).await;
        assert!(!exists(&world, agent).await);
        assert!(!world.compute.has_credentials(agent));
        worker.shutdown().await;
    }
}

/// An account with a provider that issues tokens.
async fn account(provider: &Arc<IssuingAccounts>, vault: &Arc<OutsideSecrets>) -> (Arc<World>, ServiceAccountId) {
    let world = World::builder()
        .compute(NullCompute::default())
        .store(Arc::new(MemoryStore::default()))
        .secret(Arc::clone(vault) as _)
        .service_account(Arc::clone(provider) as _)
        .build()
        .await;
    let input = CreateServiceAccount {
        name: "shared".parse().expect("a name"),
        credential: None,
    };
    let created = world.plane.create_service_account(&world.admin, world.namespace, input);
    let id = created.await.expect("an account").id;
    (Arc::new(world), id)
}

#[tokio::test(start_paused = true)]
async fn an_account_is_not_deleted_while_a_token_may_still_come() {
    for killed in [false, true] {
        let provider = Arc::new(IssuingAccounts::named("accounts"));
        let vault = Arc::new(OutsideSecrets::named("vault"));
        let (world, id) = account(&provider, &vault).await;
        if killed {
            provider.issue.during(|_| std::future::pending());
        } else {
            provider.issue.next(Err(EffectError::UnknownOutcome));
        }
        let issuing = Arc::clone(&world);
        let issuing = tokio::spawn(async move {
            let (plane, admin) = (&issuing.plane, &issuing.admin);
            plane.issue_account_credential(admin, issuing.namespace, id).await
        });
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(issuing.is_finished(), !killed);
        issuing.abort();
        let delete = || world.plane.delete_service_account(&world.admin, world.namespace, id);
        let refusal = delete().await.expect_err("a token may come");
        assert_eq!(refusal.code(), ApiCode::DependencyUnavailable);
        assert!(provider.tokens(id).is_some(), "nothing was deleted");
        tokio::time::sleep(LATE).await;
        delete().await.expect("no token can come");
        assert_eq!(provider.tokens(id), None);
        assert!(vault.is_empty());
    }
}

/// The one who began the token ends it, also under a deletion that came meanwhile, which then waits no longer.
#[tokio::test(start_paused = true)]
async fn a_token_that_a_deletion_overtook_is_ended_and_then_the_account_goes() {
    let provider = Arc::new(IssuingAccounts::named("accounts"));
    let vault = Arc::new(OutsideSecrets::named("vault"));
    let (world, id) = account(&provider, &vault).await;
    let during = Arc::clone(&world);
    provider.issued.during(move |_| async move {
        let deleted = during
            .plane
            .delete_service_account(&during.admin, during.namespace, id)
            .await;
        let refusal = deleted.expect_err("a token is under way");
        assert_eq!(refusal.code(), ApiCode::DependencyUnavailable);
        Ok(())
    });
    let issued = world
        .plane
        .issue_account_credential(&world.admin, world.namespace, id)
        .await;
    assert_eq!(
        issued.expect_err("the account is being deleted").code(),
        ApiCode::ResourceConflict
    );
    assert_eq!(provider.tokens(id), Some(Vec::new()));
    let deleted = world
        .plane
        .delete_service_account(&world.admin, world.namespace, id)
        .await;
    deleted.expect("no token can come");
    assert_eq!(provider.tokens(id), None);
    assert!(vault.is_empty());
}

//! What is over and old is removed, and nothing else (docs/adr/0011).

use std::{sync::Arc, time::Duration};

use occ_core::{
    audit::chain,
    reason::{Failure, Success},
    resource::{Agent, AgentRevision},
    retention::{Pruned, Retention},
    store::{Change, Write},
    work::{FailureData, Target, Transition},
};

use super::{
    Subject,
    world::{LONG, World, complete, principal, until},
};

const NOW: Duration = Duration::ZERO;
const HOUR: Duration = Duration::from_hours(1);

impl World {
    fn stop(&self, agent: &Agent, number: u128) -> Target {
        Target::AgentStopped {
            namespace: self.namespace,
            agent: agent.id,
            operation: uuid::Uuid::from_u128(number),
        }
    }

    pub(super) fn withdrawal(&self, revision: &AgentRevision) -> Target {
        Target::CredentialsWithdrawn {
            namespace: self.namespace,
            agent: revision.agent_id,
            revision: revision.id,
            operation: uuid::Uuid::from_u128(9),
        }
    }

    async fn enqueue(&self, target: Target) {
        self.write(Write::Enqueue(self.work(target))).await;
    }

    async fn exists(&self, target: &Target) -> bool {
        self.store.work_state(&target.key()).await.expect("a read").is_some()
    }

    /// Waits until what happened is older than the present.
    async fn pass_time(&self) {
        let then = self.now().await;
        until("the next millisecond", async || (self.now().await > then).then_some(())).await;
    }

    async fn seal_all(&self) {
        while self.store.seal_audit(500).await.expect("a sealing") > 0 {}
    }

    /// Follows the chain as a verification does. Returns the positions that it covers.
    async fn verified(&self) -> Vec<u64> {
        let installation = self
            .store
            .installation()
            .await
            .expect("a read")
            .expect("the Installation");
        let anchor = self.store.audit_anchor().await.expect("a read");
        let (mut position, mut head) =
            anchor.map_or_else(|| (0, chain::root(installation.id)), |seal| (seal.position, seal.hash));
        let mut covered = Vec::new();
        for record in self.store.sealed_audit(position, 1000).await.expect("a read") {
            position += 1;
            head = chain::link(&head, position, record.occurred_at, &record.event);
            let seal = record.seal.expect("its seal");
            assert_eq!((seal.position, &seal.hash), (position, &head));
            covered.push(position);
        }
        covered
    }

    async fn record(&self, count: usize) {
        for _ in 0..count {
            self.commit(Change::new().audit(self.event("something"))).await;
        }
        self.pass_time().await;
    }
}

pub(super) async fn work_that_nothing_reads_is_removed_and_the_rest_stays(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let revision = world.deploy(&agent).await;
    let deployment = world.deployment(&revision);
    world
        .settle(&world.claim(LONG).await, complete(Success::RevisionActivated))
        .await;
    let look = |bucket| Target::Maintenance {
        namespace: world.namespace,
        agent: agent.id,
        revision: revision.id,
        bucket,
    };
    let fail = Transition::Fail {
        failure: Failure::RuntimeStartupFailed,
        data: FailureData::default(),
    };
    let ended = [look(1), look(2), world.stop(&agent, 1), world.withdrawal(&revision)];
    for target in ended {
        world.enqueue(target).await;
        let claim = world.claim(LONG).await;
        assert_eq!(claim.target, target);
        let settled = if target == look(2) {
            fail.clone()
        } else {
            complete(Success::AgentStopped)
        };
        world.settle(&claim, settled).await;
        world.pass_time().await;
    }
    let ready = Target::NamespaceReady {
        namespace: world.namespace,
    };
    world.enqueue(ready).await;
    world
        .settle(&world.claim(LONG).await, complete(Success::NamespaceReconciled))
        .await;
    // A deletion that failed may be repeated.
    let failing = world.agent("failing").await;
    let deletion = world.delete(failing.id).await;
    world.settle(&world.claim(LONG).await, fail).await;
    world.enqueue(world.stop(&agent, 2)).await;
    let claimed = world.claim(LONG).await;
    world.enqueue(look(3)).await;
    world.pass_time().await;

    assert_eq!(world.store.prunable_work(HOUR).await, Ok(0), "nothing is so old");
    assert_eq!(world.store.prune_work(HOUR, 100).await, Ok(0));
    assert_eq!(world.store.prunable_work(NOW).await, Ok(4));
    assert_eq!(
        world.store.prune_work(NOW, 2).await,
        Ok(2),
        "no more than was asked for"
    );
    assert!(
        !world.exists(&ended[0]).await && !world.exists(&ended[1]).await,
        "the oldest first"
    );
    assert!(world.exists(&ended[2]).await && world.exists(&ended[3]).await);
    assert_eq!(world.store.prune_work(NOW, 3).await, Ok(2));
    assert_eq!(world.store.prune_work(NOW, 2).await, Ok(0));
    assert_eq!(world.store.prunable_work(NOW).await, Ok(0));
    for target in [deployment, ready, deletion, claimed.target, look(3)] {
        assert!(world.exists(&target).await, "{}", target.key());
    }
    world.settle(&claimed, complete(Success::AgentStopped)).await;
    let read = world.store.deployment(world.namespace, agent.id, revision.id).await;
    assert!(read.expect("a read").expect("the version").work.is_some());
}

pub(super) async fn the_work_of_what_was_removed_goes_too(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let deletion = world.delete(agent.id).await;
    let claim = world.claim(LONG).await;
    let change = Change::new()
        .write(Write::RemoveAgent(agent.id))
        .write(Write::Settle(claim.token, complete(Success::AgentDeleted)));
    world.commit(change).await;
    world.pass_time().await;
    assert!(world.exists(&deletion).await);
    assert_eq!(world.store.prune_work(NOW, 10).await, Ok(1));
    assert!(!world.exists(&deletion).await);
}

pub(super) async fn the_chain_of_the_audit_is_followed_from_where_it_was_pruned(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    world.record(6).await;
    assert_eq!(world.store.prunable_audit(NOW).await, Ok(0), "nothing is sealed yet");
    world.seal_all().await;
    assert_eq!(world.verified().await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(world.store.prunable_audit(HOUR).await, Ok(0), "nothing is so old");
    assert_eq!(world.store.prune_audit(HOUR, 100).await, Ok(0));
    assert_eq!(world.store.audit_anchor().await, Ok(None));
    // Unsealed records are not among them, nor is the head of the chain.
    world.record(2).await;
    assert_eq!(world.store.prunable_audit(NOW).await, Ok(5));
    assert_eq!(world.store.prune_audit(NOW, 2).await, Ok(2));
    assert_eq!(world.verified().await, [3, 4, 5, 6]);
    assert_eq!(world.store.prunable_audit(NOW).await, Ok(3));
    assert_eq!(world.store.prune_audit(NOW, 100).await, Ok(3));
    assert_eq!(world.store.prune_audit(NOW, 100).await, Ok(0));
    assert_eq!(world.audit().await.len(), 3);
    // It goes on, and so does the pruning.
    world.seal_all().await;
    assert_eq!(world.verified().await, [6, 7, 8]);
    assert_eq!(world.store.prune_audit(NOW, 100).await, Ok(2));
    world.record(1).await;
    world.seal_all().await;
    assert_eq!(world.verified().await, [8, 9]);
    let anchor = world.store.audit_anchor().await.expect("a read").expect("an anchor");
    assert_eq!(anchor.position, 7);
}

pub(super) async fn a_pruning_is_recorded_and_goes_on_in_batches_beside_live_work(subject: Arc<dyn Subject>) {
    let world = World::new(Arc::clone(&subject)).await;
    let agent = world.agent("triage").await;
    for number in 0..20 {
        world.enqueue(world.stop(&agent, number)).await;
        world
            .settle(&world.claim(LONG).await, complete(Success::AgentAlreadyStopped))
            .await;
    }
    let other = world.agent("other").await;
    let revision = world.deploy(&other).await;
    world.seal_all().await;
    world.pass_time().await;
    let policy = Retention {
        work: Some(NOW),
        audit: Some(NOW),
    };
    let second = subject.second().await;
    let due = policy.due(&*second).await.expect("a look");
    assert_eq!((due.work, due.audit.is_some_and(|count| count >= 19)), (Some(20), true));
    assert_eq!(policy.due(&*second).await, Ok(due), "a look changes nothing");
    let host = principal("host");
    let pruning = tokio::spawn(async move { policy.apply(&*second, &host).await });
    let claim = world.claim(LONG).await;
    world.settle(&claim, complete(Success::RevisionActivated)).await;
    let pruned = pruning.await.expect("no panic").expect("a pruning");
    assert!(pruned.work == Some(20) && pruned.audit >= due.audit, "{pruned:?}");
    let read = world.store.deployment(world.namespace, other.id, revision.id).await;
    assert!(read.expect("a read").expect("the version").work.is_some());
    let audit = world.audit().await;
    let event = |action: &str| {
        audit
            .iter()
            .find(|event| event.action == action)
            .map(|event| event.details.clone())
    };
    assert!(event("openclaw.audit.prune").is_some(), "{audit:?}");
    world.seal_all().await;
    world.verified().await;
    // What is kept for good is not looked at.
    let nothing = Retention::default().apply(&*world.store, &principal("host")).await;
    assert_eq!(nothing, Ok(Pruned::default()));
}

//! A change is one transaction: checked, written, staged and audited whole, or not at all.

use std::sync::Arc;

use occ_core::{
    driver::StateWrite,
    iam::Role,
    id::{AgentId, ConfigurationId, CredentialSourceId, InstallationId, NamespaceId, SecretId},
    resource::{
        Agent, AgentCredentialSource, AgentStatus, DesiredRuntimeState, Installation, NamespaceStatus, SecretBinding,
        SecretBindings, SecretDelivery, WorkspaceFileName, WorkspaceFiles, WorkspaceSetup,
    },
    store::{Change, CommitError, Expect, Slice, Taken, Write},
    work::{ClaimToken, Target},
};
use uuid::Uuid;

use super::{
    Subject,
    world::{LONG, World, configuration, secret, source, written},
};

pub(super) async fn an_installation_exists_once(subject: Arc<dyn Subject>) {
    let store = subject.store();
    assert_eq!(store.installation().await, Ok(None));
    let world = World::new(subject).await;
    let first = store.installation().await.expect("a read").expect("the Installation");
    let again = Installation {
        id: InstallationId::random(),
        ..first.clone()
    };
    let change = Change::new()
        .expect(Expect::NoInstallation)
        .write(Write::Installation(again.clone()));
    assert_eq!(
        world.refused(change).await,
        CommitError::Conflict(Expect::NoInstallation)
    );
    assert_eq!(
        world.refused(Change::new().write(Write::Installation(again))).await,
        CommitError::Refused
    );
    assert_eq!(store.installation().await, Ok(Some(first)));
}

pub(super) async fn what_is_written_reads_back(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let (store, at) = (&world.store, world.now().await);
    let row = store
        .namespace(world.namespace)
        .await
        .expect("a read")
        .expect("the Namespace");
    assert_eq!(
        (row.version, row.namespace.status, row.namespace.name.as_str()),
        (1, NamespaceStatus::Ready, "default")
    );
    assert_eq!(store.namespaces(&Slice::ALL).await.expect("a read"), [row]);
    assert_eq!(
        store.secrets(world.namespace, &Slice::ALL).await.expect("a read"),
        std::slice::from_ref(&world.secret)
    );
    assert_eq!(
        store.secret(world.namespace, world.secret.id).await.expect("a read"),
        Some(world.secret.clone())
    );

    let binding = SecretBinding {
        source: source(&world.secret),
        delivery: SecretDelivery::Env,
    };
    let name = "SLACK_TOKEN".to_owned().try_into().expect("an environment name");
    let bound = configuration(world.namespace, SecretBindings::from([(name, binding)]), at);
    world.write(Write::Configuration(bound.clone())).await;
    assert_eq!(
        store.configuration(world.namespace, bound.id).await.expect("a read"),
        Some(bound.clone())
    );
    assert_eq!(
        store
            .configurations(world.namespace, &Slice::ALL)
            .await
            .expect("a read")
            .len(),
        2
    );

    let agent = world.draft("Ticket triage ✓", at);
    let files = WorkspaceFiles([(WorkspaceFileName::Agents, "Answer.\n".to_owned())].into());
    let setup = WorkspaceSetup {
        id: Uuid::new_v4(),
        defaults_id: Some("a".repeat(64)),
        files: Some(files),
    };
    world.write(Write::Agent(agent.clone(), Some(setup.clone()))).await;
    let rows = store.agents(world.namespace).await.expect("a read");
    assert_eq!(rows.iter().map(|row| &row.agent).collect::<Vec<_>>(), [&agent]);
    let selection =
        serde_json::json!({ "calendar@curated": { "enabled": true, "tools": { "write": { "enabled": false } } } });
    let plugged = Agent {
        plugins: serde_json::from_value(selection).expect("a selection"),
        plugin_approvers: Some(Vec::new()),
        credential_sources: vec![AgentCredentialSource {
            source_id: CredentialSourceId::random(),
        }],
        ..agent.clone()
    };
    for changed in [plugged, agent.clone()] {
        world.write(Write::UpdateAgent(changed.clone())).await;
        let row = store.agent(world.namespace, agent.id).await.expect("a read");
        assert_eq!(row.map(|row| row.agent), Some(changed));
    }
    let stop = Target::AgentStopped {
        namespace: world.namespace,
        agent: agent.id,
        operation: Uuid::new_v4(),
    };
    assert_eq!(store.pass_read(&stop).await.expect("a read").setup, Some(setup));

    // Of another Namespace, or of none, is not there.
    let elsewhere = NamespaceId::random();
    assert_eq!(store.namespace(elsewhere).await, Ok(None));
    assert_eq!(store.secret(elsewhere, world.secret.id).await, Ok(None));
    assert_eq!(store.configuration(elsewhere, bound.id).await, Ok(None));
    assert_eq!(store.agent(elsewhere, agent.id).await, Ok(None));
}

/// For each expectation one that holds and one that does not; the second names itself and nothing is written.
pub(super) async fn each_expectation_holds_or_names_itself(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let revision = world.deploy(&agent).await;
    world.select(&revision).await;
    let claim = world.claim(LONG).await;
    let version = world.version(agent.id).await;
    let at = world.now().await;
    let unused = secret(world.namespace, "unused", at);
    let spare = configuration(world.namespace, SecretBindings::new(), at);
    let role = Role {
        id: "operators".to_owned(),
        namespace_id: None,
        permissions: Vec::new(),
    };
    let known = Expect::Role(role.id.clone());
    world
        .commit(
            Change::new()
                .write(Write::Secret(unused.clone()))
                .write(Write::Configuration(spare.clone()))
                .write(Write::Role(role)),
        )
        .await;
    let runtime = |active, desired| Expect::AgentRuntime {
        agent: agent.id,
        active,
        desired,
    };
    let (ns, key) = (world.namespace, claim.target.key());
    let pairs = [
        (
            Expect::ClaimHeld(claim.token),
            Expect::ClaimHeld(ClaimToken(Uuid::new_v4())),
        ),
        (Expect::Namespace(ns, 1), Expect::Namespace(ns, 2)),
        (Expect::Namespace(ns, 1), Expect::Namespace(NamespaceId::random(), 1)),
        (
            Expect::NamespaceStatus(ns, &[NamespaceStatus::Provisioning, NamespaceStatus::Ready]),
            Expect::NamespaceStatus(ns, &[NamespaceStatus::Provisioning, NamespaceStatus::Failed]),
        ),
        (Expect::Agent(agent.id, version), Expect::Agent(agent.id, version - 1)),
        (
            runtime(Some(revision.id), DesiredRuntimeState::Running),
            runtime(Some(revision.id), DesiredRuntimeState::Stopped),
        ),
        (
            runtime(Some(revision.id), DesiredRuntimeState::Running),
            runtime(None, DesiredRuntimeState::Running),
        ),
        (Expect::Configuration(spare.id, 1), Expect::Configuration(spare.id, 2)),
        (
            Expect::Configuration(spare.id, 1),
            Expect::Configuration(ConfigurationId::random(), 1),
        ),
        (Expect::Secret(unused.id, 1), Expect::Secret(unused.id, 2)),
        (Expect::Secret(unused.id, 1), Expect::Secret(SecretId::random(), 1)),
        (Expect::RevisionCount(agent.id, 1), Expect::RevisionCount(agent.id, 0)),
        (
            Expect::SecretUnreferenced(unused.id),
            Expect::SecretUnreferenced(world.secret.id),
        ),
        (
            Expect::ConfigurationUnreferenced(spare.id),
            Expect::ConfigurationUnreferenced(world.configuration.id),
        ),
        (
            Expect::NamespaceEmpty(NamespaceId::random()),
            Expect::NamespaceEmpty(ns),
        ),
        (
            Expect::WorkActor(key.clone(), world.actor.clone()),
            Expect::WorkActor(key.clone(), "other".parse().expect("an id")),
        ),
        (
            Expect::WorkActor("no such work".to_owned(), world.actor.clone()),
            Expect::WorkFailed(key),
        ),
        (Expect::Agent(agent.id, version), Expect::Agent(AgentId::random(), 1)),
        (Expect::Agent(agent.id, version), Expect::NoInstallation),
        (known, Expect::Role("nobody".to_owned())),
    ];
    for (holds, fails) in pairs {
        world
            .commit(Change::new().expect(holds.clone()).audit(world.event("holds")))
            .await;
        let events = world.audit().await.len();
        let change = Change::new()
            .expect(holds)
            .expect(fails.clone())
            .audit(world.event("fails"));
        assert_eq!(world.refused(change).await, CommitError::Conflict(fails));
        assert_eq!(world.audit().await.len(), events);
    }
}

/// Everything that a change can hold, with an expectation that fails.
pub(super) async fn a_conflict_leaves_nothing_of_the_change(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let change = everything(&world, &agent).await.expect(Expect::Agent(agent.id, 99));
    assert_eq!(
        world.refused(change).await,
        CommitError::Conflict(Expect::Agent(agent.id, 99))
    );
    assert_nothing(&world, agent.id).await;
    // The same change without it is a good one.
    world.commit(everything(&world, &agent).await).await;
}

pub(super) async fn a_write_that_fails_late_leaves_nothing_of_the_change(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let twin = world.draft("renamed", world.now().await);
    let change = everything(&world, &agent).await.write(Write::Agent(twin, None));
    assert_eq!(world.refused(change).await, CommitError::NameTaken(Taken::Agent));
    assert_nothing(&world, agent.id).await;
    // The store is as usable as before.
    world.commit(everything(&world, &agent).await).await;
}

async fn everything(world: &World, agent: &occ_core::resource::Agent) -> Change {
    let at = world.now().await;
    let revision = world.next_revision(agent, 1, at);
    let mut renamed = agent.clone();
    renamed.name = "renamed".parse().expect("a name");
    Change::new()
        .expect(Expect::NamespaceStatus(world.namespace, &[NamespaceStatus::Ready]))
        .write(Write::Secret(secret(world.namespace, "second", at)))
        .write(Write::UpdateAgent(renamed))
        .write(written(&revision))
        .write(Write::ActiveRevision(agent.id, Some(revision.id)))
        .write(Write::Enqueue(world.work(world.deployment(&revision))))
        .state(vec![put("key", None, b"value")])
        .audit(world.event("everything"))
}

async fn assert_nothing(world: &World, agent: AgentId) {
    let row = world
        .store
        .agent(world.namespace, agent)
        .await
        .expect("a read")
        .expect("the Agent");
    assert_eq!(
        (row.version, row.agent.name.as_str(), row.agent.active_revision_id),
        (1, "triage", None)
    );
    assert_eq!(
        world
            .store
            .secrets(world.namespace, &Slice::ALL)
            .await
            .expect("a read")
            .len(),
        1
    );
    assert_eq!(world.store.revisions(world.namespace, agent).await.expect("a read"), []);
    assert_eq!(world.store.next_due().await, Ok(None));
    assert_eq!(world.store.read(DRIVER, "key").await, Ok(None));
    assert_eq!(world.audit().await, []);
}

const DRIVER: &str = "secret/secret-local";

fn put(key: &str, expected: Option<u64>, value: &[u8]) -> StateWrite {
    StateWrite {
        driver: DRIVER.to_owned(),
        key: key.to_owned(),
        expected,
        value: Some(value.to_vec()),
    }
}

fn delete(key: &str, expected: Option<u64>) -> StateWrite {
    StateWrite {
        driver: DRIVER.to_owned(),
        key: key.to_owned(),
        expected,
        value: None,
    }
}

pub(super) async fn driver_records_commit_with_the_change_or_not_at_all(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let added = secret(world.namespace, "second", world.now().await);
    let with = |state| {
        Change::new()
            .write(Write::Secret(added.clone()))
            .state(state)
            .audit(world.event("create"))
    };
    // The first record is good, the second expects one that is not there: neither, and no Secret.
    let change = with(vec![put("a", None, b"1"), put("b", Some(7), b"1")]);
    assert_eq!(world.refused(change).await, CommitError::StateConflict);
    assert_eq!(world.store.read(DRIVER, "a").await, Ok(None));
    assert_eq!(world.store.secret(world.namespace, added.id).await, Ok(None));
    assert_eq!(world.audit().await, []);
    world
        .commit(with(vec![put("a", None, b"1"), put("b", None, b"2")]))
        .await;
    let entry = world
        .store
        .read(DRIVER, "b")
        .await
        .expect("a read")
        .expect("the record");
    assert_eq!((entry.value.as_slice(), entry.version), (b"2".as_slice(), 1));
    // Another driver's records are its own.
    assert_eq!(world.store.read("secret/other", "b").await, Ok(None));
}

pub(super) async fn driver_records_are_fenced_by_their_version(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let commit = async |write| world.store.commit(Change::new().state(vec![write])).await;
    assert_eq!(commit(put("a", None, b"1")).await, Ok(()));
    assert_eq!(commit(put("a", None, b"2")).await, Err(CommitError::StateConflict));
    assert_eq!(commit(put("a", Some(1), b"2")).await, Ok(()));
    assert_eq!(commit(put("a", Some(1), b"3")).await, Err(CommitError::StateConflict));
    assert_eq!(commit(delete("a", Some(1))).await, Err(CommitError::StateConflict));
    assert_eq!(commit(delete("a", None)).await, Err(CommitError::StateConflict));
    let entry = world
        .store
        .read(DRIVER, "a")
        .await
        .expect("a read")
        .expect("the record");
    assert_eq!((entry.value.as_slice(), entry.version), (b"2".as_slice(), 2));
    assert_eq!(commit(delete("a", Some(2))).await, Ok(()));
    assert_eq!(world.store.read(DRIVER, "a").await, Ok(None));
}

pub(super) async fn an_update_of_something_absent_is_refused(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let at = world.now().await;
    let absent = [
        Write::UpdateAgent(world.draft("ghost", at)),
        Write::ActiveRevision(AgentId::random(), None),
        Write::AgentState {
            id: AgentId::random(),
            desired: DesiredRuntimeState::Stopped,
            status: AgentStatus::Active,
        },
        Write::UpdateSecret(secret(world.namespace, "ghost", at)),
        Write::UpdateConfiguration(configuration(world.namespace, SecretBindings::new(), at)),
        Write::DeleteSecret(SecretId::random()),
        Write::DeleteConfiguration(ConfigurationId::random()),
        Write::RemoveAgent(AgentId::random()),
        Write::NamespaceTombstone(NamespaceId::random()),
    ];
    for write in absent {
        let change = Change::new().audit(world.event("never")).write(write.clone());
        assert_eq!(world.refused(change).await, CommitError::Refused, "{write:?}");
    }
    assert_eq!(world.audit().await, []);
}

/// What the owner asks of an Agent's runtime touches nothing else of its row.
pub(super) async fn what_an_owner_asks_is_written_without_the_settings(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let before = world.version(agent.id).await;
    let deleting = Write::AgentState {
        id: agent.id,
        desired: DesiredRuntimeState::Stopped,
        status: AgentStatus::Deleting,
    };
    world.write(deleting).await;
    let row = world.store.agent(world.namespace, agent.id).await;
    let row = row.expect("a read").expect("the Agent");
    assert_eq!(row.version, before + 1);
    let asked = Agent {
        desired_runtime_state: DesiredRuntimeState::Stopped,
        status: AgentStatus::Deleting,
        ..agent
    };
    assert_eq!(row.agent, asked);
}

pub(super) async fn an_event_is_recorded_once(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let event = world
        .event("openclaw.agents.create")
        .because("SOME_CODE")
        .with("count", 2);
    world.commit(Change::new().audit(event.clone())).await;
    let [recorded] = &world.audit().await[..] else {
        panic!("one event")
    };
    assert_eq!((&recorded.id, &recorded.action), (&event.id.to_string(), &event.action));
    assert_eq!(
        (recorded.outcome.as_str(), recorded.reason_code.as_deref()),
        ("success", Some("SOME_CODE"))
    );
    assert_eq!(recorded.details, event.details);
    assert_eq!(world.refused(Change::new().audit(event)).await, CommitError::Refused);
    assert_eq!(world.audit().await.len(), 1);
}

/// Ten admissions that read the same moment: one commits, and the others are told what changed.
pub(super) async fn concurrent_changes_of_one_agent_let_one_through(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let version = world.version(agent.id).await;
    let at = world.now().await;
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let revision = world.next_revision(&agent, 1, at);
            let change = Change::new()
                .expect(Expect::Agent(agent.id, version))
                .expect(Expect::RevisionCount(agent.id, 0))
                .write(written(&revision))
                .write(Write::UpdateAgent(agent.clone()))
                .write(Write::Enqueue(world.work(world.deployment(&revision))));
            let store = Arc::clone(&world.store);
            tokio::spawn(async move { store.commit(change).await })
        })
        .collect();
    let mut committed = 0;
    for task in tasks {
        match task.await.expect("no panic") {
            Ok(()) => committed += 1,
            Err(error) => assert_eq!(error, CommitError::Conflict(Expect::Agent(agent.id, version))),
        }
    }
    assert_eq!(committed, 1);
    assert_eq!(
        world
            .store
            .revisions(world.namespace, agent.id)
            .await
            .expect("a read")
            .len(),
        1
    );
}

/// Agent before Namespace in one place and after it in another once ended in deadlocks: the store has one order of its own.
pub(super) async fn changes_that_expect_the_same_in_any_order_do_not_wait_in_a_circle(subject: Arc<dyn Subject>) {
    let world = World::new(Arc::clone(&subject)).await;
    let agents = [world.agent("one").await, world.agent("two").await];
    let statuses: &[NamespaceStatus] = &[NamespaceStatus::Ready];
    let status = |id| Write::NamespaceStatus {
        id,
        status: NamespaceStatus::Ready,
        deletion_actor: None,
    };
    let mut expects: Vec<_> = agents.iter().map(|agent| Expect::RevisionCount(agent.id, 0)).collect();
    expects.push(Expect::NamespaceStatus(world.namespace, statuses));
    let mut writes: Vec<_> = agents.iter().cloned().map(Write::UpdateAgent).collect();
    writes.push(status(world.namespace));
    let there = Change {
        expect: expects.clone(),
        writes: writes.clone(),
        ..Change::new()
    };
    expects.reverse();
    writes.reverse();
    let back = Change {
        expect: expects,
        writes,
        ..Change::new()
    };
    let stores = [Arc::clone(&world.store), subject.second().await];
    let tasks: Vec<_> = [there, back]
        .into_iter()
        .zip(stores)
        .map(|(change, store)| {
            tokio::spawn(async move {
                for _ in 0..30 {
                    assert_eq!(store.commit(change.clone()).await, Ok(()));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("every change commits");
    }
}

//! Versions never change, and reads of one moment hold what admission and a pass need.

use std::sync::Arc;

use occ_core::{
    reason::{Failure, Success},
    resource::{
        DesiredRuntimeState, SecretBinding, SecretBindings, SecretDelivery, WorkspaceFileName, WorkspaceFiles,
        WorkspaceSetup,
    },
    revision,
    store::{Change, CommitError, DeployQuery, WorkState, Write},
    work::{FailureData, NewWork, Target, Transition},
};
use uuid::Uuid;

use super::{
    Subject,
    world::{LONG, World, complete, configuration, secret, source, until, written},
};

pub(super) async fn versions_are_numbered_without_gaps(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let at = world.now().await;
    for (number, good) in [(2, false), (1, true), (1, false), (3, false), (2, true)] {
        let result = world
            .store
            .commit(Change::new().write(written(&world.next_revision(&agent, number, at))))
            .await;
        assert_eq!(
            result,
            if good { Ok(()) } else { Err(CommitError::Refused) },
            "number {number}"
        );
    }
    let rows = world.store.revisions(world.namespace, agent.id).await.expect("a read");
    assert_eq!(rows.iter().map(|row| row.revision.revision).collect::<Vec<_>>(), [1, 2]);
    // Another Agent begins at 1.
    let other = world.agent("other").await;
    assert_eq!(world.deploy(&other).await.revision, 1);
}

pub(super) async fn a_versions_bytes_read_back_with_their_digest(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let written = world.deploy(&agent).await;
    let row = world
        .store
        .revision(world.namespace, agent.id, written.id)
        .await
        .expect("a read")
        .expect("the version");
    assert_eq!(row.revision, written);
    assert!(row.live && revision::is_intact(&row.revision));
    assert_eq!(
        world.store.revision_owner(world.namespace, written.id).await,
        Ok(Some(agent.id))
    );
    let other = world.agent("other").await;
    assert_eq!(
        world.store.revision(world.namespace, other.id, written.id).await,
        Ok(None)
    );
}

pub(super) async fn an_agent_selects_only_its_own_versions(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let (first, second) = (world.agent("first").await, world.agent("second").await);
    let foreign = world.deploy(&second).await;
    let change = Change::new().write(Write::ActiveRevision(first.id, Some(foreign.id)));
    assert_eq!(world.refused(change).await, CommitError::Refused);
    assert_eq!(
        world.read_agent(first.id).await.expect("the Agent").active_revision_id,
        None
    );
    world.select(&foreign).await;
    // An update of the draft leaves the pointer where it is.
    world.write(Write::UpdateAgent(second.clone())).await;
    assert_eq!(
        world.read_agent(second.id).await.expect("the Agent").active_revision_id,
        Some(foreign.id)
    );
}

pub(super) async fn a_retired_version_leaves_the_live_ones(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let (first, second) = (world.deploy(&agent).await, world.deploy(&agent).await);
    let live = async || {
        let read = world.store.pass_read(&world.deployment(&second)).await.expect("a read");
        read.live.iter().map(|head| head.revision).collect::<Vec<_>>()
    };
    assert_eq!(live().await, [1, 2]);
    world.write(Write::RevisionRetired(first.id)).await;
    world.write(Write::RevisionRetired(first.id)).await;
    assert_eq!(live().await, [2]);
    let rows = world.store.revisions(world.namespace, agent.id).await.expect("a read");
    assert_eq!(rows.iter().map(|row| row.live).collect::<Vec<_>>(), [false, true]);
}

pub(super) async fn a_pass_reads_what_its_target_needs(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let first = world.deploy(&agent).await;
    let claim = world.claim(LONG).await;
    let read = world.store.pass_read(&claim.target).await.expect("a read");
    assert_eq!(
        read.agent.expect("the Agent").agent.desired_runtime_state,
        DesiredRuntimeState::Running
    );
    assert_eq!(read.revision.expect("the version").revision, first);
    assert_eq!((read.active, read.deployment, read.setup), (None, None, None));
    assert_eq!(read.secrets, std::slice::from_ref(&world.secret));
    assert_eq!(read.namespace.expect("the Namespace").namespace.id, world.namespace);
    assert!(read.now >= claim.claimed_at);

    world.select(&first).await;
    world.settle(&claim, complete(Success::RevisionActivated)).await;
    // The Secret may go away below a version; what is left is what still exists.
    let mut draft = world.read_agent(agent.id).await.expect("the Agent");
    draft.harness_auth = None;
    world.write(Write::UpdateAgent(draft)).await;
    world.write(Write::DeleteSecret(world.secret.id)).await;
    let second = world.deploy(&agent).await;
    let maintenance = Target::Maintenance {
        namespace: world.namespace,
        agent: agent.id,
        revision: first.id,
        bucket: 1,
    };
    let read = world.store.pass_read(&maintenance).await.expect("a read");
    assert_eq!(read.active.expect("the selected version").id, first.id);
    assert_eq!(
        read.live.iter().map(|head| head.id).collect::<Vec<_>>(),
        [first.id, second.id]
    );
    assert_eq!(read.secrets, []);
    assert!(matches!(
        read.deployment,
        Some(WorkState::Succeeded {
            code: Success::RevisionActivated,
            ..
        })
    ));

    let namespace = Target::NamespaceReady {
        namespace: world.namespace,
    };
    let read = world.store.pass_read(&namespace).await.expect("a read");
    assert!(read.namespace.is_some() && read.agent.is_none() && read.live.is_empty());
}

pub(super) async fn admission_reads_what_the_draft_names(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let at = world.now().await;
    let (bound, unbound) = (
        secret(world.namespace, "bound", at),
        secret(world.namespace, "unbound", at),
    );
    let binding = |secret| SecretBinding {
        source: source(secret),
        delivery: SecretDelivery::Env,
    };
    let names = ["A_TOKEN", "B_TOKEN"].map(|name| name.to_owned().try_into().expect("an environment name"));
    let [a, b] = names;
    // One Secret twice, and one that the Agent names too.
    let bindings = SecretBindings::from([(a, binding(&bound)), (b, binding(&world.secret))]);
    let row = configuration(world.namespace, bindings, at);
    let mut agent = world.draft("triage", at);
    agent.configuration_id = row.id;
    let change = Change::new()
        .write(Write::Secret(bound.clone()))
        .write(Write::Secret(unbound))
        .write(Write::Configuration(row.clone()))
        .write(Write::Agent(agent.clone(), None));
    world.commit(change).await;
    world.deploy(&agent).await;

    let read = world
        .store
        .deploy_read(&DeployQuery::rows(world.namespace, agent.id))
        .await
        .expect("a read");
    let mut expected = vec![bound, world.secret.clone()];
    expected.sort_by_key(|secret| secret.id);
    assert_eq!(
        (read.secrets, read.configuration, read.revisions),
        (expected, Some(row), 1)
    );
    assert!(read.now >= at && read.namespace.is_some());
    let elsewhere = world
        .store
        .deploy_read(&DeployQuery::rows(occ_core::id::NamespaceId::random(), agent.id))
        .await
        .expect("a read");
    assert!(elsewhere.namespace.is_none() && elsewhere.agent.is_none() && elsewhere.secrets.is_empty());
}

pub(super) async fn workspace_files_are_forgotten_once_applied(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let at = world.now().await;
    let files = WorkspaceFiles([(WorkspaceFileName::User, String::new())].into());
    let setup = WorkspaceSetup {
        id: Uuid::new_v4(),
        defaults_id: None,
        files: Some(files),
    };
    let (applied, dropped) = (world.draft("applied", at), world.draft("dropped", at));
    let other = WorkspaceSetup {
        id: Uuid::new_v4(),
        ..setup.clone()
    };
    world.write(Write::Agent(applied.clone(), Some(setup.clone()))).await;
    world.write(Write::Agent(dropped.clone(), Some(other))).await;
    let read = async |agent: &occ_core::resource::Agent| {
        let revision = occ_core::id::RevisionId::random();
        let target = Target::Revision {
            namespace: world.namespace,
            agent: agent.id,
            revision,
        };
        world.store.pass_read(&target).await.expect("a read").setup
    };
    world.write(Write::CompleteWorkspaceSetup(applied.id)).await;
    world.write(Write::CompleteWorkspaceSetup(applied.id)).await;
    assert_eq!(read(&applied).await, Some(WorkspaceSetup { files: None, ..setup }));
    world.write(Write::DropWorkspaceSetup(dropped.id)).await;
    assert_eq!(read(&dropped).await, None);
    // What was applied stays known: it must not be applied again.
    world.write(Write::DropWorkspaceSetup(applied.id)).await;
    assert!(read(&applied).await.is_some());
    // A failure is a terminal result for a maintenance pass too.
    let revision = world.deploy(&applied).await;
    let claim = world.claim(LONG).await;
    world
        .settle(
            &claim,
            Transition::Fail {
                failure: Failure::RuntimeStartupFailed,
                data: FailureData::default(),
            },
        )
        .await;
    let read = world
        .store
        .pass_read(&world.deployment(&revision))
        .await
        .expect("a read");
    assert!(matches!(
        read.deployment,
        Some(WorkState::Failed {
            failure: Failure::RuntimeStartupFailed,
            ..
        })
    ));
}

pub(super) async fn selected_versions_that_should_run_are_looked_after(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let mut selected = Vec::new();
    for name in ["running", "stopped", "never selected"] {
        let agent = world.agent(name).await;
        let revision = world.deploy(&agent).await;
        if name != "never selected" {
            world.select(&revision).await;
        }
        selected.push(revision);
    }
    let mut stopped = world.read_agent(selected[1].agent_id).await.expect("the Agent");
    stopped.desired_runtime_state = DesiredRuntimeState::Stopped;
    world.write(Write::UpdateAgent(stopped)).await;

    let work = world.store.selected().await.expect("a read");
    let [
        NewWork {
            target: Target::Maintenance { agent, revision, .. },
            actor,
            trace: None,
        },
    ] = &work[..]
    else {
        panic!("one should run: {work:?}")
    };
    assert_eq!(
        (agent, revision, actor),
        (&selected[0].agent_id, &selected[0].id, &world.actor)
    );
    // Each start asks for work of its own.
    let first = work[0].target.key();
    until("another key", async || {
        let again = world.store.selected().await.expect("a read");
        (again[0].target.key() != first).then_some(())
    })
    .await;
}

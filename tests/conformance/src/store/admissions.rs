//! The admission of a deployment, as the control plane commits it: a store may have a way of its own for it, and it is a change
//! like any other.

use std::sync::Arc;

use occ_core::{
    id::{AgentId, ConfigurationId, CredentialSourceId, NamespaceId, RevisionId, SecretId},
    reason::Success,
    resource::{Agent, AgentCredentialSource, AgentRevision, DesiredRuntimeState, NamespaceStatus},
    revision,
    store::{Change, CommitError, ConfigurationRow, Expect, Taken, Write},
    work::{NewWork, Target},
};

use super::{
    Subject,
    world::{LONG, World, complete, namespace, trace, written},
};

/// What an admission is made of.
pub(super) struct Admission {
    pub expects: Vec<Expect>,
    pub draft: Agent,
    revision: AgentRevision,
    work: NewWork,
}

impl Admission {
    /// The next version of an Agent.
    pub async fn of(world: &World, agent: AgentId, earlier: u64) -> Self {
        let mut draft = world.read_agent(agent).await.expect("the Agent");
        let revision = world.next_revision(&draft, earlier + 1, world.now().await);
        draft.desired_runtime_state = DesiredRuntimeState::Running;
        Self {
            expects: vec![
                Expect::NamespaceStatus(world.namespace, &[NamespaceStatus::Ready]),
                Expect::Agent(agent, world.version(agent).await),
                Expect::Configuration(world.configuration.id, world.configuration.generation),
                Expect::Secret(world.secret.id, world.secret.version),
                Expect::RevisionCount(agent, earlier),
            ],
            draft,
            work: world.work(world.deployment(&revision)).in_trace(Some(trace())),
            revision,
        }
    }

    pub fn change(self, world: &World) -> Change {
        let mut change = Change::new()
            .write(Write::UpdateAgent(self.draft))
            .write(written(&self.revision))
            .write(Write::Enqueue(self.work))
            .audit(
                world
                    .event("openclaw.agents.deploy")
                    .with("revision", self.revision.revision),
            );
        change.expect = self.expects;
        change
    }
}

/// What is left of an attempt: the Agent, how many versions it has, and how many events there are.
async fn found(world: &World, agent: AgentId) -> (Agent, u64, usize, usize) {
    let versions = world.store.revisions(world.namespace, agent).await.expect("a read");
    (
        world.read_agent(agent).await.expect("the Agent"),
        world.version(agent).await,
        versions.len(),
        world.audit().await.len(),
    )
}

pub(super) async fn an_admission_is_written_whole(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let bystander = world.agent("bystander").await;
    for earlier in 0..2 {
        let before = world.version(agent.id).await;
        let mut admission = Admission::of(&world, agent.id, earlier).await;
        // All of the draft is written, as by any other change.
        admission.draft.name = format!("renamed {earlier}").parse().expect("a name");
        let selection = serde_json::json!({ "calendar@curated": { "enabled": earlier == 0 } });
        admission.draft.plugins = serde_json::from_value(selection).expect("a selection");
        let source_id = CredentialSourceId::random();
        let used = (earlier == 0).then_some(AgentCredentialSource { source_id });
        admission.draft.credential_sources = used.into_iter().collect();
        let (draft, revision, work) = (
            admission.draft.clone(),
            admission.revision.clone(),
            admission.work.clone(),
        );
        world.commit(admission.change(&world)).await;

        assert_eq!(world.read_agent(agent.id).await, Some(draft));
        assert_eq!(world.version(agent.id).await, before + 1);
        let read = world.store.pass_read(&work.target).await.expect("a read");
        let row = read.revision.expect("the version");
        assert_eq!((&row.revision, row.live), (&revision, true));
        assert!(revision::is_intact(&row.revision));
        assert_eq!(read.secrets, std::slice::from_ref(&world.secret), "what it froze");
        let claim = world.claim(LONG).await;
        assert_eq!((claim.target, &claim.actor), (work.target, &work.actor));
        assert_eq!((claim.attempt, &claim.trace), (1, &work.trace));
        world.settle(&claim, complete(Success::RevisionSuperseded)).await;
        let audit = world.audit().await;
        let event = audit.iter().rfind(|event| event.action == "openclaw.agents.deploy");
        assert_eq!(event.expect("an event").details["revision"], earlier + 1);
    }
    assert_eq!(world.version(bystander.id).await, 1);
    assert_eq!(world.read_agent(bystander.id).await, Some(bystander));
}

pub(super) async fn an_admission_names_what_no_longer_holds(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agent = world.agent("triage").await;
    let before = found(&world, agent.id).await;
    let version = world.version(agent.id).await;
    // Another Agent is as far as that one is said to be.
    let further = world.agent("further").await;
    world.write(Write::UpdateAgent(further.clone())).await;
    assert_eq!(world.version(further.id).await, version + 1);
    let wrong = [
        Expect::NamespaceStatus(NamespaceId::random(), &[NamespaceStatus::Ready]),
        Expect::NamespaceStatus(world.namespace, &[NamespaceStatus::Failed]),
        Expect::Agent(agent.id, version + 1),
        Expect::Configuration(world.configuration.id, world.configuration.generation + 1),
        Expect::Configuration(ConfigurationId::random(), world.configuration.generation),
        Expect::Secret(world.secret.id, world.secret.version + 1),
        Expect::Secret(SecretId::random(), world.secret.version),
        Expect::RevisionCount(agent.id, 1),
    ];
    for wrong in wrong {
        let mut admission = Admission::of(&world, agent.id, 0).await;
        if let Expect::RevisionCount(_, earlier) = wrong {
            admission.revision.revision = earlier + 1;
        }
        let place = admission
            .expects
            .iter_mut()
            .find(|right| std::mem::discriminant(*right) == std::mem::discriminant(&wrong));
        *place.expect("an expectation of its kind") = wrong.clone();
        let refused = world.refused(admission.change(&world)).await;
        assert_eq!(refused, CommitError::Conflict(wrong));
        assert_eq!(found(&world, agent.id).await, before);
    }
    // What held when it was read, and does not any more.
    let status = |status| Write::NamespaceStatus {
        id: world.namespace,
        status,
        deletion_actor: None,
    };
    let configuration = |deleting| {
        Write::UpdateConfiguration(ConfigurationRow {
            deleting,
            ..world.configuration.clone()
        })
    };
    for (ends, back, gone) in [
        (
            status(NamespaceStatus::Failed),
            status(NamespaceStatus::Ready),
            Expect::NamespaceStatus(world.namespace, &[NamespaceStatus::Ready]),
        ),
        (
            configuration(true),
            configuration(false),
            Expect::Configuration(world.configuration.id, world.configuration.generation),
        ),
    ] {
        let admission = Admission::of(&world, agent.id, 0).await;
        world.write(ends).await;
        let refused = world.refused(admission.change(&world)).await;
        assert_eq!(refused, CommitError::Conflict(gone));
        world.write(back).await;
        assert_eq!(found(&world, agent.id).await, before);
    }
    // What is not expected may be as it likes.
    let mut admission = Admission::of(&world, agent.id, 0).await;
    admission
        .expects
        .retain(|expect| !matches!(expect, Expect::Configuration(..) | Expect::Secret(..)));
    world.commit(admission.change(&world)).await;
}

pub(super) async fn an_admission_that_breaks_a_rule_leaves_nothing(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    world.agent("taken").await;
    let agent = world.agent("triage").await;
    let before = found(&world, agent.id).await;
    let mut admission = Admission::of(&world, agent.id, 0).await;
    admission.draft.name = "taken".parse().expect("a name");
    let refused = world.refused(admission.change(&world)).await;
    assert_eq!(refused, CommitError::NameTaken(Taken::Agent));
    assert_eq!(found(&world, agent.id).await, before);
    // A version that says that it is the one after the next.
    let mut admission = Admission::of(&world, agent.id, 0).await;
    admission.revision.revision = 2;
    assert_eq!(world.refused(admission.change(&world)).await, CommitError::Refused);
    // An Agent of another Namespace.
    let elsewhere = namespace("elsewhere", world.now().await);
    world.write(Write::Namespace(elsewhere.clone())).await;
    let mut admission = Admission::of(&world, agent.id, 0).await;
    admission.expects[0] = Expect::NamespaceStatus(elsewhere.id, &[NamespaceStatus::Ready]);
    admission.draft.namespace_id = elsewhere.id;
    admission.revision.namespace_id = elsewhere.id;
    admission.work.target = Target::Revision {
        namespace: elsewhere.id,
        agent: agent.id,
        revision: admission.revision.id,
    };
    assert_eq!(world.refused(admission.change(&world)).await, CommitError::Refused);
    assert_eq!(found(&world, agent.id).await, before);
    // Work for another version.
    let mut admission = Admission::of(&world, agent.id, 0).await;
    admission.revision.id = RevisionId::random();
    world.commit(admission.change(&world)).await;
    assert_eq!(found(&world, agent.id).await.2, 1);
}

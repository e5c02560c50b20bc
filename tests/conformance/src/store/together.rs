//! What comes at once: a store may send it together, and each is answered as if it had come alone.

use std::sync::Arc;

use occ_core::{
    driver::StateWrite,
    id::{AgentId, NamespaceId, RevisionId},
    reason::{Pending, Success},
    resource::{Agent, AgentRevision, DesiredRuntimeState, SecretBinding, SecretDelivery},
    store::{Change, CommitError, DeployQuery, Expect, PassRead, Store, Taken, WorkState, Write},
    time::Timestamp,
    work::{Claim, ClaimToken, Lease, Transition},
};
use tokio::task::JoinSet;

use super::{
    Subject,
    admissions::Admission,
    policy::{binding, role},
    world::{LONG, SHORT, World, complete, configuration, defer, secret, source, until},
};

/// More than any store sends by itself at once.
const MANY: usize = 24;

/// Asks all of them at once. The answers are in their order.
async fn at_once<Q, A, F>(questions: Vec<Q>, ask: impl Fn(Q) -> F) -> Vec<A>
where
    A: Send + 'static,
    F: Future<Output = A> + Send + 'static,
{
    let mut asked = JoinSet::new();
    for (number, question) in questions.into_iter().enumerate() {
        let answer = ask(question);
        asked.spawn(async move { (number, answer.await) });
    }
    let mut answers = asked.join_all().await;
    answers.sort_unstable_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

async fn committed(world: &World, changes: Vec<Change>) -> Vec<Result<(), CommitError>> {
    at_once(changes, |change| {
        let store = Arc::clone(&world.store);
        async move { store.commit(change).await }
    })
    .await
}

async fn agents(world: &World) -> Vec<Agent> {
    let mut agents = Vec::new();
    for number in 0..MANY {
        agents.push(world.agent(&format!("agent-{number:02}")).await);
    }
    agents
}

pub(super) async fn admissions_at_once_are_judged_each_by_itself(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let agents = agents(&world).await;
    // In the second round one of them breaks a rule of what is stored, and with it any statement that it is part of.
    for earlier in 0..2 {
        let mut changes = Vec::new();
        for agent in &agents {
            let mut admission = Admission::of(&world, agent.id, earlier).await;
            if agent.id == agents[7].id {
                admission.expects.retain(|expect| !matches!(expect, Expect::Secret(..)));
                admission
                    .expects
                    .push(Expect::Secret(world.secret.id, world.secret.version + 1));
            }
            if earlier == 1 && agent.id == agents[11].id {
                admission.draft.name = agents[0].name.clone();
            }
            changes.push(admission.change(&world));
        }
        // And one Agent is deployed twice.
        changes.push(Admission::of(&world, agents[20].id, earlier).await.change(&world));

        let answers = committed(&world, changes).await;
        let stale = Expect::Secret(world.secret.id, world.secret.version + 1);
        let twice = [&answers[20], &answers[MANY]]
            .into_iter()
            .filter(|answer| answer.is_ok());
        assert_eq!(twice.count(), 1, "one of the two: {answers:?}");
        for (number, answer) in answers.iter().enumerate() {
            match (number, earlier) {
                (7, _) => assert_eq!(*answer, Err(CommitError::Conflict(stale.clone()))),
                (11, 1) => assert_eq!(*answer, Err(CommitError::NameTaken(Taken::Agent))),
                (20 | MANY, _) => assert!(matches!(answer, Ok(()) | Err(CommitError::Conflict(Expect::Agent(..))))),
                _ => assert_eq!(*answer, Ok(())),
            }
        }
        for (number, agent) in agents.iter().enumerate() {
            let versions = world.store.revisions(world.namespace, agent.id).await.expect("a read");
            let expected = match (number, earlier) {
                (7, 0) => 0,
                (7 | 11, 1) => 1,
                _ => earlier + 1,
            };
            assert_eq!(versions.len() as u64, expected, "of {number}");
        }
        let audit = world.audit().await;
        let deployed = audit
            .iter()
            .filter(|event| event.action == "openclaw.agents.deploy")
            .count();
        let expected = if earlier == 0 { MANY - 1 } else { 2 * MANY - 2 };
        assert_eq!(deployed, expected);
        if earlier == 0 {
            world
                .commit(Admission::of(&world, agents[7].id, 0).await.change(&world))
                .await;
            break_off_the_rest(&world).await;
        }
    }
}

/// Ends what is queued, so that it is not in the way.
async fn break_off_the_rest(world: &World) {
    for claim in claims(world).await {
        world.settle(&claim, complete(Success::RevisionSuperseded)).await;
    }
}

async fn claims(world: &World) -> Vec<Claim> {
    let mut claims = Vec::new();
    loop {
        let more = world.store.claim(MANY, LONG).await.expect("a claim");
        if more.is_empty() {
            return claims;
        }
        claims.extend(more);
    }
}

/// A change of a pass: under its claim, while the Agent's pointer is as it was.
fn of_pass(token: ClaimToken, agent: AgentId, active: Option<RevisionId>) -> Change {
    Change::new()
        .expect(Expect::ClaimHeld(token))
        .expect(Expect::AgentRuntime {
            agent,
            active,
            desired: DesiredRuntimeState::Running,
        })
}

pub(super) async fn passes_at_once_end_each_by_itself(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let (mut old, mut new): (Vec<AgentRevision>, Vec<AgentRevision>) = (Vec::new(), Vec::new());
    for agent in agents(&world).await {
        let first = world.deploy(&agent).await;
        world.select(&first).await;
        old.push(first);
    }
    break_off_the_rest(&world).await;
    for revision in &old {
        let agent = world.read_agent(revision.agent_id).await.expect("the Agent");
        new.push(world.deploy(&agent).await);
    }
    let claims = claims(&world).await;
    let claim = |revision: &AgentRevision| {
        let of = claims.iter().find(|claim| claim.target == world.deployment(revision));
        of.expect("a claim of each").token
    };

    // The pointers move. One was moved before, and one pass has lost its claim.
    world.select(&new[3]).await;
    let tokens: Vec<_> = new
        .iter()
        .enumerate()
        .map(|(number, revision)| {
            if number == 5 {
                ClaimToken(uuid::Uuid::new_v4())
            } else {
                claim(revision)
            }
        })
        .collect();
    let moves = tokens.iter().zip(&new).zip(&old).map(|((token, new), old)| {
        of_pass(*token, new.agent_id, Some(old.id)).write(Write::ActiveRevision(new.agent_id, Some(new.id)))
    });
    for (number, answer) in committed(&world, moves.collect()).await.into_iter().enumerate() {
        match (number, answer) {
            (3, Err(CommitError::Conflict(Expect::AgentRuntime { agent, .. }))) => assert_eq!(agent, new[3].agent_id),
            (5, Err(CommitError::Conflict(Expect::ClaimHeld(token)))) => assert_eq!(token, tokens[5]),
            (_, answer) => assert_eq!(answer, Ok(()), "of {number}"),
        }
    }
    for (number, (new, old)) in new.iter().zip(&old).enumerate() {
        let active = world
            .read_agent(new.agent_id)
            .await
            .expect("the Agent")
            .active_revision_id;
        assert_eq!(active, Some(if number == 5 { old.id } else { new.id }));
    }

    // They end: with a version that is retired and something recorded, or by waiting, or under a claim that is lost.
    let ends = |number: usize| -> Transition {
        if number.is_multiple_of(2) {
            complete(Success::RevisionActivated)
        } else {
            defer(Pending::RevisionIncomplete)
        }
    };
    let changes = tokens.iter().enumerate().map(|(number, token)| {
        let change = of_pass(*token, new[number].agent_id, Some(new[number].id));
        let retired = number
            .is_multiple_of(2)
            .then_some(Write::RevisionRetired(old[number].id));
        let mut change = change.audit(world.event("driver.told").with("number", number));
        change.writes.extend(retired);
        change.write(Write::Settle(*token, ends(number)))
    });
    for (number, answer) in committed(&world, changes.collect()).await.into_iter().enumerate() {
        match (number, answer) {
            (5, Err(CommitError::Conflict(Expect::ClaimHeld(_)))) => {}
            (_, answer) => assert_eq!(answer, Ok(()), "of {number}"),
        }
    }
    let audit = world.audit().await;
    for (number, revision) in new.iter().enumerate() {
        let state = world.state(&world.deployment(revision)).await;
        let versions = world
            .store
            .revisions(world.namespace, revision.agent_id)
            .await
            .expect("a read");
        let live: Vec<_> = versions.iter().map(|row| row.live).collect();
        match number {
            5 => assert!(matches!(state, WorkState::Running { .. })),
            _ if number.is_multiple_of(2) => {
                assert!(matches!(state, WorkState::Succeeded { .. }), "{state:?}");
                assert_eq!(live, [false, true]);
            }
            _ => {
                assert!(matches!(state, WorkState::Queued { .. }), "{state:?}");
                assert_eq!(live, [true, true]);
            }
        }
        let told = audit
            .iter()
            .filter(|event| event.action == "driver.told" && event.details["number"] == number);
        assert_eq!(told.count(), usize::from(number != 5));
    }
}

/// Several recoveries at once, until so much was given back.
async fn recovered(world: &World, lease: Lease, count: usize) -> usize {
    let mut total = 0;
    until("the recovery of all", async || {
        let counts = at_once(vec![lease; 4], |lease| {
            let store = Arc::clone(&world.store);
            async move { store.recover(lease).await.expect("a recovery") }
        });
        total += counts.await.into_iter().sum::<usize>();
        (total >= count).then_some(total)
    })
    .await
}

pub(super) async fn recoveries_at_once_give_each_back_once(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let mut targets = Vec::new();
    for agent in agents(&world).await {
        targets.push(world.deployment(&world.deploy(&agent).await));
    }
    let claims = world.store.claim(MANY, SHORT).await.expect("a claim");
    assert_eq!(claims.len(), MANY);
    assert_eq!(recovered(&world, SHORT, MANY).await, MANY);
    for target in &targets {
        assert!(matches!(world.state(target).await, WorkState::Queued { .. }));
        assert_eq!(world.evidence(target).await.len(), 1);
    }
    // Nobody grants that many any more.
    let last = Lease {
        max_attempts: 1,
        ..SHORT
    };
    assert_eq!(recovered(&world, last, MANY).await, MANY);
    for target in &targets {
        assert!(matches!(world.state(target).await, WorkState::Failed { .. }));
        assert_eq!(world.evidence(target).await.len(), 2);
    }
}

pub(super) async fn reads_at_once_are_answered_each_by_itself(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let at = world.now().await;
    let mut targets = Vec::new();
    let mut queries = vec![DeployQuery::rows(world.namespace, AgentId::random())];
    for number in 0..MANY {
        // Each with a Secret, a Configuration, a record and a policy of its own.
        let own = secret(world.namespace, &format!("key-{number:02}"), at);
        let bindings = [(
            "TOKEN".to_owned().try_into().expect("a name"),
            SecretBinding {
                source: source(&own),
                delivery: SecretDelivery::default(),
            },
        )]
        .into();
        let configured = configuration(world.namespace, bindings, at);
        let mut agent = world.draft(&format!("agent-{number:02}"), at);
        agent.configuration_id = configured.id;
        let may = role(&format!("role-{number:02}"), Some(world.namespace));
        let change = Change::new()
            .write(Write::Secret(own))
            .write(Write::Configuration(configured.clone()))
            .write(Write::Agent(agent.clone(), None))
            .write(Write::Role(may.clone()))
            .write(Write::AccessBinding(binding(
                &format!("own-{number:02}"),
                &may,
                &agent.service_principal_id,
                None,
            )))
            .state(vec![StateWrite {
                driver: "configuration/local".to_owned(),
                key: configured.id.to_string(),
                expected: None,
                value: Some(format!("record {number}").into_bytes()),
            }]);
        world.commit(change).await;
        let revision = world.deploy(&agent).await;
        targets.push(world.deployment(&revision));
        queries.push(DeployQuery {
            namespace: if number == 4 {
                NamespaceId::random()
            } else {
                world.namespace
            },
            agent: agent.id,
            policy_of: (number % 3 > 0).then(|| {
                if number % 3 == 1 {
                    world.actor.clone()
                } else {
                    agent.service_principal_id.clone()
                }
            }),
            records_of: if number % 4 == 0 {
                Vec::new()
            } else {
                vec!["configuration/local".to_owned()]
            },
        });
    }

    let mut alone = Vec::new();
    for query in &queries {
        alone.push(world.store.deploy_read(query).await.expect("a read"));
    }
    let store = &world.store;
    let together = at_once(queries, |query| {
        let store = Arc::clone(store);
        async move { store.deploy_read(&query).await.expect("a read") }
    });
    for (mut together, alone) in together.await.into_iter().zip(alone) {
        together.now = alone.now;
        together
            .policy
            .sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        let mut alone = alone;
        alone.policy.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        assert_eq!(together, alone);
    }

    let pass = |read: PassRead| PassRead {
        now: Timestamp::from_millis(0),
        ..read
    };
    let mut alone = Vec::new();
    for target in &targets {
        alone.push(pass(store.pass_read(target).await.expect("a read")));
    }
    let together = at_once(targets, |target| {
        let store: Arc<dyn Store> = Arc::clone(store);
        async move { store.pass_read(&target).await.expect("a read") }
    });
    let together: Vec<_> = together.await.into_iter().map(pass).collect();
    assert_eq!(together, alone);
    assert!(
        alone
            .iter()
            .all(|read| read.revision.is_some() && read.secrets.len() == 1)
    );
}

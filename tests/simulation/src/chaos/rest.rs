//! Once no fault strikes any more, everything comes to rest by itself, and whatever is asked then is done.

use std::time::Duration;

use occ_core::{
    id::{AgentId, RevisionId},
    reason::{Failure, Success},
    resource::{AgentStatus, DesiredRuntimeState, NamespaceStatus},
    time::Timestamp,
    work::Target,
};

use super::{Dice, scene::Scene};
use crate::memory::{Data, State, Work};

/// Far more than any backoff, deadline or jump of the clock.
const BOUND: Duration = Duration::from_hours(6);

/// Work that must end: looking after a version never does.
fn must_end(work: &Work) -> bool {
    !work.is_over() && !matches!(work.target, Target::Maintenance { .. })
}

/// Waits until no work is left.
pub(super) async fn comes(scene: &Scene) {
    let began = tokio::time::Instant::now();
    loop {
        let data = scene.memory.data();
        let Some(left) = data.work.values().find(|work| must_end(work)) else {
            break;
        };
        if began.elapsed() > BOUND {
            scene.rules.broken(format!("a lane never drains: {left:?}"));
            return;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let data = scene.memory.data();
    for agent in data.agents.keys() {
        rests(scene, &data, *agent);
    }
    for row in data.revisions.values() {
        let intact = occ_core::revision::is_intact(&row.revision);
        scene
            .rules
            .hold(intact, || format!("the bytes of {} changed", row.revision.id));
        let target = Target::Revision {
            namespace: row.revision.namespace_id,
            agent: row.revision.agent_id,
            revision: row.revision.id,
        };
        scene.rules.hold(data.work.contains_key(&target.key()), || {
            format!("the work of {} is lost", row.revision.id)
        });
    }
}

/// The last stop that was asked for.
fn last_stop(data: &Data, agent: AgentId) -> Option<&Work> {
    let stops = data
        .work
        .values()
        .filter(|work| matches!(work.target, Target::AgentStopped { agent: of, .. } if of == agent));
    stops.max_by_key(|work| work.created_at)
}

fn rests(scene: &Scene, data: &Data, agent: AgentId) {
    let Some(row) = data.agents.get(&agent) else { return };
    let stopped = row.agent.desired_runtime_state == DesiredRuntimeState::Stopped;
    let done = |work: &Work| {
        matches!(
            work.state,
            State::Succeeded(Success::AgentStopped | Success::AgentAlreadyStopped, ..)
        )
    };
    if stopped && row.agent.status == AgentStatus::Active && last_stop(data, agent).is_some_and(done) {
        let runs = scene.rules.runtime(|runtime| runtime.runs_any(agent));
        scene.rules.hold(!runs || !scene.rules.are_exact(), || {
            format!("{agent} is stopped and something of it runs")
        });
        let pointer = row.agent.active_revision_id;
        scene.rules.hold(pointer.is_none(), || {
            format!("{agent} is stopped and selects {pointer:?}")
        });
    }
}

/// What is selected and should run does run, and the Agent's route leads to it: at the latest once it was looked at again.
pub(super) async fn serves(scene: &Scene) {
    let began = tokio::time::Instant::now();
    while scene.rules.are_exact()
        && let Some((agent, revision)) = idle(scene)
    {
        if began.elapsed() > BOUND {
            let what = format!("{agent} selects {revision} and should run, and nobody brings it up");
            scene.rules.broken(what);
            return;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

/// An Agent whose selected version should serve, and does not. A newer version may have taken its route, or its workload's place,
/// before that one failed: of these nothing is said.
fn idle(scene: &Scene) -> Option<(AgentId, RevisionId)> {
    let data = scene.memory.data();
    data.agents.values().map(|row| &row.agent).find_map(|agent| {
        let selected = agent.active_revision_id?;
        let wanted = agent.status == AgentStatus::Active && agent.desired_runtime_state == DesiredRuntimeState::Running;
        let number = |id| data.revisions.get(&id).map(|row| row.revision.revision);
        let newer = data
            .revisions
            .values()
            .any(|row| row.revision.agent_id == agent.id && Some(row.revision.revision) > number(selected));
        let serves = scene
            .rules
            .runtime(|runtime| runtime.runs(agent.id, selected) && runtime.routed.get(&agent.id) == Some(&selected));
        (wanted && !newer && !serves && goes_on(&data, selected)).then_some((agent.id, selected))
    })
}

/// Whether the latest look at the version, or its deployment, says nothing against it: it may have failed by itself, or be refused.
fn goes_on(data: &Data, revision: RevisionId) -> bool {
    let over = data
        .work
        .values()
        .filter(|work| work.target.revision() == Some(revision) && work.is_over());
    over.max_by_key(|work| ended_at(&work.state)).is_some_and(|work| {
        matches!(
            work.state,
            State::Succeeded(Success::RevisionActivated | Success::RevisionAlreadyActive, ..)
                | State::Failed(
                    Failure::LeaseExpired
                        | Failure::MaxAttemptsExhausted
                        | Failure::DependencyUnavailable
                        | Failure::ActiveRevisionChanged,
                    ..
                )
        )
    })
}

const fn ended_at(state: &State) -> Option<Timestamp> {
    match state {
        State::Succeeded(.., at) | State::Failed(.., at) => Some(*at),
        State::Queued | State::Claimed { .. } => None,
    }
}

/// Without faults, one more request for each Agent is done to the letter: nothing needs a hand.
pub(super) async fn settles(scene: &Scene, dice: &Dice) {
    for agent in scene.agents.iter().map(|agent| agent.id) {
        let deleting = |data: &Data| {
            data.agents
                .get(&agent)
                .map(|row| row.agent.status == AgentStatus::Deleting)
        };
        let Some(deleting) = deleting(&scene.memory.data()) else {
            gone(scene, agent);
            continue;
        };
        match dice.below(3) {
            _ if deleting => {
                scene.delete(agent).await;
                comes(scene).await;
                gone(scene, agent);
            }
            0 => {
                scene.delete(agent).await;
                comes(scene).await;
                gone(scene, agent);
            }
            1 => {
                scene.stop(agent).await;
                comes(scene).await;
                stopped(scene, agent);
            }
            _ => deployed(scene, agent).await,
        }
    }
    namespaces(scene).await;
}

fn gone(scene: &Scene, agent: AgentId) {
    let data = scene.memory.data();
    scene
        .rules
        .hold(!data.agents.contains_key(&agent), || format!("{agent} is not deleted"));
    let left = scene
        .rules
        .runtime(|runtime| runtime.runs_any(agent) || runtime.credentials.contains(&agent));
    scene.rules.hold(!left || !scene.rules.are_exact(), || {
        format!("something of {agent} is left")
    });
}

fn stopped(scene: &Scene, agent: AgentId) {
    let data = scene.memory.data();
    let pointer = data.agents.get(&agent).and_then(|row| row.agent.active_revision_id);
    let runs = scene.rules.runtime(|runtime| runtime.runs_any(agent));
    let excused = !scene.rules.are_exact();
    scene.rules.hold(pointer.is_none() && (!runs || excused), || {
        format!("{agent} was asked to stop: it selects {pointer:?}, it runs: {runs}")
    });
}

async fn deployed(scene: &Scene, agent: AgentId) {
    let Some(revision) = scene.deploy(agent).await else {
        scene.rules.broken(format!("{agent} cannot be deployed any more"));
        return;
    };
    comes(scene).await;
    let data = scene.memory.data();
    let target = Target::Revision {
        namespace: scene.namespace,
        agent,
        revision,
    };
    let state = data.work.get(&target.key()).map(|work| work.state.clone());
    let active = matches!(
        state,
        Some(State::Succeeded(
            Success::RevisionActivated | Success::RevisionAlreadyActive,
            ..
        ))
    );
    scene
        .rules
        .hold(active, || format!("{revision} of {agent} is not activated: {state:?}"));
    let pointer = data.agents.get(&agent).and_then(|row| row.agent.active_revision_id);
    scene.rules.hold(pointer == Some(revision), || {
        format!("{agent} selects {pointer:?} and not {revision}")
    });
    let (only, routed) = scene.rules.runtime(|runtime| {
        let running = runtime.running.get(&agent).cloned().unwrap_or_default();
        (
            running.len() == 1 && running.contains(&revision),
            runtime.routed.get(&agent) == Some(&revision),
        )
    });
    scene.rules.hold((only && routed) || !scene.rules.are_exact(), || {
        format!("{agent} does not serve {revision} alone: alone {only}, routed {routed}")
    });
}

/// A Namespace that failed, or whose deletion failed, is deleted on request.
async fn namespaces(scene: &Scene) {
    let others = |data: &Data| {
        let live = data.namespaces.values().filter(|named| !named.tombstone);
        live.map(|named| named.row.namespace.clone())
            .filter(|namespace| namespace.id != scene.namespace)
            .collect::<Vec<_>>()
    };
    for namespace in others(&scene.memory.data()) {
        let settled = namespace.status != NamespaceStatus::Provisioning;
        scene
            .rules
            .hold(settled, || format!("nobody provides {} any more", namespace.id));
        if let Err(refusal) = scene.plane.delete_namespace(&scene.admin, namespace.id).await {
            scene
                .rules
                .broken(format!("{} cannot be deleted: {refusal}", namespace.id));
        }
    }
    comes(scene).await;
    let left = others(&scene.memory.data());
    scene
        .rules
        .hold(left.is_empty(), || format!("Namespaces are left: {left:?}"));
    let now: Timestamp = occ_core::time::Clock::now(&scene.memory);
    scene.rules.step(|| format!("the end, at {now}"));
}

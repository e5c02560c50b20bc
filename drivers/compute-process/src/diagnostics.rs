//! Fresh checks of a version. Nothing here proves that a model answers.

use occ_core::{
    driver::{Check, CheckStatus, OperationContext},
    reason::Token,
};
use occ_runtime::status::{State, Status};

use crate::{error::Result, gateway, naming::AgentPaths, place::Instance, place::find_revision};

const UNAVAILABLE: Token = Token::known("UNAVAILABLE");

/// What was read of a version before its gateway is asked.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    status: Option<Status>,
    readiness: Option<String>,
}

/// Reads what the version's supervisor says.
pub(crate) fn read(instance: &Instance, target: &occ_core::driver::RevisionRef) -> Result<Seen> {
    let Some(agent) = instance.look(&target.agent)? else {
        return Ok(Seen::default());
    };
    let status = status(instance, &agent, target)?;
    let readiness = gateway::readiness_url(instance, &agent, target)?;
    Ok(Seen { status, readiness })
}

fn status(instance: &Instance, agent: &AgentPaths, target: &occ_core::driver::RevisionRef) -> Result<Option<Status>> {
    let Some(revision) = find_revision(agent, instance, target)? else {
        return Ok(None);
    };
    Ok(Status::read(&revision.serving(agent).status).filter(|status| status.revision_id == target.id))
}

/// Judges what was read, and asks the gateway. What could not be seen is unknown, never well.
pub(crate) async fn diagnose(cx: &OperationContext, seen: Seen) -> Vec<Check> {
    let component = seen
        .status
        .as_ref()
        .map_or(Token::known("gateway"), |status| status.component.clone());
    let alive = seen.status.as_ref().map(|status| status.supervisor.is_alive());
    let running = seen.status.as_ref().filter(|_| alive == Some(true));
    let supervisor = match alive {
        None => (CheckStatus::Unknown, Some(UNAVAILABLE)),
        Some(true) => (CheckStatus::Succeeded, None),
        Some(false) => (CheckStatus::Failed, Some(Token::known("NOT_RUNNING"))),
    };
    let state = match running.map(|status| &status.state) {
        None => (CheckStatus::Unknown, Some(UNAVAILABLE)),
        Some(State::Ready) => (CheckStatus::Succeeded, None),
        Some(State::Held { failure, .. }) => (CheckStatus::Failed, Token::parse(failure.code.code())),
        Some(_) => (CheckStatus::Failed, Some(Token::known("NOT_READY"))),
    };
    let readiness = match (running, &seen.readiness) {
        (Some(_), Some(url)) if gateway::answers(url).await => (CheckStatus::Succeeded, None),
        (Some(_), Some(_)) => (CheckStatus::Failed, Some(Token::known("NOT_READY"))),
        // Whatever answers on the port now is not this version's gateway.
        _ => (CheckStatus::Unknown, Some(UNAVAILABLE)),
    };
    let restarts = match running.map(|status| status.restarts) {
        None => (CheckStatus::Unknown, Some(UNAVAILABLE)),
        Some(0) => (CheckStatus::Succeeded, None),
        Some(_) => (CheckStatus::Failed, Some(Token::known("RESTARTED"))),
    };
    let names = ["supervisor", "status", "readiness", "restarts"].map(Token::known);
    let results = [supervisor, state, readiness, restarts];
    names
        .into_iter()
        .zip(results)
        .map(|(check, (status, code))| Check {
            component: component.clone(),
            check,
            status,
            code,
            checked_at: cx.now(),
        })
        .collect()
}

//! Agent revisions and their deployments.

use axum::{
    Router,
    routing::{get, post},
};
use occ_core::{
    admission::{DetailCode, Refusal},
    driver::LogQuery,
    reason::Token,
};

use super::Handled;
use crate::{Api, call::Call, envelope::Reply};

/// Log lines when the caller does not say how many.
const DEFAULT_LINES: u16 = 200;

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/namespaces/{namespace}/agents/{agent}/revisions", get(list))
        .route("/namespaces/{namespace}/agents/{agent}/revisions/{revision}", get(read))
        .route(
            "/namespaces/{namespace}/agents/{agent}/deployments/{revision}",
            get(deployment),
        )
        .route(
            "/namespaces/{namespace}/agents/{agent}/deployments/{revision}/diagnostics",
            post(diagnose),
        )
        .route(
            "/namespaces/{namespace}/agents/{agent}/deployments/{revision}/runtime/logs",
            get(logs),
        )
}

async fn list(call: Call) -> Handled {
    let (namespace, agent) = (call.id("namespace")?, call.id("agent")?);
    call.no_query()?;
    Ok(Reply::ok(call.plane.revisions(&call.caller, namespace, agent).await?)?)
}

async fn read(call: Call) -> Handled {
    let (namespace, agent, revision) = (call.id("namespace")?, call.id("agent")?, call.id("revision")?);
    call.no_query()?;
    Ok(Reply::ok(
        call.plane.revision(&call.caller, namespace, agent, revision).await?,
    )?)
}

async fn deployment(call: Call) -> Handled {
    let (namespace, agent, revision) = (call.id("namespace")?, call.id("agent")?, call.id("revision")?);
    call.no_query()?;
    Ok(Reply::ok(
        call.plane.deployment(&call.caller, namespace, agent, revision).await?,
    )?)
}

async fn diagnose(call: Call) -> Handled {
    let (namespace, agent, revision) = (call.id("namespace")?, call.id("agent")?, call.id("revision")?);
    call.no_query()?;
    Ok(Reply::ok(
        call.plane.diagnose(&call.caller, namespace, agent, revision).await?,
    )?)
}

async fn logs(call: Call) -> Handled {
    let (namespace, agent, revision) = (call.id("namespace")?, call.id("agent")?, call.id("revision")?);
    let mut query = LogQuery {
        component: None,
        lines: DEFAULT_LINES,
    };
    for (name, value) in call.query(&["lines", "component"])? {
        if name == "lines" {
            query.lines = value
                .parse()
                .ok()
                .filter(|lines| (1..=1000).contains(lines))
                .ok_or_else(|| {
                    Refusal::invalid("lines must be a number from 1 to 1000.").at("/lines", DetailCode::InvalidValue)
                })?;
        } else {
            query.component = Some(Token::parse(&value).ok_or_else(|| {
                Refusal::invalid("component must be a component's name.").at("/component", DetailCode::InvalidFormat)
            })?);
        }
    }
    Ok(Reply::ok(
        call.plane
            .runtime_logs(&call.caller, namespace, agent, revision, query)
            .await?,
    )?)
}

//! Agent revisions and their deployments.

use std::time::Duration;

use axum::{
    Router,
    routing::{get, post},
};
use occ_core::{
    admission::{DetailCode, Refusal},
    driver::LogQuery,
    reason::Token,
};

use super::{Handled, events};
use crate::{Api, call::Call, envelope::Reply};

/// How long a reader may wait for the end of a deployment.
const WAIT_MAX: u64 = 60;

/// `1s` to `60s`.
fn seconds(text: &str) -> Result<Duration, Refusal> {
    let plain = |digits: &&str| digits.len() <= 2 && digits.bytes().all(|b| b.is_ascii_digit());
    let digits = text.strip_suffix('s').filter(plain);
    let seconds = digits.and_then(|digits| digits.parse().ok());
    match seconds {
        Some(seconds @ 1..=WAIT_MAX) => Ok(Duration::from_secs(seconds)),
        _ => Err(Refusal::invalid("wait must be 1s to 60s.").at("/wait", DetailCode::InvalidValue)),
    }
}

/// Log lines when the caller does not say how many.
const DEFAULT_LINES: u16 = 200;

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/namespaces/{namespace}/agents/{agent}/revisions", get(list))
        .route("/namespaces/{namespace}/agents/{agent}/revisions/{revision}", get(read))
        .route(
            "/namespaces/{namespace}/agents/{agent}/revisions/{revision}/redeploy",
            post(redeploy),
        )
        .route(
            "/namespaces/{namespace}/agents/{agent}/deployments/{revision}/events",
            get(events::watch),
        )
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
    let page = call.page()?;
    let page = call.plane.revisions_page(&call.caller, namespace, agent, &page).await?;
    Ok(Reply::page(page)?)
}

async fn read(call: Call) -> Handled {
    let (namespace, agent, revision) = (call.id("namespace")?, call.id("agent")?, call.id("revision")?);
    call.no_query()?;
    Ok(Reply::ok(
        call.plane
            .saved_version(&call.caller, namespace, agent, revision)
            .await?,
    )?)
}

/// 202: what the earlier version saved is saved as the next one, and its deployment queued.
async fn redeploy(call: Call) -> Handled {
    let (namespace, agent, revision) = (call.id("namespace")?, call.id("agent")?, call.id("revision")?);
    call.no_query()?;
    Ok(Reply::accepted(
        call.plane.redeploy(&call.caller, namespace, agent, revision).await?,
    )?)
}

async fn deployment(call: Call) -> Handled {
    let (namespace, agent, revision) = (call.id("namespace")?, call.id("agent")?, call.id("revision")?);
    let wait = match call.query(&["wait"])?.pop() {
        Some((_, value)) => seconds(&value)?,
        None => Duration::ZERO,
    };
    let now = || call.plane.deployment(&call.caller, namespace, agent, revision);
    // While too many wait, the others are told at once how far it is.
    let place = if wait.is_zero() { None } else { call.listeners.place() };
    let deployment = match place {
        None => now().await?,
        Some(_place) => tokio::select! {
            awaited = call.plane.awaited_deployment(&call.caller, namespace, agent, revision, wait) => awaited?,
            () = call.stopping.cancelled() => now().await?,
        },
    };
    Ok(Reply::ok(deployment)?)
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

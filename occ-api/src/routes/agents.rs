//! Agents, their deployment, stop and deletion, and their gateway.

use axum::{
    Router,
    http::{HeaderMap, HeaderValue, header},
    routing::{get, post},
};
use occ_core::{
    admission::{DetailCode, Refusal},
    control::{ConfigurationReadError, CreateAgent, Tag, UpdateAgent},
    resource::Agent,
};
use schemars::JsonSchema;
use uuid::Uuid;

use super::Handled;
use crate::{Api, call::Call, envelope::Reply, reject::Rejected};

/// An Agent as reads show it: without a saved setting that cannot be read, which is then named.
#[derive(JsonSchema)]
#[schemars(rename = "SavedAgent", rename_all = "camelCase")]
#[allow(dead_code)] // Its schema is what is used.
pub(crate) struct SavedAgentSchema {
    #[serde(flatten)]
    agent: Agent,
    /// What is left out.
    #[serde(default)]
    configuration_read_error: Option<ConfigurationReadError>,
}

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/namespaces/{namespace}/agents", get(list).post(create))
        .route(
            "/namespaces/{namespace}/agents/{agent}",
            get(read).patch(update).delete(delete),
        )
        .route("/namespaces/{namespace}/agents/{agent}/deploy", post(deploy))
        .route("/namespaces/{namespace}/agents/{agent}/stop", post(stop))
        .route(
            "/namespaces/{namespace}/agents/{agent}/stops/{operation}",
            get(stop_status),
        )
        .route("/namespaces/{namespace}/agents/{agent}/gateway", get(gateway))
        .route(
            "/namespaces/{namespace}/agents/{agent}/runtime-credentials",
            get(credentials).post(provision_credentials),
        )
}

async fn list(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    let page = call.page()?;
    Ok(Reply::page(
        call.plane.agents_page(&call.caller, namespace, &page).await?,
    )?)
}

async fn create(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    call.no_query()?;
    let input = call.body::<CreateAgent>()?;
    Ok(Reply::created(
        call.plane.create_agent(&call.caller, namespace, input).await?,
    )?)
}

async fn read(call: Call) -> Handled {
    let (namespace, agent) = (call.id("namespace")?, call.id("agent")?);
    call.no_query()?;
    let (found, tag) = call.plane.saved_agent(&call.caller, namespace, agent).await?;
    Ok(Reply::ok(found)?.tagged(&tag))
}

async fn update(call: Call) -> Handled {
    let (namespace, agent) = (call.id("namespace")?, call.id("agent")?);
    call.no_query()?;
    let input = call.body::<UpdateAgent>()?;
    let changed = call.plane.update_agent(&call.caller, namespace, agent, input).await?;
    let tag = Tag::of_draft(&changed);
    Ok(Reply::ok(changed)?.tagged(&tag))
}

async fn delete(call: Call) -> Handled {
    let (namespace, agent) = (call.id("namespace")?, call.id("agent")?);
    call.no_query()?;
    Ok(Reply::accepted(
        call.plane.delete_agent(&call.caller, namespace, agent).await?,
    )?)
}

/// 202: the version is saved and its deployment queued; it says nothing about readiness (seed).
async fn deploy(call: Call) -> Handled {
    let (namespace, agent) = (call.id("namespace")?, call.id("agent")?);
    call.no_query()?;
    Ok(Reply::accepted(
        call.plane.deploy_agent(&call.caller, namespace, agent).await?,
    )?)
}

/// 202 with a `Location` under which the stop can be followed; an Agent that is being deleted has none.
async fn stop(call: Call) -> Result<(HeaderMap, Reply), Rejected> {
    let (namespace, agent) = (call.id("namespace")?, call.id("agent")?);
    call.no_query()?;
    let stop = call.plane.request_stop(&call.caller, namespace, agent).await?;
    let mut headers = HeaderMap::new();
    let place = stop
        .operation
        .map(|operation| format!("/namespaces/{namespace}/agents/{agent}/stops/{operation}"));
    if let Some(place) = place.and_then(|place| HeaderValue::from_str(&place).ok()) {
        headers.insert(header::LOCATION, place);
    }
    Ok((headers, Reply::accepted(stop.agent)?))
}

async fn stop_status(call: Call) -> Handled {
    let (namespace, agent) = (call.id("namespace")?, call.id("agent")?);
    let operation = call.text("operation");
    let operation = operation.parse().ok().filter(|id: &Uuid| id.to_string() == operation);
    let operation = operation.ok_or_else(|| {
        Refusal::invalid("The stop's id in the path must be a lowercase UUID.")
            .at("/operation", DetailCode::InvalidFormat)
    })?;
    call.no_query()?;
    Ok(Reply::ok(
        call.plane
            .stop_status(&call.caller, namespace, agent, operation)
            .await?,
    )?)
}

async fn gateway(call: Call) -> Handled {
    let (namespace, agent) = (call.id("namespace")?, call.id("agent")?);
    call.no_query()?;
    Ok(Reply::ok(
        call.plane.gateway_endpoint(&call.caller, namespace, agent).await?,
    )?)
}

async fn credentials(call: Call) -> Handled {
    let (namespace, agent) = (call.id("namespace")?, call.id("agent")?);
    call.no_query()?;
    Ok(Reply::ok(
        call.plane.runtime_credentials(&call.caller, namespace, agent).await?,
    )?)
}

async fn provision_credentials(call: Call) -> Handled {
    let (namespace, agent) = (call.id("namespace")?, call.id("agent")?);
    call.no_query()?;
    Ok(Reply::ok(
        call.plane
            .provision_runtime_credentials(&call.caller, namespace, agent)
            .await?,
    )?)
}

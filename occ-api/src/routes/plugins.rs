//! The catalogue of plugins: for an Agent that is to be created, and for one that is there.

use axum::{Router, routing::post};
use occ_core::{
    control::NamedPlugin,
    id::{AgentId, NamespaceId},
};

use super::Handled;
use crate::{Api, call::Call, catalogue::NoFields, envelope::Reply};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/namespaces/{namespace}/agents/plugins", post(list))
        .route("/namespaces/{namespace}/agents/plugins/details", post(read))
        .route("/namespaces/{namespace}/agents/{agent}/plugins", post(list_of_agent))
        .route(
            "/namespaces/{namespace}/agents/{agent}/plugins/details",
            post(read_of_agent),
        )
}

async fn list(call: Call) -> Handled {
    listed(&call, call.id("namespace")?, None).await
}

async fn list_of_agent(call: Call) -> Handled {
    listed(&call, call.id("namespace")?, Some(call.id("agent")?)).await
}

async fn listed(call: &Call, namespace: NamespaceId, agent: Option<AgentId>) -> Handled {
    call.no_query()?;
    call.body::<NoFields>()?;
    Ok(Reply::ok(
        call.plane.plugin_catalog(&call.caller, namespace, agent).await?,
    )?)
}

async fn read(call: Call) -> Handled {
    details(&call, call.id("namespace")?, None).await
}

async fn read_of_agent(call: Call) -> Handled {
    details(&call, call.id("namespace")?, Some(call.id("agent")?)).await
}

async fn details(call: &Call, namespace: NamespaceId, agent: Option<AgentId>) -> Handled {
    call.no_query()?;
    let named = call.body::<NamedPlugin>()?;
    let found = call
        .plane
        .plugin_details(&call.caller, namespace, agent, &named)
        .await?;
    Ok(Reply::ok(found)?)
}

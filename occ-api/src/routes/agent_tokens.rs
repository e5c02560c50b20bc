//! Tokens by which Agents are recognised.

use axum::{Router, routing::post};
use occ_core::{admission::Refusal, control::CreateAgentToken, id::AgentTokenId, reason::ApiCode, time::Timestamp};
use schemars::JsonSchema;
use serde_json::json;

use super::Handled;
use crate::{Api, call::Call, envelope::Reply};

/// A new token of an Agent, which is shown this once.
#[derive(JsonSchema)]
#[schemars(rename = "AgentToken", rename_all = "camelCase")]
#[allow(dead_code)] // Its schema is what is used; the token is never held in a type that could be printed.
pub(crate) struct AgentTokenReply {
    id: AgentTokenId,
    /// The whole token, for the `authorization` header, as a bearer token.
    value: String,
    expires_at: Timestamp,
}

pub(super) fn routes() -> Router<Api> {
    Router::new().route("/namespaces/{namespace}/agents/{agent}/tokens", post(create))
}

/// The whole token is in this response and never again.
async fn create(call: Call) -> Handled {
    let (namespace, agent) = (call.id("namespace")?, call.id("agent")?);
    call.no_query()?;
    let input = call.body::<CreateAgentToken>()?;
    let token = call
        .plane
        .create_agent_token(&call.caller, namespace, agent, input)
        .await?;
    let value = token.value.expose_str();
    let value = value.ok_or_else(|| Refusal::new(ApiCode::InternalError))?;
    let shown = json!({ "id": token.id, "value": value, "expiresAt": token.expires_at });
    Ok(Reply::created(shown)?)
}

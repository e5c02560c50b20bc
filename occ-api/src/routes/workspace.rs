//! Files of an Agent's live workspace.

use axum::{Router, routing::get};
use occ_core::{
    admission::{DetailCode, Refusal},
    resource::WorkspaceFileName,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Handled;
use crate::{Api, call::Call, envelope::Reply};

pub(super) fn routes() -> Router<Api> {
    Router::new().route(
        "/namespaces/{namespace}/agents/{agent}/workspace/files/{name}",
        get(read).put(write),
    )
}

/// What a file is to hold.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "WriteWorkspaceFile")]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    /// At most 16 KiB of UTF-8 without NUL.
    #[schemars(length(max = 16384))]
    content: String,
}

fn name(call: &Call) -> Result<WorkspaceFileName, Refusal> {
    WorkspaceFileName::parse(call.text("name")).ok_or_else(|| {
        Refusal::invalid("The file must be AGENTS.md, SOUL.md, IDENTITY.md or USER.md.")
            .at("/name", DetailCode::InvalidValue)
    })
}

async fn read(call: Call) -> Handled {
    let (namespace, agent, name) = (call.id("namespace")?, call.id("agent")?, name(&call)?);
    call.no_query()?;
    Ok(Reply::ok(
        call.plane.workspace_file(&call.caller, namespace, agent, name).await?,
    )?)
}

async fn write(call: Call) -> Handled {
    let (namespace, agent, name) = (call.id("namespace")?, call.id("agent")?, name(&call)?);
    call.no_query()?;
    let input = call.body::<Write>()?;
    let written = call
        .plane
        .write_workspace_file(&call.caller, namespace, agent, name, &input.content)
        .await?;
    Ok(Reply::ok(written)?)
}

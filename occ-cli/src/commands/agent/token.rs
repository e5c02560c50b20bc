//! `occ agent token`

use std::{path::PathBuf, time::Duration};

use clap::Args;
use occ_core::{id::AgentTokenId, secret_value::SecretValue, time::Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{super::key::NewFile, Context};
use crate::{connect::Session, duration::duration, exit::Done, paths};

#[derive(Debug, Args)]
#[command(
    after_help = "Whoever has the token may do what the Agent may. It is shown this once, kept nowhere, and ends with the Agent.

Example: occ agent token triage --expires-in 15m --out triage.token"
)]
pub(super) struct Token {
    /// Its name or id.
    agent: String,
    /// How long it lasts, 1m to 1h [default: 15m].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    expires_in: Option<Duration>,
    /// A new file that gets the token, readable by you alone [default: it is printed].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The API's answer; the value is shown this once.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Issued {
    id: AgentTokenId,
    value: String,
    expires_at: Timestamp,
}

pub(super) async fn create(session: &Session, token: Token, cx: &Context<'_>) -> Done {
    let agent = session.agent(&token.agent).await?;
    let path = format!("{}/tokens", paths::agent(session.namespace, agent.id));
    let body = json!({ "expiresIn": token.expires_in.map(|duration| duration.as_secs()) });
    let out = token.out.as_deref().map(NewFile::create).transpose()?;
    let issued = match session.client.post::<Issued>(&path, &body).await {
        Ok(issued) => issued,
        Err(error) => {
            out.into_iter().for_each(NewFile::discard);
            return Err(error.into());
        }
    };
    let (field, shown) = match out {
        Some(file) => ("tokenFile", file.keep(&SecretValue::from(issued.value))?),
        None => ("value", issued.value),
    };
    let mut item = json!({ "id": issued.id, "expiresAt": issued.expires_at });
    item[field] = Value::from(shown.as_str());
    cx.output.one(&item, |_| {
        vec![
            ("id", issued.id.to_string()),
            ("expires", issued.expires_at.to_string()),
            (if field == "value" { "token" } else { "token file" }, shown.clone()),
        ]
    })
}

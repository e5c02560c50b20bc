//! Looking at what runs, and talking to it.

use std::time::Duration;

use clap::Args;
use occ_core::{
    control::{CredentialStatus, DiagnosticsView, LogsView},
    driver::GatewayEndpoint,
    reason::Token,
};
use serde_json::json;

use super::{super::word, Context, maybe};
use crate::{chat, connect::Session, duration::duration, exit::Done, paths, wait};

#[derive(Debug, Args)]
#[command(after_help = "Example: occ agent logs support --lines 50")]
pub(super) struct Logs {
    /// The Agent: its name or id.
    agent: String,
    /// The version: its number or id [default: the latest].
    revision: Option<String>,
    /// How many lines.
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1000))]
    lines: u16,
    /// The component [default: the gateway].
    #[arg(long, value_name = "NAME", value_parser = component)]
    component: Option<Token>,
}

#[derive(Debug, Args)]
pub(super) struct Diagnostics {
    /// The Agent: its name or id.
    agent: String,
    /// The version: its number or id [default: the latest].
    revision: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Credentials {
    /// Its name or id.
    agent: String,
    /// Create them, before the first version; they are never replaced.
    #[arg(long)]
    provision: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: occ agent chat support \"What is the status of my order?\"")]
pub(super) struct Chat {
    /// Its name or id.
    agent: String,
    /// What to say.
    message: String,
    /// How long the reply may take.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    timeout: Duration,
}

pub(super) async fn logs(session: &Session, logs: Logs, cx: &Context<'_>) -> Done {
    let agent = session.agent(&logs.agent).await?;
    let revision = session.revision(&agent, logs.revision.as_deref()).await?;
    let component = logs
        .component
        .map_or_else(String::new, |name| format!("&component={name}"));
    let path = format!(
        "{}/runtime/logs?lines={}{component}",
        wait::path(session.namespace, agent.id, revision),
        logs.lines
    );
    let view: LogsView = session.client.get(&path).await?;
    cx.output
        .text(&view, |view| view.lines.iter().flat_map(|line| [line, "\n"]).collect())
}

pub(super) async fn diagnostics(session: &Session, diagnostics: Diagnostics, cx: &Context<'_>) -> Done {
    let agent = session.agent(&diagnostics.agent).await?;
    let revision = session.revision(&agent, diagnostics.revision.as_deref()).await?;
    let path = format!("{}/diagnostics", wait::path(session.namespace, agent.id, revision));
    let view: DiagnosticsView = session.client.act(&path).await?;
    if cx.output.is_json() {
        return cx.output.one(&view, |_| Vec::new());
    }
    let columns = ["COMPONENT", "CHECK", "STATUS", "CODE", "CHECKED"];
    cx.output.list(&view.checks, &columns, |check| {
        vec![
            check.component.to_string(),
            check.check.to_string(),
            word(check.status),
            maybe(check.code.as_ref()),
            check.checked_at.to_string(),
        ]
    })
}

pub(super) async fn credentials(session: &Session, credentials: Credentials, cx: &Context<'_>) -> Done {
    let agent = session.agent(&credentials.agent).await?;
    let path = format!("{}/runtime-credentials", paths::agent(session.namespace, agent.id));
    let status: CredentialStatus = if credentials.provision {
        session.client.act(&path).await?
    } else {
        session.client.get(&path).await?
    };
    cx.output.one(&status, |status| {
        let exist = if status.transport_configured {
            "exist"
        } else {
            "missing"
        };
        vec![("gateway credentials", exist.to_owned())]
    })
}

pub(super) async fn chat(session: &Session, chat: Chat, cx: &Context<'_>) -> Done {
    let agent = session.agent(&chat.agent).await?;
    let path = format!("{}/gateway", paths::agent(session.namespace, agent.id));
    let gateway: GatewayEndpoint = session.client.get(&path).await?;
    let reply = chat::ask(&gateway, &chat.message, chat.timeout).await?;
    cx.output.text(&json!({ "reply": reply }), |_| format!("{reply}\n"))
}

fn component(text: &str) -> Result<Token, String> {
    Token::parse(text).ok_or_else(|| "a component's name has letters, digits and . _ ~ : @ - alone".to_owned())
}

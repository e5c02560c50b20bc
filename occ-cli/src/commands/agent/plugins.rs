//! What an Agent can select.

use clap::Args;
use occ_core::{control::PluginCatalogView, driver::PluginDetails};
use serde_json::json;

use super::Context;
use crate::{connect::Session, exit::Done, paths};

#[derive(Debug, Args)]
#[command(after_help = "Example: occ agent plugins --details google-calendar@openai-curated-remote")]
pub(super) struct Plugins {
    /// The Agent that would select them, by name or id; a new one when none is named.
    agent: Option<String>,
    /// Show the tools of this plugin instead.
    #[arg(long, value_name = "PLUGIN")]
    details: Option<String>,
}

pub(super) async fn list(session: &Session, plugins: Plugins, cx: &Context<'_>) -> Done {
    let agents = match &plugins.agent {
        Some(agent) => paths::agent(session.namespace, session.agent(agent).await?.id),
        None => paths::agents(session.namespace),
    };
    if let Some(plugin) = plugins.details {
        let path = format!("{agents}/plugins/details");
        let found: PluginDetails = session.client.post(&path, &json!({ "pluginId": plugin })).await?;
        return cx.output.list(&found.tools, &["TOOL", "NAME", "WRITES"], |tool| {
            vec![tool.id.clone(), tool.name.clone(), tool.writes.to_string()]
        });
    }
    let catalog: PluginCatalogView = session.client.post(&format!("{agents}/plugins"), &json!({})).await?;
    cx.output
        .list(&catalog.plugins, &["PLUGIN", "NAME", "ABOUT"], |plugin| {
            vec![
                plugin.id.as_str().to_owned(),
                plugin.name.clone(),
                plugin.description.clone().unwrap_or_default(),
            ]
        })
}

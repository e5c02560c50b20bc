//! `occ preset`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use occ_core::{
    id::PresetId,
    resource::{LaunchSettings, Name, Preset},
};
use serde_json::json;

use super::Context;
use crate::{
    connect::{Scope, Session, missing},
    exit::{Done, Failure},
    input,
    output::Fields,
};

/// Presets: launch settings under a name, copied into Agent drafts.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create a Preset.
    #[command(
        after_help = "The settings are a JSON object with any of configurationId, executionMode, backendId and harnessAuth.

Examples:
  echo '{\"executionMode\":\"dedicated\"}' | occ preset create support --settings -
  occ agent create triage --configuration cfg_... --preset support"
    )]
    Create {
        /// Its name.
        name: Name,
        /// The file that holds the settings; - is standard input.
        #[arg(long, value_name = "FILE")]
        settings: PathBuf,
    },
    /// List the Presets.
    List,
    /// Show a Preset.
    Show {
        /// Its name or id.
        preset: String,
    },
    /// Delete a Preset. Agents that were made from it are not concerned.
    Delete {
        /// Its name or id.
        preset: String,
    },
}

/// The Preset with this name or id.
pub(super) async fn find(session: &Session, text: &str) -> Done<Preset> {
    if let Ok(id) = text.parse::<PresetId>() {
        return Ok(session.client.get(&session.path(&format!("presets/{id}"))).await?);
    }
    let all: Vec<Preset> = session.client.get(&session.path("presets")).await?;
    let found = all.into_iter().find(|preset| preset.name.as_str() == text);
    found.ok_or_else(|| missing("Preset", text))
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    match noun.verb {
        Verb::Create { name, settings } => {
            let settings: LaunchSettings = serde_json::from_str(&input::text(&settings)?)
                .map_err(|_| Failure::usage("the settings are not a JSON object of launch settings"))?;
            let session = noun.scope.open(cx.connection).await?;
            let body = json!({ "name": name, "settings": settings });
            let made: Preset = session.client.post(&session.path("presets"), &body).await?;
            cx.output.one(&made, fields)
        }
        Verb::List => {
            let session = noun.scope.open(cx.connection).await?;
            let all: Vec<Preset> = session.client.get(&session.path("presets")).await?;
            cx.output.list(&all, &["NAME", "ID"], |preset| {
                vec![preset.name.to_string(), preset.id.to_string()]
            })
        }
        Verb::Show { preset } => {
            let session = noun.scope.open(cx.connection).await?;
            cx.output.one(&find(&session, &preset).await?, fields)
        }
        Verb::Delete { preset } => {
            let session = noun.scope.open(cx.connection).await?;
            let id = find(&session, &preset).await?.id;
            session.client.delete(&session.path(&format!("presets/{id}"))).await?;
            cx.output.done("deleted")
        }
    }
}

fn fields(preset: &Preset) -> Fields {
    let settings = serde_json::to_string_pretty(&preset.settings).unwrap_or_default();
    vec![
        ("name", preset.name.to_string()),
        ("id", preset.id.to_string()),
        ("settings", settings),
        ("created", preset.created_at.to_string()),
    ]
}

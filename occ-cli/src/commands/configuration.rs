//! `occ configuration`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use occ_core::{
    control::ConfigurationSummary,
    id::ConfigurationId,
    resource::{Configuration, EnvName, SecretBindings},
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{Context, word};
use crate::{
    connect::{Scope, Session},
    exit::Done,
    input, lookup,
    output::Fields,
};

/// Configurations: native documents that deployments snapshot.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create a Configuration from a native document.
    #[command(after_help = "Examples:
  occ configuration create openclaw.yaml
  jq .config stack.json | occ configuration create - --bind SLACK_BOT_TOKEN=slack-token")]
    Create {
        /// The document, JSON or YAML; - is standard input.
        file: PathBuf,
        /// A Secret that the gateway's environment receives: VARIABLE=SECRET. Repeatable.
        #[arg(long = "bind", value_name = "VARIABLE=SECRET", value_parser = binding)]
        bindings: Vec<(EnvName, String)>,
    },
    /// List the Configurations.
    List,
    /// Show a Configuration with its document.
    Show {
        /// Its id.
        #[arg(value_parser = lookup::configuration)]
        configuration: ConfigurationId,
    },
    /// Replace a Configuration's document. Versions that exist keep theirs.
    Update {
        /// Its id.
        #[arg(value_parser = lookup::configuration)]
        configuration: ConfigurationId,
        /// The whole new document, JSON or YAML; - is standard input.
        file: PathBuf,
        /// The whole new set of bindings: VARIABLE=SECRET. Repeatable. [default: the bindings are kept]
        #[arg(long = "bind", value_name = "VARIABLE=SECRET", value_parser = binding)]
        bindings: Vec<(EnvName, String)>,
        /// Bind no Secret any more.
        #[arg(long, conflicts_with = "bindings")]
        no_bindings: bool,
    },
    /// Delete a Configuration that no Agent uses.
    Delete {
        /// Its id.
        #[arg(value_parser = lookup::configuration)]
        configuration: ConfigurationId,
    },
}

/// What the API takes. The document stays as it was written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    values: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_bindings: Option<Value>,
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    let path = |session: &Session, id: ConfigurationId| session.path(&format!("configurations/{id}"));
    match noun.verb {
        Verb::Create { file, bindings } => {
            // The document first: what is wrong here need not reach the API.
            let values = input::document(&file)?;
            let session = noun.scope.open(cx.connection).await?;
            let bindings = bound(&session, bindings).await?;
            let body = Body {
                kind: Some("agent"),
                values: &values,
                secret_bindings: Some(bindings),
            };
            let created: Configuration = session.client.post(&session.path("configurations"), &body).await?;
            cx.output.one(&created, fields)
        }
        Verb::List => {
            let session = noun.scope.open(cx.connection).await?;
            let all: Vec<ConfigurationSummary> = session.client.get(&session.path("configurations")).await?;
            cx.output
                .list(&all, &["ID", "KIND", "GENERATION", "SECRETS", "CREATED"], |row| {
                    vec![
                        row.id.to_string(),
                        word(row.kind),
                        row.generation.to_string(),
                        row.secret_bindings.len().to_string(),
                        row.created_at.to_string(),
                    ]
                })
        }
        Verb::Show { configuration } => {
            let session = noun.scope.open(cx.connection).await?;
            let found: Configuration = session.client.get(&path(&session, configuration)).await?;
            cx.output.one(&found, |found| {
                let mut all = fields(found);
                let document = serde_json::to_string_pretty(&found.values).unwrap_or_default();
                all.push(("document", document));
                all
            })
        }
        Verb::Update {
            configuration,
            file,
            bindings,
            no_bindings,
        } => {
            let values = input::document(&file)?;
            let session = noun.scope.open(cx.connection).await?;
            let replaced = no_bindings || !bindings.is_empty();
            let body = Body {
                kind: None,
                values: &values,
                secret_bindings: if replaced {
                    Some(bound(&session, bindings).await?)
                } else {
                    None
                },
            };
            let updated: Configuration = session.client.patch(&path(&session, configuration), &body).await?;
            cx.output.one(&updated, fields)
        }
        Verb::Delete { configuration } => {
            let session = noun.scope.open(cx.connection).await?;
            session.client.delete(&path(&session, configuration)).await?;
            cx.output.done("deleted")
        }
    }
}

fn binding(text: &str) -> Result<(EnvName, String), String> {
    let (name, secret) = text.split_once('=').ok_or("expected VARIABLE=SECRET")?;
    let name = EnvName::try_from(name.to_owned()).map_err(|error| format!("the variable {error}"))?;
    Ok((name, secret.to_owned()))
}

async fn bound(session: &Session, bindings: Vec<(EnvName, String)>) -> Done<Value> {
    let mut all = serde_json::Map::new();
    for (name, secret) in bindings {
        let source =
            json!({ "kind": "secret", "namespaceId": session.namespace, "id": session.secret(&secret).await? });
        all.insert(
            name.to_string(),
            json!({ "source": source, "delivery": { "type": "env" } }),
        );
    }
    Ok(all.into())
}

fn fields(configuration: &Configuration) -> Fields {
    vec![
        ("id", configuration.id.to_string()),
        ("kind", word(configuration.kind)),
        ("generation", configuration.generation.to_string()),
        ("secrets", secrets(&configuration.secret_bindings)),
        ("created", configuration.created_at.to_string()),
    ]
}

/// Which variable gets which Secret.
pub(super) fn secrets(bindings: &SecretBindings) -> String {
    let lines: Vec<_> = bindings
        .iter()
        .map(|(name, binding)| format!("{name}={}", binding.source.id))
        .collect();
    lines.join("\n")
}

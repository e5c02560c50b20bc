//! `occ secret`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use occ_core::{control::SecretView, resource::Name, secret_value::SecretValue};
use serde_json::json;

use super::Context;
use crate::{
    connect::Scope,
    exit::{Done, Failure},
    input,
    output::Fields,
};

/// Secrets: values that go in and never come out.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Store a value under a name.
    #[command(
        after_help = "The value is read from --file, or from standard input; a terminal asks for it. It is never an argument.
One line break at its end is not part of it.

Examples:
  occ secret create openai-key --file ~/openai.key
  pass show openai | occ secret create openai-key"
    )]
    Create {
        /// Its name.
        name: Name,
        /// The file that holds the value; - is standard input.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// List the Secrets.
    List,
    /// Show a Secret, without its value, and who uses it.
    Show {
        /// Its name or id.
        secret: String,
    },
    /// Replace a Secret's value.
    Update {
        /// Its name or id.
        secret: String,
        /// The file that holds the value; - is standard input.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Delete a Secret that nothing uses.
    Delete {
        /// Its name or id.
        secret: String,
    },
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    match noun.verb {
        Verb::Create { name, file } => {
            let value = input::secret(file.as_deref())?;
            let session = noun.scope.open(cx.connection).await?;
            let body = json!({ "name": name, "value": text(&value)? });
            let created: SecretView = session.client.post(&session.path("secrets"), &body).await?;
            cx.output.one(&created, fields)
        }
        Verb::List => {
            let session = noun.scope.open(cx.connection).await?;
            let all: Vec<SecretView> = session.client.get(&session.path("secrets")).await?;
            cx.output.list(&all, &["NAME", "ID"], |secret| {
                vec![secret.name.to_string(), secret.id.to_string()]
            })
        }
        Verb::Show { secret } => {
            let session = noun.scope.open(cx.connection).await?;
            let id = session.secret(&secret).await?;
            let found: SecretView = session.client.get(&session.path(&format!("secrets/{id}"))).await?;
            cx.output.one(&found, fields)
        }
        Verb::Update { secret, file } => {
            let value = input::secret(file.as_deref())?;
            let session = noun.scope.open(cx.connection).await?;
            let id = session.secret(&secret).await?;
            let body = json!({ "value": text(&value)? });
            let updated: SecretView = session
                .client
                .patch(&session.path(&format!("secrets/{id}")), &body)
                .await?;
            cx.output.one(&updated, fields)
        }
        Verb::Delete { secret } => {
            let session = noun.scope.open(cx.connection).await?;
            let id = session.secret(&secret).await?;
            session.client.delete(&session.path(&format!("secrets/{id}"))).await?;
            cx.output.done("deleted")
        }
    }
}

fn text(value: &SecretValue) -> Done<&str> {
    value
        .expose_str()
        .ok_or_else(|| Failure::usage("a secret value must be UTF-8 text"))
}

fn fields(secret: &SecretView) -> Fields {
    let mut fields = vec![("name", secret.name.to_string()), ("id", secret.id.to_string())];
    if let Some(consumers) = &secret.consumers {
        let agents = consumers.agents.iter().map(ToString::to_string);
        let configurations = consumers.configurations.iter().map(ToString::to_string);
        let accounts = consumers.service_accounts.iter().map(ToString::to_string);
        let sources = consumers.credential_sources.iter().map(ToString::to_string);
        let others = configurations.chain(accounts).chain(sources);
        let more = (consumers.unreadable > 0).then(|| format!("{} that you may not read", consumers.unreadable));
        fields.push((
            "used by",
            agents.chain(others).chain(more).collect::<Vec<_>>().join("\n"),
        ));
    }
    fields
}

//! `occ credential-source`

use clap::{Args, Subcommand};
use occ_core::{
    control::{CredentialSourceView, WithdrawalView},
    id::CredentialSourceId,
    resource::Name,
};
use serde_json::{Map, Value, json};

use super::{Context, word};
use crate::{
    connect::{Scope, Session, missing},
    exit::Done,
    output::Fields,
    paths,
};

/// Credential sources: credentials that a Credential Gateway mediates, so that no workload holds them.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Register a credential source.
    #[command(after_help = "Example: occ credential-source register model --type openai --secret api_key=openai-key")]
    Register {
        /// Its name.
        name: Name,
        /// What it is, in the gateway's catalogue.
        #[arg(long = "type", value_name = "TYPE")]
        kind: String,
        /// A setting: FIELD=VALUE. Repeatable.
        #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = pair)]
        config: Vec<(String, String)>,
        /// A credential: FIELD=SECRET, the Secret by name or id. Repeatable.
        #[arg(long = "secret", value_name = "FIELD=SECRET", value_parser = pair)]
        secrets: Vec<(String, String)>,
    },
    /// List the credential sources.
    List,
    /// Show a credential source, and how the gateway sees it now.
    Show {
        /// Its name or id.
        source: String,
    },
    /// Read a source's credentials anew, from the same Secrets or from others.
    Refresh {
        /// Its name or id.
        source: String,
        /// A credential: FIELD=SECRET, the Secret by name or id. Repeatable.
        #[arg(long = "secret", value_name = "FIELD=SECRET", value_parser = pair)]
        secrets: Vec<(String, String)>,
    },
    /// Ask for the end of the use of a source by an Agent's selected version. A worker brings it about.
    Withdraw(Used),
    /// Show how far the withdrawal of a source from an Agent's selected version is.
    Withdrawal(Used),
    /// Delete a source that no Agent uses, and the gateway's copy of its credentials.
    Delete {
        /// Its name or id.
        source: String,
    },
}

/// A source as an Agent uses it.
#[derive(Debug, Args)]
struct Used {
    /// Its name or id.
    source: String,
    /// The Agent, by name or id.
    #[arg(long)]
    agent: String,
}

impl Used {
    async fn path(&self, session: &Session) -> Done<String> {
        let id = find(session, &self.source).await?;
        let agent = paths::agent(session.namespace, session.agent(&self.agent).await?.id);
        Ok(format!("{agent}/credential-sources/{id}"))
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (field, value) = text.split_once('=').ok_or("expected FIELD=VALUE")?;
    Ok((field.to_owned(), value.to_owned()))
}

pub(super) async fn find(session: &Session, text: &str) -> Done<CredentialSourceId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let all: Vec<CredentialSourceView> = session.client.get(&session.path("credential-sources")).await?;
    let found = all.iter().find(|source| source.name.as_str() == text);
    found
        .map(|source| source.id)
        .ok_or_else(|| missing("credential source", text))
}

async fn references(session: &Session, secrets: &[(String, String)]) -> Done<Value> {
    let mut named = Map::new();
    for (field, secret) in secrets {
        let id = session.secret(secret).await?;
        let source = json!({ "kind": "secret", "namespaceId": session.namespace, "id": id });
        named.insert(field.clone(), source);
    }
    Ok(named.into())
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    let session = noun.scope.open(cx.connection).await?;
    let path = |id: CredentialSourceId| session.path(&format!("credential-sources/{id}"));
    match noun.verb {
        Verb::Register {
            name,
            kind,
            config,
            secrets,
        } => {
            let config: Map<_, _> = config.into_iter().map(|(field, value)| (field, value.into())).collect();
            let body = json!({
                "name": name,
                "type": kind,
                "config": config,
                "secrets": references(&session, &secrets).await?,
            });
            let made: CredentialSourceView = session.client.post(&session.path("credential-sources"), &body).await?;
            cx.output.one(&made, fields)
        }
        Verb::List => {
            let all: Vec<CredentialSourceView> = session.client.get(&session.path("credential-sources")).await?;
            cx.output.list(&all, &["NAME", "ID", "TYPE", "STATE"], |source| {
                vec![
                    source.name.to_string(),
                    source.id.to_string(),
                    source.kind.to_string(),
                    word(source.state),
                ]
            })
        }
        Verb::Show { source } => {
            let found: CredentialSourceView = session.client.get(&path(find(&session, &source).await?)).await?;
            cx.output.one(&found, fields)
        }
        Verb::Refresh { source, secrets } => {
            let id = find(&session, &source).await?;
            let body = if secrets.is_empty() {
                json!({})
            } else {
                json!({ "secrets": references(&session, &secrets).await? })
            };
            let changed: CredentialSourceView = session.client.patch(&path(id), &body).await?;
            cx.output.one(&changed, fields)
        }
        Verb::Withdraw(used) => {
            let path = format!("{}/withdraw", used.path(&session).await?);
            let asked: WithdrawalView = session.client.act(&path).await?;
            cx.output.one(&asked, withdrawal)
        }
        Verb::Withdrawal(used) => {
            let path = format!("{}/withdrawal", used.path(&session).await?);
            let asked: WithdrawalView = session.client.get(&path).await?;
            cx.output.one(&asked, withdrawal)
        }
        Verb::Delete { source } => {
            let id = find(&session, &source).await?;
            session.client.delete(&path(id)).await?;
            cx.output.done("deleted")
        }
    }
}

fn withdrawal(asked: &WithdrawalView) -> Fields {
    let reason = asked.reason.map(|reason| reason.code().to_owned());
    vec![
        ("version", asked.revision_id.to_string()),
        ("state", word(asked.state)),
        ("requested", asked.requested_at.to_string()),
        ("in progress", asked.withdrawal_in_progress.to_string()),
        ("reason", reason.unwrap_or_default()),
    ]
}

fn fields(source: &CredentialSourceView) -> Fields {
    vec![
        ("name", source.name.to_string()),
        ("id", source.id.to_string()),
        ("type", source.kind.to_string()),
        ("state", word(source.state)),
        (
            "gateway sees",
            source.status.map(|status| word(status.state)).unwrap_or_default(),
        ),
        ("created", source.created_at.to_string()),
    ]
}

//! `occ service-account`

use clap::{Args, Subcommand, ValueEnum};
use occ_core::{control::AccountView, id::ServiceAccountId, resource::Name};
use serde_json::{Value, json};

use super::{Context, word};
use crate::{
    connect::{Scope, Session, missing},
    exit::Done,
    output::Fields,
};

/// Service accounts: a provider's credentials that several Agents share.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create a service account.
    #[command(after_help = "Example: occ service-account create shared --kind api-key --secret openai-key")]
    Create {
        /// Its name.
        name: Name,
        #[command(flatten)]
        credential: Option<Credential>,
    },
    /// List the service accounts.
    List,
    /// Show a service account.
    Show {
        /// Its name or id.
        account: String,
    },
    /// Replace a service account's imported credential.
    SetCredential {
        /// Its name or id.
        account: String,
        #[command(flatten)]
        credential: Credential,
    },
    /// Have the selected Service Account Driver issue an access token, which nobody is shown.
    Issue {
        /// Its name or id.
        account: String,
    },
    /// Delete a service account that no Agent uses, and its issued token.
    Delete {
        /// Its name or id.
        account: String,
    },
}

#[derive(Debug, Args)]
struct Credential {
    /// What the credential is.
    #[arg(long, value_enum, required = false, requires = "secret")]
    kind: Kind,
    /// The Secret that holds it, by name or id.
    #[arg(long, required = false, requires = "kind")]
    secret: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// A provider's API key.
    ApiKey,
    /// An OAuth access token.
    OauthAccessToken,
}

impl Credential {
    async fn body(&self, session: &Session) -> Done<Value> {
        let kind = match self.kind {
            Kind::ApiKey => "api_key",
            Kind::OauthAccessToken => "oauth_access_token",
        };
        let id = session.secret(&self.secret).await?;
        let source = json!({ "kind": "secret", "namespaceId": session.namespace, "id": id });
        Ok(json!({ "kind": kind, "source": source }))
    }
}

pub(super) async fn find(session: &Session, text: &str) -> Done<ServiceAccountId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let all: Vec<AccountView> = session.client.get(&session.path("service-accounts")).await?;
    let found = all.iter().find(|account| account.name.as_str() == text);
    found
        .map(|account| account.id)
        .ok_or_else(|| missing("service account", text))
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    let session = noun.scope.open(cx.connection).await?;
    let path = |id: ServiceAccountId| session.path(&format!("service-accounts/{id}"));
    match noun.verb {
        Verb::Create { name, credential } => {
            let mut body = json!({ "name": name });
            if let Some(credential) = credential {
                body["credential"] = credential.body(&session).await?;
            }
            let made: AccountView = session.client.post(&session.path("service-accounts"), &body).await?;
            cx.output.one(&made, fields)
        }
        Verb::List => {
            let all: Vec<AccountView> = session.client.get(&session.path("service-accounts")).await?;
            cx.output.list(&all, &["NAME", "ID", "CREDENTIAL"], |account| {
                vec![account.name.to_string(), account.id.to_string(), credential(account)]
            })
        }
        Verb::Show { account } => {
            let found: AccountView = session.client.get(&path(find(&session, &account).await?)).await?;
            cx.output.one(&found, fields)
        }
        Verb::SetCredential { account, credential } => {
            let id = find(&session, &account).await?;
            let body = credential.body(&session).await?;
            let changed: AccountView = session.client.patch(&format!("{}/credential", path(id)), &body).await?;
            cx.output.one(&changed, fields)
        }
        Verb::Issue { account } => {
            let path = format!("{}/credentials", path(find(&session, &account).await?));
            let issued: AccountView = session.client.post(&path, &json!({})).await?;
            cx.output.one(&issued, fields)
        }
        Verb::Delete { account } => {
            let id = find(&session, &account).await?;
            session.client.delete(&path(id)).await?;
            cx.output.done("deleted")
        }
    }
}

fn credential(account: &AccountView) -> String {
    let kind = account.credential.as_ref().map(|credential| word(credential.kind));
    kind.unwrap_or_else(|| "none".to_owned())
}

fn fields(account: &AccountView) -> Fields {
    vec![
        ("name", account.name.to_string()),
        ("id", account.id.to_string()),
        ("credential", credential(account)),
        ("created", account.created_at.to_string()),
    ]
}

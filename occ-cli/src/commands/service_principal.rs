//! `occ service-principal`

use clap::{Args, Subcommand};
use occ_core::control::ServicePrincipalView;

use super::{Context, maybe};
use crate::{connect::Scope, exit::Done};

/// Service principals: who a Namespace's policy can name besides people.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the Namespace's service principals; each Agent has one.
    List,
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    let session = noun.scope.open(cx.connection).await?;
    match noun.verb {
        Verb::List => {
            let path = session.path("iam/service-principals");
            let all: Vec<ServicePrincipalView> = session.client.get(&path).await?;
            cx.output.list(&all, &["ID", "AGENT"], |row| {
                vec![row.id.to_string(), maybe(row.agent_id)]
            })
        }
    }
}

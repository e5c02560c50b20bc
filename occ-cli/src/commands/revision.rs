//! `occ revision`

use clap::{Args, Subcommand};
use occ_core::{
    control::{RevisionRead, RevisionView},
    resource::Agent,
};

use super::{Context, maybe, word};
use crate::{
    connect::{Scope, Session},
    exit::Done,
    output::Fields,
    paths,
};

/// Agent revisions: what was admitted, unchangeable.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List an Agent's versions.
    List {
        /// The Agent: its name or id.
        agent: String,
    },
    /// Show a version with its document.
    Show {
        /// The Agent: its name or id.
        agent: String,
        /// The version: its number or id [default: the latest].
        revision: Option<String>,
    },
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    let session = noun.scope.open(cx.connection).await?;
    match noun.verb {
        Verb::List { agent } => {
            let agent = session.agent(&agent).await?;
            let all: Vec<RevisionRead> = session.client.get(&path(&session, &agent, "")).await?;
            let columns = ["REVISION", "ID", "ACTIVE", "HARNESS", "CREATED"];
            cx.output.list(&all, &columns, |row| {
                let (id, number) = row.identity();
                let active = agent.active_revision_id == Some(id);
                let (harness, created) = match row {
                    RevisionRead::Whole(row) => {
                        (format!("{} {}", row.harness.id, word(row.harness.mode)), row.created_at)
                    }
                    RevisionRead::Unreadable(row) => ("cannot be read".to_owned(), row.created_at),
                };
                vec![
                    number.to_string(),
                    id.to_string(),
                    if active { "yes" } else { "" }.to_owned(),
                    harness,
                    created.to_string(),
                ]
            })
        }
        Verb::Show { agent, revision } => {
            let agent = session.agent(&agent).await?;
            let id = session.revision(&agent, revision.as_deref()).await?;
            let found: RevisionView = session.client.get(&path(&session, &agent, &format!("/{id}"))).await?;
            cx.output.one(&found, |found| {
                let mut all = fields(found);
                let document = serde_json::to_string_pretty(&found.configuration).unwrap_or_default();
                all.push(("document", document));
                all
            })
        }
    }
}

fn path(session: &Session, agent: &Agent, rest: &str) -> String {
    format!("{}/revisions{rest}", paths::agent(session.namespace, agent.id))
}

pub(super) fn fields(revision: &RevisionView) -> Fields {
    vec![
        ("revision", revision.revision.to_string()),
        ("id", revision.id.to_string()),
        ("agent", revision.agent_id.to_string()),
        (
            "configuration",
            format!(
                "{} generation {}",
                revision.configuration_id, revision.configuration_generation
            ),
        ),
        (
            "harness",
            format!(
                "{} {} {}",
                revision.harness.id,
                revision.harness.version,
                word(revision.harness.mode)
            ),
        ),
        ("compute", revision.compute.id.clone()),
        ("backend", maybe(revision.backend_id.as_ref())),
        ("auth", word(revision.harness_auth.method())),
        ("digest", revision.digest.clone()),
        ("created", revision.created_at.to_string()),
    ]
}

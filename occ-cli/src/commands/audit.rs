//! `occ audit`

use clap::{Args, Subcommand, ValueEnum};
use occ_core::{control::AuditVerification, id::NamespaceId};
use serde_json::Value;

use super::Context;
use crate::{
    connect::KeyHome,
    exit::{Done, Failure},
};

/// The audit: what was done, by whom, and whether the record of it is untouched. For administrators.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    home: KeyHome,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List what was recorded, the newest first.
    #[command(after_help = "Example: occ audit list --action openclaw.agents.deploy --outcome denied")]
    List(List),
    /// Follow the chain of seals over the audit from its beginning, or from where `occ prune` left it.
    #[command(
        after_help = "The printed head, kept elsewhere, also tells whether the end of the audit was cut off later:
  occ audit verify --expect HEAD fails when the chain does not contain it."
    )]
    Verify {
        /// A head that an earlier verification printed.
        #[arg(long, value_name = "HEAD")]
        expect: Option<String>,
    },
}

#[derive(Debug, Args)]
struct List {
    /// At most so many records.
    #[arg(long, default_value = "50", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Only what was recorded before the record with this sequence.
    #[arg(long, value_name = "SEQUENCE")]
    before: Option<u32>,
    /// Only what concerns this Namespace, by its id.
    #[arg(long, value_name = "ID")]
    in_namespace: Option<NamespaceId>,
    /// Only what this principal did.
    #[arg(long, value_name = "PRINCIPAL", value_parser = super::super::lookup::plain_id)]
    actor: Option<String>,
    /// Only this action, such as openclaw.agents.deploy.
    #[arg(long, value_parser = action)]
    action: Option<String>,
    /// Only what concerns the resource with this id.
    #[arg(long, value_name = "ID", value_parser = super::super::lookup::plain_id)]
    resource: Option<String>,
    /// Only what ended so.
    #[arg(long, value_enum)]
    outcome: Option<Outcome>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Outcome {
    Success,
    Failure,
    Denied,
}

fn action(text: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_lowercase() || matches!(b, b'_' | b'.');
    if !text.is_empty() && text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("an action has lower-case letters, _ and . alone".to_owned())
    }
}

impl List {
    fn path(&self) -> String {
        let outcome = self.outcome.map(|outcome| match outcome {
            Outcome::Success => "success".to_owned(),
            Outcome::Failure => "failure".to_owned(),
            Outcome::Denied => "denied".to_owned(),
        });
        let filters = [
            ("before", self.before.map(|before| before.to_string())),
            ("namespace", self.in_namespace.map(|id| id.to_string())),
            ("actor", self.actor.clone()),
            ("action", self.action.clone()),
            ("resource", self.resource.clone()),
            ("outcome", outcome),
        ];
        filters
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .fold(
                format!("/installation/audit?limit={}", self.limit),
                |path, (name, value)| format!("{path}&{name}={value}"),
            )
    }
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    let client = noun.home.client(cx.connection)?;
    match noun.verb {
        Verb::List(list) => {
            let records: Vec<Value> = client.get(&list.path()).await?;
            let columns = ["SEQUENCE", "WHEN", "OUTCOME", "ACTION", "RESOURCE", "ACTOR", "REASON"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            cx.output.list(&records, &columns, |record| {
                let event = &record["event"];
                vec![
                    record["sequence"].to_string(),
                    text(&record["occurredAt"]),
                    text(&event["outcome"]),
                    text(&event["action"]),
                    text(&event["resource"]["id"]),
                    text(&event["actor"]),
                    text(&event["reasonCode"]),
                ]
            })
        }
        Verb::Verify { expect } => {
            let found: AuditVerification = client.act("/installation/audit/verification").await?;
            if let Some(at) = found.broken_at {
                return Err(Failure::refused(format!(
                    "the audit is not as it was sealed: it is broken at position {at} of its chain"
                )));
            }
            if let Some(expected) = expect.filter(|expected| *expected != found.head) {
                // The chain may have grown since: then a record carries the head.
                let records: Vec<Value> = client.get("/installation/audit?limit=1000").await?;
                if !records.iter().any(|record| record["hash"] == expected.as_str()) {
                    return Err(Failure::refused(
                        "the audit is sealed, and that head is not among its latest 1000 records",
                    ));
                }
            }
            cx.output.one(&found, |found| {
                vec![
                    ("intact", "yes".to_owned()),
                    ("records", found.records.to_string()),
                    ("pruned before", found.pruned.to_string()),
                    ("head", found.head.clone()),
                ]
            })
        }
    }
}

//! `occ prune`

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Args};
use occ_core::{
    resource::PrincipalId,
    retention::{PruneError, Pruned, Retention},
    store::StoreError,
};
use serde_json::json;

use super::Context;
use crate::{
    duration::duration,
    exit::{Done, Failure},
    host::{DataDir, DatabaseArgs},
};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
/// Whoever holds the database; no principal of the Installation.
const ACTOR: &str = "host";

/// Removes what is over and old from the database. Without --apply it only says what would go. The API is not asked.
///
/// Never removed: live work, how a deployment ended, and the newest record of the audit. Runs beside `occ up`. On PostgreSQL as the
/// schema's owner: the role of the application may remove nothing.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: occ prune --work-older-than 30d --audit-older-than 365d --apply",
    group = ArgGroup::new("ages").args(["work_older_than", "audit_older_than"]).required(true).multiple(true),
)]
pub(crate) struct Prune {
    /// Remove finished work that nothing reads any more once it is older than this, such as 30d; at least 1h.
    #[arg(long, value_name = "AGE", value_parser = at_least_an_hour)]
    work_older_than: Option<Duration>,
    /// Remove sealed records of the audit once they are older than this, such as 365d; at least 1d. `occ audit verify` then
    /// follows the chain from there on.
    #[arg(long, value_name = "AGE", value_parser = at_least_a_day)]
    audit_older_than: Option<Duration>,
    /// Remove it, instead of only saying how much it is.
    #[arg(long)]
    apply: bool,
    /// The data directory of the embedded database [default: the one of `occ up`].
    #[arg(long, env = "OCC_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseArgs,
}

fn at_least(text: &str, least: Duration, said: &str) -> Result<Duration, String> {
    let age = duration(text)?;
    if age < least {
        return Err(format!("at least {said}: what is younger may still be looked for"));
    }
    Ok(age)
}

fn at_least_an_hour(text: &str) -> Result<Duration, String> {
    at_least(text, HOUR, "1h")
}

fn at_least_a_day(text: &str) -> Result<Duration, String> {
    at_least(text, DAY, "1d")
}

pub(crate) async fn run(prune: Prune, cx: Context<'_>) -> Done {
    let database = prune.database.choose()?;
    let root = prune.data_dir.map_or_else(DataDir::default_path, Ok)?;
    let retention = Retention {
        work: prune.work_older_than,
        audit: prune.audit_older_than,
    };
    let opened = database.open_existing(&root).await?;
    let store = opened.store();
    let pruned = if prune.apply {
        let actor: PrincipalId = ACTOR.parse().map_err(Failure::usage)?;
        retention.apply(&*store, &actor).await
    } else {
        retention.due(&*store).await.map_err(PruneError::from)
    };
    opened.close().await;
    let pruned = pruned.map_err(|error| match error {
        PruneError::Store(StoreError::NotAllowed) => Failure::refused(
            "this database user may remove nothing: prune as the owner of the schema, as for `occ migrate up`",
        ),
        error => Failure::refused(error),
    })?;
    show(&cx, pruned, prune.apply)
}

fn show(cx: &Context<'_>, pruned: Pruned, applied: bool) -> Done {
    let Pruned { work, audit } = pruned;
    let shown = json!({ "applied": applied, "work": work, "audit": audit });
    cx.output.one(&shown, |_| {
        let count = |count: Option<u64>| count.map_or("kept".to_owned(), |count| count.to_string());
        vec![
            (if applied { "removed" } else { "would remove" }, String::new()),
            ("finished work", count(work)),
            ("audit records", count(audit)),
        ]
    })
}

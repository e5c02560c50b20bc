//! `occ migrate`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use occ_core::store::SchemaVersion;
use serde_json::json;

use super::Context;
use crate::{
    exit::{Done, Exit, Failure},
    host::{DataDir, DatabaseArgs},
};

/// The schema of the database on this host or on a PostgreSQL server. The API is not asked.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    /// The data directory of the embedded database [default: the one of `occ up`].
    #[arg(long, global = true, env = "OCC_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Bring the schema to this program's version; one that a newer program wrote is refused. On PostgreSQL as the schema's owner.
    Up,
    /// Say which version the schema has; the exit code is 1 when it is not this program's.
    Status,
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    let database = noun.database.choose()?;
    let root = noun.data_dir.map_or_else(DataDir::default_path, Ok)?;
    let place = database.place(&root);
    let show = |version: SchemaVersion| {
        let SchemaVersion { found, known } = version;
        cx.output
            .one(&json!({ "database": place, "found": found, "known": known }), |_| {
                vec![
                    ("database", place.clone()),
                    ("schema", found.to_string()),
                    ("this program", known.to_string()),
                ]
            })
    };
    match noun.verb {
        Verb::Up => {
            let before = database.migrate(&root).await?;
            if before.found == before.known {
                return cx.output.done("nothing to do");
            }
            cx.output
                .done(&format!("migrated from {} to {}", before.found, before.known))
        }
        Verb::Status => {
            let version = database.schema(&root).await?;
            show(version)?;
            if version.found == version.known {
                return Ok(());
            }
            let what = if version.found < version.known {
                "run `occ migrate up`"
            } else {
                "a newer program migrated it: run that one"
            };
            Err(Failure::new(
                Exit::Refused,
                format!("the schema is not this program's: {what}"),
            ))
        }
    }
}

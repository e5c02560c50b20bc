//! `occ backup` and `occ restore`

use std::path::{Path, PathBuf};

use clap::Args;
use occ_core::store::sqlite::SqliteStore;
use serde_json::json;

use super::Context;
use crate::{
    exit::{Done, Failure},
    host::{DataDir, Database, Role},
};

/// Copies the embedded database of one moment into a new file, also while `occ up` runs. The keys that seal Secrets are not in it.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The new file.
    file: PathBuf,
    /// The data directory [default: the one of `occ up`].
    #[arg(long, env = "OCC_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Puts a backup in the place of the embedded database. Refuses while `occ up` runs, and when the database knows more than the backup.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup.
    file: PathBuf,
    /// The data directory [default: the one of `occ up`].
    #[arg(long, env = "OCC_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

fn place(data_dir: Option<PathBuf>) -> Done<DataDir> {
    if let Database::Postgres(settings) = Database::from_environment()? {
        return Err(Failure::usage(format!(
            "DATABASE_URL names {settings}: PostgreSQL is backed up with pg_dump (docs/guide/operator.md); \
             unset it to copy the file of a data directory"
        )));
    }
    DataDir::open(&data_dir.map_or_else(DataDir::default_path, Ok)?)
}

/// What is not in a backup, and must be kept apart from it.
fn apart(data: &DataDir) -> String {
    format!(
        "The keys that seal Secrets are not in it: without the key file (below {}, unless the Installation names another) their \
         values are lost, so keep a copy of that elsewhere. Nor are the Installation file and the Agents' directories.",
        data.drivers().display()
    )
}

pub(crate) async fn run(backup: Backup, cx: Context<'_>) -> Done {
    let data = place(backup.data_dir)?;
    let copied = SqliteStore::backup(data.database(), &backup.file).await;
    copied.map_err(Failure::refused)?;
    show(&cx, "backup", &backup.file, &data)
}

pub(crate) async fn restore(restore: Restore, cx: Context<'_>) -> Done {
    let data = place(restore.data_dir)?;
    // Nobody starts meanwhile.
    let _locks = [data.lock(Role::Api)?, data.lock(Role::Worker)?];
    let restored = SqliteStore::restore(&restore.file, data.database()).await;
    restored.map_err(Failure::refused)?;
    show(&cx, "restored", &data.database(), &data)
}

fn show(cx: &Context<'_>, what: &'static str, file: &Path, data: &DataDir) -> Done {
    let shown = file.display().to_string();
    let drivers = data.drivers().display().to_string();
    cx.output
        .text(&json!({ what: shown, "keysNotIncluded": drivers }), |_| {
            format!("{what}  {shown}\n{}\n", apart(data))
        })
}

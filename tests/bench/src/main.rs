//! `occ-bench`: measures, prints a table, and writes the same numbers as JSON.

use std::{fs, path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;
use occ_bench::{Error, Load, Rivals, Sizes, StoreKind, run};

/// How fast the control plane admits and deploys with a Compute that runs nothing, beside what the disk allows.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Few samples: enough to see that everything runs.
    #[arg(long)]
    quick: bool,
    /// Also write the numbers into this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the database file lies while it is measured; the system's directory for temporary files when not said.
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    /// Measure this store alone.
    #[arg(long, value_name = "STORE")]
    store: Option<StoreKind>,
    /// Also measure the queues of others on the same PostgreSQL: the directory rivals/, after `npm install` in it
    /// and `cargo build --release` in rivals/awa.
    #[arg(long, value_name = "DIRECTORY")]
    rivals: Option<PathBuf>,
    /// Also measure PostgreSQL with so many finished revisions, one size after the other.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    history: Vec<usize>,
    /// Also measure PostgreSQL with so many revisions that wait for their Compute.
    #[arg(long, value_name = "NUMBER")]
    pending: Option<usize>,
    /// Those are of a Compute that does not hear of changes by itself: each is looked at again and again.
    #[arg(long, requires = "pending")]
    unwatched: bool,
    /// How long those have waited when they are looked at, in seconds: after 200 each is looked at every 5 seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 200)]
    settle: u64,
    /// Node of line 24, which runs them.
    #[arg(long, env = "OCC_NODE", value_name = "FILE", default_value = "node")]
    node: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    match measure(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("occ-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(arguments: Arguments) -> Result<(), Error> {
    let sizes = if arguments.quick { Sizes::QUICK } else { Sizes::FULL };
    let stores = match arguments.store {
        Some(store) => vec![store],
        None => StoreKind::ALL.to_vec(),
    };
    let directory = arguments.directory.unwrap_or_else(std::env::temp_dir);
    let node = arguments.node;
    let rivals = arguments.rivals.map(|directory| Rivals { directory, node });
    let load = Load {
        history: arguments.history,
        pending: arguments.pending,
        unwatched: arguments.unwatched,
        settle: Duration::from_secs(arguments.settle),
    };
    let report = run(&sizes, &stores, &directory, rivals.as_ref(), &load).await?;
    print!("{report}");
    if let Some(path) = arguments.json {
        let written = serde_json::to_vec_pretty(&report).map_err(|_| Error::Unwritable { path: path.clone() })?;
        fs::write(&path, written).map_err(|_| Error::Unwritable { path })?;
    }
    Ok(())
}

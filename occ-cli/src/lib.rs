//! The `occ` command as a library: an installation's `main.rs` names its driver crates and calls [`run`].

mod client;
mod exit;
mod host;
mod paths;
mod policy;
mod quickstart;
mod up;
mod wait;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The control plane for AI agents.
#[derive(Debug, Parser)]
#[command(name = "occ", version, after_help = exit::HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Up),
    Quickstart(quickstart::Quickstart),
}

/// Runs the command that the process's arguments name.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::Failure::startup(error.kind()).report(),
    };
    let done = runtime.block_on(async {
        match cli.command {
            Command::Up(args) => up::run(args).await,
            Command::Quickstart(args) => quickstart::run(args).await,
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

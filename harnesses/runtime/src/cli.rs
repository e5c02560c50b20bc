//! The command line.

use std::{ffi::OsString, io, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::{exit, keep, launch, supervise};

/// Runs one component of a workload and leaves nothing of it behind.
#[derive(Parser)]
#[command(name = "occ-runtime", version, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Exit codes of launch and supervise:
  0  launched (launch), or stopped as asked (supervise)
  2  the command line is not understood
  3  another supervisor runs this component; launch prints its identity
  4  the launch spec cannot be read or is not valid
  5  the secrets on standard input cannot be used, or one is missing
  6  a file of the supervisor cannot be used
  7  the supervisor could not be started

SIGTERM to a supervisor stops its component within the grace of the spec; SIGKILL ends the whole tree at once.";

#[derive(Subcommand)]
enum Command {
    /// Start a supervisor that outlives this command, and print its identity as one line of JSON.
    ///
    /// Standard input is a JSON object from slot key to secret value, as the spec names them.
    Launch {
        /// The launch spec, a JSON file.
        #[arg(long)]
        spec: PathBuf,
    },
    /// Be a supervisor in the foreground, as a container's first process is. Secrets as for launch.
    Supervise {
        /// The launch spec, a JSON file.
        #[arg(long)]
        spec: PathBuf,
    },
    /// Internal: keep one command. Its order comes from the supervisor.
    Keep,
    /// Internal: become one command. Its order comes from the keeper.
    Exec {
        /// The keeper's process.
        #[arg(long)]
        keeper: u32,
    },
}

/// Runs the command line; the first argument is the program.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match Arguments::parse_from(arguments).command {
        Command::Launch { spec } => match launch::run(&spec) {
            Ok(code) => code,
            Err(error) => refuse(&error, error.code()),
        },
        Command::Supervise { spec } => in_runtime(async {
            match supervise::run(&spec).await {
                Ok(code) => code,
                Err(error) => refuse(&error, error.code()),
            }
        }),
        Command::Keep => in_runtime(keep::run()),
        Command::Exec { keeper } => keep::exec(keeper),
    }
}

fn refuse(error: &dyn std::error::Error, code: u8) -> ExitCode {
    eprintln!("occ-runtime: {error}");
    code.into()
}

/// One thread: a parent's death signal is tied to the thread that started the child, and this one lives as long as the process.
fn in_runtime(work: impl Future<Output = ExitCode>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => refuse(&io::Error::other(error), exit::START_FAILED),
    }
}

//! The `occ` command as a library: an installation's `main.rs` names its driver crates and calls [`run`].

mod chat;
mod client;
mod commands;
mod connect;
mod duration;
mod exit;
mod host;
mod identity_provider;
mod input;
mod lookup;
mod output;
mod paths;
mod policy;
mod quickstart;
mod telemetry;
mod up;
mod wait;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::Context;
use connect::Connection;
use output::{Format, Output};

/// The control plane for AI agents.
#[derive(Debug, Parser)]
#[command(name = "occ", version, after_help = exit::HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    connection: Connection,
    /// The form of what is printed. Progress and errors go to standard error.
    #[arg(long, short, global = true, value_enum, default_value = "text", env = "OCC_OUTPUT")]
    output: Format,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Up),
    Quickstart(quickstart::Quickstart),
    Namespace(commands::namespace::Noun),
    Configuration(commands::configuration::Noun),
    Secret(commands::secret::Noun),
    Agent(commands::agent::Noun),
    Revision(commands::revision::Noun),
    CredentialSource(commands::credential_source::Noun),
    ServiceAccount(commands::service_account::Noun),
    Preset(commands::preset::Noun),
    Role(commands::role::Noun),
    AccessBinding(commands::access_binding::Noun),
    ServicePrincipal(commands::service_principal::Noun),
    Key(commands::key::Noun),
    Account(commands::account::Noun),
    Installation(commands::installation::Noun),
    Audit(commands::audit::Noun),
    Migrate(commands::migrate::Noun),
    Backup(commands::backup::Backup),
    Restore(commands::backup::Restore),
    Prune(commands::prune::Prune),
    Drivers(commands::drivers::Drivers),
    Explain(commands::explain::Explain),
}

/// Runs the command that the process's arguments name.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let format = cli.output;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::Failure::startup(error.kind()).report(format),
    };
    match runtime.block_on(cli.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(format),
    }
}

impl Cli {
    async fn run(self) -> exit::Done {
        let cx = Context {
            connection: &self.connection,
            output: Output::new(self.output),
        };
        match self.command {
            Command::Up(args) => up::run(args, cx.output).await,
            Command::Quickstart(args) => quickstart::run(args).await,
            // A client has nothing to put in order: what the API accepted goes on without it.
            command => tokio::select! {
                done = command.ask(cx) => done,
                () = wait::interrupted() => {
                    let goes_on = "interrupted; what the API has accepted goes on";
                    Err(exit::Failure::new(exit::Exit::Interrupted, goes_on))
                }
            },
        }
    }
}

impl Command {
    /// Runs a command that asks the API, or only this binary.
    async fn ask(self, cx: Context<'_>) -> exit::Done {
        match self {
            Self::Up(_) | Self::Quickstart(_) => Ok(()),
            Self::Namespace(noun) => commands::namespace::run(noun, cx).await,
            Self::Configuration(noun) => commands::configuration::run(noun, cx).await,
            Self::Secret(noun) => commands::secret::run(noun, cx).await,
            Self::Agent(noun) => commands::agent::run(noun, cx).await,
            Self::Revision(noun) => commands::revision::run(noun, cx).await,
            Self::CredentialSource(noun) => commands::credential_source::run(noun, cx).await,
            Self::ServiceAccount(noun) => commands::service_account::run(noun, cx).await,
            Self::Preset(noun) => commands::preset::run(noun, cx).await,
            Self::Audit(noun) => commands::audit::run(noun, cx).await,
            Self::Role(noun) => commands::role::run(noun, cx).await,
            Self::AccessBinding(noun) => commands::access_binding::run(noun, cx).await,
            Self::ServicePrincipal(noun) => commands::service_principal::run(noun, cx).await,
            Self::Account(noun) => commands::account::run(noun, cx).await,
            Self::Key(noun) => commands::key::run(noun, cx).await,
            Self::Installation(noun) => commands::installation::run(noun, cx).await,
            Self::Migrate(noun) => commands::migrate::run(noun, cx).await,
            Self::Backup(args) => commands::backup::run(args, cx).await,
            Self::Restore(args) => commands::backup::restore(args, cx).await,
            Self::Prune(args) => commands::prune::run(args, cx).await,
            Self::Drivers(_) => commands::drivers::run(&cx),
            Self::Explain(explain) => commands::explain::run(&explain, &cx),
        }
    }
}

#[cfg(test)]
mod tests;

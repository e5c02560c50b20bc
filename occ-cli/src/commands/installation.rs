//! `occ installation`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use occ_core::{
    control::InstallationView,
    iam::NoPolicy,
    installation::{InstallationFile, compose},
    registry::{HostServices, Registry},
    resource::Backend,
};

use super::{Context, word};
use crate::{
    connect::KeyHome,
    exit::{Done, Failure},
    identity_provider,
};

/// The Installation: which drivers the control plane runs with.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    home: KeyHome,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show the Installation that answers at --api.
    Show,
    /// List the configured Backends.
    Backends,
    /// Check an Installation file against this binary's drivers, without starting anything.
    #[command(after_help = "Example: occ installation check --config installation.yaml")]
    Check {
        /// The file [default: installation.yaml in the data directory].
        #[arg(long, env = "OCC_CONFIG_PATH", value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    match noun.verb {
        Verb::Show => {
            let client = noun.home.client(cx.connection)?;
            let read: InstallationView = client.get("/installation").await?;
            cx.output.one(&read, |InstallationView { installation, .. }| {
                vec![
                    ("name", installation.name.to_string()),
                    ("id", installation.id.to_string()),
                    ("created", installation.created_at.to_string()),
                ]
            })
        }
        Verb::Backends => {
            let client = noun.home.client(cx.connection)?;
            let all: Vec<Backend> = client.get("/backends").await?;
            cx.output.list(&all, &["ID", "TYPE"], |backend| {
                vec![backend.id.to_string(), word(backend.kind)]
            })
        }
        Verb::Check { config } => check(&noun.home, config, &cx),
    }
}

fn check(home: &KeyHome, config: Option<PathBuf>, cx: &Context<'_>) -> Done {
    let path = match config {
        Some(path) => path,
        None => home.data_dir()?.join("installation.yaml"),
    };
    let file = InstallationFile::read(&path).map_err(Failure::startup)?;
    let registry = Registry::linked().map_err(Failure::startup)?;
    let host = HostServices::new(home.data_dir()?.join("drivers"), std::sync::Arc::new(NoPolicy));
    file.oidc().map_or(Ok(()), identity_provider::check)?;
    let drivers = compose(&file, &registry, &host).map_err(Failure::startup)?;
    let columns = ["KIND", "ID", "DRIVER", "IMPLEMENTATION", "CAPABILITIES"];
    cx.output.list(&drivers.describe(), &columns, |row| {
        let capabilities: Vec<_> = row.capabilities.iter().map(ToString::to_string).collect();
        vec![
            row.kind.to_string(),
            row.id.clone(),
            row.driver.unwrap_or_default().to_owned(),
            row.implementation.clone(),
            capabilities.join(" "),
        ]
    })
}

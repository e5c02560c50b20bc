//! The commands of the client, one file a noun, and those that need no server.

pub(crate) mod access_binding;
pub(crate) mod account;
pub(crate) mod agent;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod configuration;
pub(crate) mod credential_source;
pub(crate) mod drivers;
pub(crate) mod explain;
pub(crate) mod installation;
pub(crate) mod key;
pub(crate) mod migrate;
pub(crate) mod namespace;
pub(crate) mod preset;
pub(crate) mod prune;
pub(crate) mod revision;
pub(crate) mod role;
pub(crate) mod secret;
pub(crate) mod service_account;
pub(crate) mod service_principal;

use std::time::Duration;

use clap::Args;

use crate::{connect::Connection, duration::duration, output::Output};

/// What every command of the client is given.
pub(crate) struct Context<'a> {
    pub connection: &'a Connection,
    pub output: Output,
}

/// Whether to wait, and how long.
#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// Wait until it is done.
    #[arg(long)]
    wait: bool,
    /// How long to wait, such as 90s or 20m.
    #[arg(long, value_name = "DURATION", default_value = "20m", value_parser = duration, requires = "wait")]
    timeout: Duration,
}

impl Wait {
    /// How long to wait; `None` for not at all.
    fn limit(&self) -> Option<Duration> {
        self.wait.then_some(self.timeout)
    }
}

/// The lowercase word that a value has on the wire.
fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// A text, or nothing.
fn maybe(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

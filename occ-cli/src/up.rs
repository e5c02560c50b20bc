//! `occ up`: the API and the worker of a control plane on this host.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use clap::{Args, ValueEnum};
use occ_core::{installation::LogLevel, store::Store, worker::Worker};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    exit::{Done, Failure},
    host::{DataDir, Host, Role, Tools, url},
    output::Output,
    policy,
};

/// Runs the control plane until it is told to stop (Ctrl-C, SIGTERM). Workloads keep running.
#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Where everything is kept [default: `$XDG_DATA_HOME/occ`, or `~/.local/share/occ`].
    #[arg(long, env = "OCC_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The Installation file [default: installation.yaml in the data directory, written on the first start].
    #[arg(long, env = "OCC_CONFIG_PATH", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the API listens. Port 0 takes a free one.
    #[arg(long, env = "OCC_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Only the API; another process drives the work.
    #[arg(long, conflicts_with = "worker_only")]
    api_only: bool,
    /// Only the worker; another process answers the API.
    #[arg(long)]
    worker_only: bool,
    /// The form of the log on standard error.
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
}

/// The form of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

pub(crate) async fn run(args: Up, output: Output) -> Done {
    let path = args.data_dir.map_or_else(DataDir::default_path, Ok)?;
    let roles: &[Role] = match (args.api_only, args.worker_only) {
        (true, _) => &[Role::Api],
        (_, true) => &[Role::Worker],
        _ => &[Role::Api, Role::Worker],
    };
    let policy = policy::from_environment()?;
    // The port comes first: when it is taken, nothing was written.
    let listener = if args.worker_only {
        None
    } else {
        Some(occ_api::bind(args.listen).await.map_err(Failure::startup)?)
    };
    let data = DataDir::open(&path)?;
    // Installed before the first effect, so that no signal ends the process between a commit and its file.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| Failure::startup(error.kind()))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| Failure::startup(error.kind()))?;
    let host = Host::open(data, args.config.as_deref(), roles, &Tools::find()).await?;
    log(args.log_format, host.file.log_level());
    host.bootstrap().await?;

    let worker = (!args.api_only).then(|| {
        Worker::new(
            Arc::clone(&host.store) as Arc<dyn Store>,
            Arc::clone(host.plane.drivers()),
            policy,
        )
        .start()
    });
    let api = listener
        .as_ref()
        .and_then(|listener| listener.local_addr().ok())
        .map(url);
    announce(&host.data, api.as_deref(), output)?;

    let stop = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    match listener {
        Some(listener) => occ_api::serve(listener, occ_api::router(host.plane.clone()), stop).await,
        None => stop.await,
    }
    if let Some(worker) = worker {
        worker.shutdown().await;
    }
    host.close().await;
    Ok(())
}

/// Says where everything is, once it is there.
fn announce(data: &DataDir, api: Option<&str>, output: Output) -> Done {
    let (key, root) = (data.admin_key(), data.root());
    let all = json!({ "api": api, "keyFile": key, "dataDir": root });
    output.text(&all, |_| {
        let reach = api.map_or_else(String::new, |api| format!("API   {api}\nkey   {}\n", key.display()));
        format!(
            "{reach}data  {}\nCtrl-C stops the control plane; running Agents keep running.\n",
            root.display()
        )
    })
}

/// Starts logging to standard error. `RUST_LOG` wins over the Installation's level.
pub(crate) fn log(format: LogFormat, level: LogLevel) {
    use tracing_subscriber::{EnvFilter, fmt};
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level.as_str()));
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second call in one process keeps the first logger.
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}

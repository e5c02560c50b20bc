//! `occ up`: the API and the worker of a control plane on this host.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use clap::Args;
use occ_api::{Access, TrustedOrigin, TrustedProxy};
use occ_core::{
    audit::sealing::keep_sealing,
    worker::{Worker, WorkerHandle},
};
use serde_json::json;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::{
    exit::{Done, Failure},
    host::{DataDir, DatabaseArgs, Host, Role, Tools, url},
    identity_provider,
    output::Output,
    policy,
    telemetry::{LogFormat, Telemetry},
};

/// Runs the control plane until it is told to stop (Ctrl-C, SIGTERM). Workloads keep running.
#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Where everything is kept [default: `$XDG_DATA_HOME/occ`, or `~/.local/share/occ`].
    #[arg(long, env = "OCC_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseArgs,
    /// The Installation file [default: installation.yaml in the data directory, written on the first start].
    #[arg(long, env = "OCC_CONFIG_PATH", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the API listens. Port 0 takes a free one.
    #[arg(long, env = "OCC_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Where probes and dashboards ask: /livez, /readyz and /metrics, without a key. Nowhere unless given.
    #[arg(long, env = "OCC_OPERATIONS_LISTEN", value_name = "ADDRESS")]
    operations_listen: Option<SocketAddr>,
    /// A proxy whose Forwarded or X-Forwarded headers are believed: an address or a network. May be repeated.
    #[arg(long, env = "OCC_TRUSTED_PROXIES", value_delimiter = ',', value_name = "NETWORK")]
    trusted_proxy: Vec<TrustedProxy>,
    /// A page's origin that may act for a signed-in person, such as `https://occ.example.com`. May be repeated [default: the API's own].
    #[arg(long, env = "OCC_ORIGINS", value_delimiter = ',', value_name = "ORIGIN")]
    origin: Vec<TrustedOrigin>,
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

pub(crate) async fn run(args: Up, output: Output) -> Done {
    let path = args.data_dir.map_or_else(DataDir::default_path, Ok)?;
    let roles: &[Role] = match (args.api_only, args.worker_only) {
        (true, _) => &[Role::Api],
        (_, true) => &[Role::Worker],
        _ => &[Role::Api, Role::Worker],
    };
    let policy = policy::from_environment()?;
    let database = args.database.choose()?;
    // The port comes first: when it is taken, nothing was written.
    let listener = if args.worker_only {
        None
    } else {
        Some(occ_api::bind(args.listen).await.map_err(Failure::startup)?)
    };
    let operations = match args.operations_listen {
        Some(address) => Some(occ_api::bind(address).await.map_err(Failure::startup)?),
        None => None,
    };
    let data = DataDir::open(&path)?;
    // Installed before the first effect, so that no signal ends the process between a commit and its file.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| Failure::startup(error.kind()))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| Failure::startup(error.kind()))?;
    let host = Host::open(data, &database, args.config.as_deref(), roles, &Tools::find()).await?;
    let telemetry = Telemetry::start(args.log_format, host.file.log_level());
    host.bootstrap().await?;

    let access = Access {
        trusted_proxies: args.trusted_proxy,
        origins: args.origin,
        // Nobody signs in where the API is not answered.
        oidc: match host.file.oidc() {
            Some(named) if !args.worker_only => Some(identity_provider::open(named)?),
            _ => None,
        },
        ..Access::default()
    };
    // Before anything is measured.
    let metrics = operations.as_ref().and_then(|_| occ_api::Metrics::install());
    let worker = (!args.api_only)
        .then(|| Worker::new(Arc::clone(&host.store), Arc::clone(host.plane.drivers()), policy).start());
    let sealer = tokio::spawn(keep_sealing(Arc::clone(&host.store)));
    let address = |listener: &Option<TcpListener>| listener.as_ref()?.local_addr().ok().map(url);
    let reach = Reach {
        api: address(&listener),
        operations: address(&operations),
    };
    announce(&host.data, &reach, output)?;

    let ended = CancellationToken::new();
    let probes = operations.map(|listener| {
        let store = Arc::clone(&host.store);
        let router = occ_api::operations(store, worker.as_ref().map(WorkerHandle::health), metrics);
        tokio::spawn(occ_api::serve(listener, router, ended.clone().cancelled_owned()))
    });

    let stop = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    match listener {
        Some(listener) => {
            let router = occ_api::router_with(host.plane.clone(), access);
            occ_api::serve(listener, router, stop).await;
        }
        None => stop.await,
    }
    sealer.abort();
    if let Some(worker) = worker {
        worker.shutdown().await;
    }
    ended.cancel();
    if let Some(probes) = probes {
        let _ = probes.await;
    }
    host.close().await;
    telemetry.end().await;
    Ok(())
}

/// Where this process can be asked.
struct Reach {
    api: Option<String>,
    operations: Option<String>,
}

/// Says where everything is, once it is there.
fn announce(data: &DataDir, reach: &Reach, output: Output) -> Done {
    let (key, root) = (data.admin_key(), data.root());
    let Reach { api, operations } = reach;
    let all = json!({ "api": api, "operations": operations, "keyFile": key, "dataDir": root });
    output.text(&all, |_| {
        let line = |name, text: &Option<String>| {
            text.as_ref()
                .map_or_else(String::new, |text| format!("{name}  {text}\n"))
        };
        let key = api.as_ref().map(|_| key.display().to_string());
        format!(
            "{}{}{}data  {}\nCtrl-C stops the control plane; running Agents keep running.\n",
            line("API ", api),
            line("key ", &key),
            line("ops ", operations),
            root.display()
        )
    })
}

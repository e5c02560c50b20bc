//! `occ quickstart`: the main job, end to end, as a user would do it over the HTTP API.

mod chat;
mod model;
mod scenario;

use std::{
    io::{Write as _, stdout},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use occ_core::worker::Worker;
use tokio_util::sync::CancellationToken;

use crate::{
    client::Client,
    exit::{Done, Exit, Failure},
    host::{DataDir, Database, Host, Role, Tools, read_key, url},
    policy,
    telemetry::{LogFormat, Telemetry},
    wait,
};
use model::Model;
use scenario::{Deployed, Scenario};

/// How long the deployment may take; the convergence deadline ends it before.
const DEPLOYMENT: Duration = Duration::from_mins(16);

/// Deploys a real Agent on this host, talks to it, and stops it again.
#[derive(Debug, Args)]
pub(crate) struct Quickstart {
    /// Leave the Agent and the control plane running until Ctrl-C.
    #[arg(long)]
    keep: bool,
    /// Where everything is kept [default: `$XDG_STATE_HOME/occ/quickstart`, or `~/.local/state/occ/quickstart`].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// What to say to the Agent.
    #[arg(long, default_value = "Hello! Which Agent are you?", value_name = "TEXT")]
    message: String,
}

pub(crate) async fn run(args: Quickstart) -> Done {
    let interrupted = CancellationToken::new();
    let cancel = interrupted.clone();
    let interruption = wait::interrupted();
    tokio::spawn(async move {
        interruption.await;
        cancel.cancel();
    });
    let root = args.data_dir.clone().map_or_else(DataDir::quickstart_path, Ok)?;
    let data = DataDir::open(&root)?;
    say(&format!("data directory {}", data.root().display()));

    let host = Host::open(
        data,
        &Database::Embedded,
        None,
        &[Role::Api, Role::Worker],
        &Tools::find(),
    )
    .await?;
    let telemetry = Telemetry::start(LogFormat::Text, occ_core::installation::LogLevel::Warn);
    host.bootstrap().await?;
    let model = Model::choose(&host.data).await?;
    let listener = occ_api::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await
        .map_err(Failure::startup)?;
    let address = listener.local_addr().map_err(|error| Failure::startup(error.kind()))?;
    let worker = Worker::new(
        Arc::clone(&host.store),
        Arc::clone(host.plane.drivers()),
        policy::from_environment()?,
    )
    .start();
    let stop_serving = CancellationToken::new();
    let server = tokio::spawn(occ_api::serve(
        listener,
        occ_api::router(host.plane.clone()),
        stop_serving.clone().cancelled_owned(),
    ));
    say(&format!("control plane on {}", url(address)));

    let client = Client::new(&url(address), &read_key(&host.data.admin_key())?)?;
    let scenario = Scenario::new(client, model);
    let result = converse(&scenario, &host, address, &args, &interrupted).await;

    stop_serving.cancel();
    let _ = server.await;
    worker.shutdown().await;
    host.close().await;
    telemetry.end().await;
    result
}

/// Everything that happens while the control plane runs.
async fn converse(
    scenario: &Scenario,
    host: &Host,
    address: SocketAddr,
    args: &Quickstart,
    interrupted: &CancellationToken,
) -> Done {
    let deployed = tokio::select! {
        () = interrupted.cancelled() => {
            say("interrupted: stopping the Agent");
            scenario.stop_whatever_runs().await?;
            return Err(Failure::new(Exit::Interrupted, "interrupted"));
        }
        result = deploy_and_chat(scenario, args) => match result {
            Ok(deployed) => deployed,
            Err(failure) => {
                say(&format!("the Agent's logs are below {}", host.data.drivers().display()));
                // A failed version is kept for its logs; nothing of it may stay behind running.
                scenario.stop_whatever_runs().await?;
                return Err(failure);
            }
        },
    };
    show("");
    show(&format!("revision  {} ({})", deployed.number, deployed.revision));
    show(&format!("gateway   {}", deployed.gateway.url));
    if let Some(file) = &deployed.gateway.password_file {
        show(&format!("password  {file}"));
    }
    show(&format!("logs      {}", host.data.drivers().display()));
    show(&format!("API       {}", url(address)));
    show(&format!("key       {}", host.data.admin_key().display()));
    if args.keep {
        show("");
        show("Running until Ctrl-C, which also stops the Agent. In another terminal:");
        show(&format!(
            "  occ --api {} --key-file {} agent chat {} \"Hello again\"",
            url(address),
            host.data.admin_key().display(),
            scenario::AGENT
        ));
        interrupted.cancelled().await;
    }
    say("stopping the Agent");
    scenario.stop(&deployed).await?;
    say("stopped; its workspace, credentials and history are kept for the next run");
    Ok(())
}

async fn deploy_and_chat(scenario: &Scenario, args: &Quickstart) -> Done<Deployed> {
    scenario.say_model();
    scenario.namespace_ready().await?;
    let draft = scenario.draft().await?;
    say(&format!("deploying Agent {}", scenario::AGENT));
    let revision = scenario.deploy(&draft).await?;
    let target = (draft.namespace, draft.agent, revision.id);
    let deployment = wait::deployment(scenario.client(), target, DEPLOYMENT).await?;
    if deployment.status != occ_core::status::DeploymentStatus::Succeeded {
        return Err(Failure::refused(format!(
            "the deployment failed\n{}",
            wait::explain(&deployment)
        )));
    }
    say(&format!("revision {} is active", revision.revision));
    let gateway = scenario.gateway(&draft).await?;
    show("");
    show(&format!("you    {}", args.message));
    let reply = chat::ask(&gateway, &args.message).await?;
    show(&format!("agent  {reply}"));
    Ok(Deployed {
        draft,
        revision: revision.id,
        number: revision.revision,
        gateway,
    })
}

fn say(text: &str) {
    wait::say(&format!("quickstart: {text}"));
}

/// A line of the result. A reader that went away, such as a closed terminal, is no reason to leave the Agent running.
fn show(line: &str) {
    let _ = writeln!(stdout(), "{line}");
}

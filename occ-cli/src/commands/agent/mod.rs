//! `occ agent`

mod draft;
mod lifecycle;
mod observe;
mod plugins;
mod token;

use clap::{Args, Subcommand};
use occ_core::{
    driver::GatewayEndpoint,
    resource::{Agent, HarnessAuth},
};

use super::{Context, maybe, word};
use crate::{connect::Scope, exit::Done, output::Fields, paths};

/// Agents: what is deployed, stopped and talked to.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create an Agent. Nothing runs before it is deployed.
    Create(draft::Create),
    /// List the Agents.
    List,
    /// Show an Agent.
    Show {
        /// Its name or id.
        agent: String,
    },
    /// Change an Agent's draft. What is not named is kept; only a deployment makes it effective.
    Update(draft::Update),
    /// Save the draft as the next version and run it.
    Deploy(lifecycle::Deploy),
    /// Save what an earlier version saved as the next version, admitted anew, and run it.
    Redeploy(lifecycle::Redeploy),
    /// How far a version's deployment is, and why.
    DeploymentStatus(lifecycle::DeploymentStatus),
    /// Stop an Agent. Its workspace, credentials and versions are kept.
    Stop(lifecycle::End),
    /// Delete an Agent with its workspace, credentials and versions.
    Delete(lifecycle::End),
    /// The last lines of a version's log.
    Logs(observe::Logs),
    /// Check a version's runtime now.
    Diagnostics(observe::Diagnostics),
    /// Whether the Agent's own gateway credentials exist.
    Credentials(observe::Credentials),
    /// Where the Agent's gateway is, and the file with its password.
    Gateway {
        /// Its name or id.
        agent: String,
    },
    /// The plugins that an Agent can select, or the tools of one.
    Plugins(plugins::Plugins),
    /// Make a short-lived token by which the Agent itself is recognised.
    Token(token::Token),
    /// Say something to an Agent through its own gateway, and print the reply.
    Chat(observe::Chat),
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    // What is wrong on the command line need not reach the API.
    let verb = match noun.verb {
        Verb::Create(create) => {
            let files = create.files()?;
            return draft::create(&noun.scope.open(cx.connection).await?, create, files, &cx).await;
        }
        verb => verb,
    };
    let session = noun.scope.open(cx.connection).await?;
    match verb {
        // Answered above.
        Verb::Create(_) => Ok(()),
        Verb::List => {
            let agents: Vec<Agent> = session.client.get(&paths::agents(session.namespace)).await?;
            cx.output
                .list(&agents, &["NAME", "ID", "MODE", "DESIRED", "ACTIVE VERSION"], |agent| {
                    vec![
                        agent.name.to_string(),
                        agent.id.to_string(),
                        word(agent.execution_mode),
                        desired(agent),
                        maybe(agent.active_revision_id),
                    ]
                })
        }
        Verb::Show { agent } => {
            let agent = session.agent(&agent).await?;
            cx.output.one(&agent, fields)
        }
        Verb::Update(update) => draft::update(&session, update, &cx).await,
        Verb::Redeploy(redeploy) => lifecycle::redeploy(&session, redeploy, &cx).await,
        Verb::Deploy(deploy) => lifecycle::deploy(&session, deploy, &cx).await,
        Verb::DeploymentStatus(status) => lifecycle::status(&session, status, &cx).await,
        Verb::Stop(end) => lifecycle::stop(&session, end, &cx).await,
        Verb::Delete(end) => lifecycle::delete(&session, end, &cx).await,
        Verb::Plugins(plugins) => plugins::list(&session, plugins, &cx).await,
        Verb::Token(token) => token::create(&session, token, &cx).await,
        Verb::Logs(logs) => observe::logs(&session, logs, &cx).await,
        Verb::Diagnostics(diagnostics) => observe::diagnostics(&session, diagnostics, &cx).await,
        Verb::Credentials(credentials) => observe::credentials(&session, credentials, &cx).await,
        Verb::Gateway { agent } => {
            let agent = session.agent(&agent).await?;
            let path = format!("{}/gateway", paths::agent(session.namespace, agent.id));
            let gateway: GatewayEndpoint = session.client.get(&path).await?;
            cx.output.one(&gateway, |gateway| {
                vec![
                    ("url", gateway.url.clone()),
                    ("password file", maybe(gateway.password_file.as_ref())),
                ]
            })
        }
        Verb::Chat(chat) => observe::chat(&session, chat, &cx).await,
    }
}

fn desired(agent: &Agent) -> String {
    match agent.status {
        occ_core::resource::AgentStatus::Deleting => "deleted".to_owned(),
        occ_core::resource::AgentStatus::Active => word(agent.desired_runtime_state),
    }
}

fn fields(agent: &Agent) -> Fields {
    vec![
        ("name", agent.name.to_string()),
        ("id", agent.id.to_string()),
        ("desired", desired(agent)),
        ("active version", maybe(agent.active_revision_id)),
        ("mode", word(agent.execution_mode)),
        ("configuration", agent.configuration_id.to_string()),
        ("auth", agent.harness_auth.as_ref().map(auth).unwrap_or_default()),
        ("backend", maybe(agent.backend_id.as_ref())),
        ("principal", agent.service_principal_id.to_string()),
        ("created", agent.created_at.to_string()),
    ]
}

fn auth(auth: &HarnessAuth) -> String {
    let method = word(auth.method());
    match auth.secret() {
        Some((_, secret)) => format!("{method} {secret}"),
        None => method,
    }
}

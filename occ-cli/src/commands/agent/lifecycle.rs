//! Deploying, stopping and deleting.

use clap::Args;
use occ_core::{
    control::RevisionView,
    id::RevisionId,
    reason::ApiCode,
    resource::{Agent, DesiredRuntimeState},
    status,
};

use super::{super::revision, Context, fields};
use crate::{
    client::CallError,
    commands::Wait,
    connect::Session,
    exit::{Done, Failure},
    output::Fields,
    paths, wait,
};

#[derive(Debug, Args)]
#[command(
    after_help = "Without --wait, success says that the version is saved and its deployment queued, and nothing of the workload.
With --wait, the exit code is 1 when the deployment fails, and 4 when it is not over in time; it then goes on.

Example: occ agent deploy support --wait --timeout 20m"
)]
pub(super) struct Deploy {
    /// Its name or id.
    agent: String,
    #[command(flatten)]
    wait: Wait,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Nothing of the earlier version changes, and nothing of the draft. Permissions, Secrets and what the Compute
supports are checked as they are now.

Example: occ agent redeploy support 3 --wait"
)]
pub(super) struct Redeploy {
    /// Its name or id.
    agent: String,
    /// The earlier version: its number or id.
    revision: String,
    #[command(flatten)]
    wait: Wait,
}

#[derive(Debug, Args)]
pub(super) struct DeploymentStatus {
    /// The Agent: its name or id.
    agent: String,
    /// The version: its number or id [default: the latest].
    revision: Option<String>,
    #[command(flatten)]
    wait: Wait,
}

#[derive(Debug, Args)]
pub(super) struct End {
    /// Its name or id.
    agent: String,
    #[command(flatten)]
    wait: Wait,
}

pub(super) async fn deploy(session: &Session, deploy: Deploy, cx: &Context<'_>) -> Done {
    let agent = session.agent(&deploy.agent).await?;
    let path = format!("{}/deploy", paths::agent(session.namespace, agent.id));
    admitted(session, &agent, &path, &deploy.wait, cx).await
}

pub(super) async fn redeploy(session: &Session, redeploy: Redeploy, cx: &Context<'_>) -> Done {
    let agent = session.agent(&redeploy.agent).await?;
    let earlier = session.revision(&agent, Some(&redeploy.revision)).await?;
    let path = format!(
        "{}/revisions/{earlier}/redeploy",
        paths::agent(session.namespace, agent.id)
    );
    admitted(session, &agent, &path, &redeploy.wait, cx).await
}

/// Has the next version saved, and waits for it if that is wanted.
async fn admitted(session: &Session, agent: &Agent, path: &str, wait: &Wait, cx: &Context<'_>) -> Done {
    let Some(limit) = wait.limit() else {
        let revision: RevisionView = session.client.act(path).await?;
        return cx.output.one(&revision, revision::fields);
    };
    let revision: RevisionView = wait::begin(limit, session.client.act(path)).await?;
    if !cx.output.is_json() {
        wait::say(&format!("revision {} ({})", revision.revision, revision.id));
    }
    show(session, agent, revision.id, wait, cx).await
}

pub(super) async fn status(session: &Session, status: DeploymentStatus, cx: &Context<'_>) -> Done {
    let agent = session.agent(&status.agent).await?;
    let revision = session.revision(&agent, status.revision.as_deref()).await?;
    show(session, &agent, revision, &status.wait, cx).await
}

/// Prints a deployment as it is, or as it ended: then a failed one is this command's failure too.
async fn show(session: &Session, agent: &Agent, revision: RevisionId, wait: &Wait, cx: &Context<'_>) -> Done {
    let target = (session.namespace, agent.id, revision);
    let Some(limit) = wait.limit() else {
        let deployment: status::Deployment = session.client.get(&wait::path(target.0, target.1, target.2)).await?;
        return cx.output.one(&deployment, deployment_fields);
    };
    let deployment = wait::deployment(&session.client, target, limit).await?;
    let Some(error) = &deployment.error else {
        return cx.output.one(&deployment, deployment_fields);
    };
    if cx.output.is_json() {
        cx.output.one(&deployment, deployment_fields)?;
    }
    let why = wait::explain(&deployment);
    Err(Failure::refused(format!("the deployment failed\n{why}")).with_code(error.code))
}

/// What a deployment says of itself (seed: Deployment status).
fn deployment_fields(deployment: &status::Deployment) -> Fields {
    let mut fields = vec![
        ("deployment", deployment.deployment_id.to_string()),
        ("status", wait::status(deployment.status).to_owned()),
    ];
    if let Some(progress) = &deployment.progress {
        if let Some(attempt) = &progress.last_attempt {
            fields.push((
                "progress",
                format!("{}: {}\nsince {}", attempt.code, attempt.message, attempt.at),
            ));
        }
        if let Some(next) = &progress.next_attempt_at {
            fields.push(("next attempt", next.to_string()));
        }
    }
    if deployment.error.is_some() {
        fields.push(("error", wait::explain(deployment)));
    }
    if !deployment.warnings.is_empty() {
        fields.push(("warnings", warnings(deployment)));
    }
    if let Some(cleanup) = &deployment.cleanup {
        let when = match cleanup.next_attempt_at {
            Some(at) => format!("is tried again at {at}"),
            None => "is left to the next deployment, stop or deletion".to_owned(),
        };
        fields.push(("cleanup", format!("of what is left of its runtime {when}")));
    }
    fields
}

fn warnings(deployment: &status::Deployment) -> String {
    let lines = deployment
        .warnings
        .iter()
        .map(|warning| serde_json::to_string(warning).unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) async fn stop(session: &Session, end: End, cx: &Context<'_>) -> Done {
    let agent = session.agent(&end.agent).await?;
    let path = paths::agent(session.namespace, agent.id);
    let path = format!("{path}/stop");
    let Some(limit) = end.wait.limit() else {
        let agent: Agent = session.client.act(&path).await?;
        return cx.output.one(&agent, fields);
    };
    let (stopping, stop): (Agent, _) = wait::begin(limit, session.client.begin(&path)).await?;
    let Some(stop) = stop else {
        return Err(Failure::refused(
            "the Agent is being deleted, which stops it too; see `occ agent delete --wait`",
        ));
    };
    wait::stop(&session.client, &stop, limit).await?;
    let path = paths::agent(session.namespace, stopping.id);
    let agent: Agent = session.client.get(&path).await?;
    if agent.desired_runtime_state == DesiredRuntimeState::Running {
        return Err(Failure::refused("the Agent was deployed again meanwhile"));
    }
    cx.output.one(&agent, fields)
}

pub(super) async fn delete(session: &Session, end: End, cx: &Context<'_>) -> Done {
    let agent = session.agent(&end.agent).await?;
    let path = paths::agent(session.namespace, agent.id);
    let Some(limit) = end.wait.limit() else {
        let answer = session.client.delete(&path).await?;
        let agent: Agent = serde_json::from_value(answer).map_err(Failure::refused)?;
        return cx.output.one(&agent, fields);
    };
    wait::begin(limit, session.client.delete(&path)).await?;
    wait::until(
        limit,
        "the Agent is still being deleted; repeat the command",
        async |progress| {
            progress.show("deleting".to_owned());
            match session.client.get::<Agent>(&path).await {
                Ok(_) => Ok(None),
                Err(error) if error.is(ApiCode::NotFound) => Ok(Some(())),
                Err(CallError::Failed(failure)) => wait::survive(progress, failure),
                Err(error) => Err(error.into()),
            }
        },
    )
    .await?;
    cx.output.done("deleted")
}

//! Creating and changing an Agent's draft.

use std::path::PathBuf;

use clap::Args;
use occ_core::{
    id::ConfigurationId,
    resource::{Agent, BackendId, ExecutionMode, Name, WorkspaceFileName},
};
use serde_json::{Map, Value, json};

use super::{
    super::{credential_source, preset, service_account},
    Context, fields,
};
use crate::{
    connect::Session,
    exit::{Done, Failure},
    input, lookup, paths,
};

/// How the model credential is obtained.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct Auth {
    /// A model provider's API key: the Secret that holds it, by name or id.
    #[arg(long, value_name = "SECRET")]
    api_key_secret: Option<String>,
    /// A Codex access token: the Secret that holds it, by name or id. Dedicated Codex only.
    #[arg(long, value_name = "SECRET")]
    token_secret: Option<String>,
    /// A Codex access token that a driver issued: the service account that has it, by name or id. Dedicated Codex only.
    #[arg(long, value_name = "ACCOUNT")]
    service_account: Option<String>,
    /// A credential source that the Credential Gateway mediates, by name or id; it is listed among the Agent's sources, too. Dedicated only.
    #[arg(long, value_name = "SOURCE")]
    credential_source: Option<String>,
    /// The operator supplies credentials on the host; for Computes that support it.
    #[arg(long = "runtime-auth", id = "runtime_auth")]
    runtime: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  occ agent create support --configuration cfg_... --api-key-secret openai-key \\
      --workspace-file AGENTS.md=./AGENTS.md")]
pub(super) struct Create {
    /// Its name, unique in the Namespace.
    name: Name,
    /// The Configuration that deployments snapshot.
    #[arg(long, value_name = "ID", value_parser = lookup::configuration, required_unless_present = "preset")]
    configuration: Option<ConfigurationId>,
    /// The Preset whose launch settings are copied, by name or id. What is named beside it wins.
    #[arg(long)]
    preset: Option<String>,
    /// How its Harness runs [default: the Preset's, or embedded].
    #[arg(long, value_name = "MODE", value_parser = mode)]
    mode: Option<ExecutionMode>,
    /// The associated Backend.
    #[arg(long, value_name = "ID")]
    backend: Option<BackendId>,
    #[command(flatten)]
    auth: Auth,
    /// A further credential source that it uses, by name or id. Repeatable.
    #[arg(long = "source", value_name = "SOURCE")]
    sources: Vec<String>,
    /// The plugins that it selects: a file with a JSON object, by catalogue id; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    plugins: Option<PathBuf>,
    /// A file that the first deployment writes into the workspace: NAME=FILE, with NAME one of AGENTS.md, SOUL.md,
    /// IDENTITY.md and USER.md. Repeatable.
    #[arg(long = "workspace-file", value_name = "NAME=FILE", value_parser = workspace_file)]
    workspace_files: Vec<(WorkspaceFileName, PathBuf)>,
}

#[derive(Debug, Args)]
pub(super) struct Update {
    /// Its name or id.
    agent: String,
    /// The Configuration that deployments snapshot.
    #[arg(long, value_name = "ID", value_parser = lookup::configuration)]
    configuration: Option<ConfigurationId>,
    /// How its Harness runs.
    #[arg(long, value_name = "MODE", value_parser = mode)]
    mode: Option<ExecutionMode>,
    /// The associated Backend.
    #[arg(long, value_name = "ID")]
    backend: Option<BackendId>,
    /// Associate no Backend any more.
    #[arg(long, conflicts_with = "backend")]
    no_backend: bool,
    #[command(flatten)]
    auth: Auth,
    /// Use no model credential any more.
    #[arg(long, conflicts_with_all = ["api_key_secret", "token_secret", "service_account", "credential_source", "runtime_auth"])]
    no_auth: bool,
    /// A credential source that it uses, by name or id, in the place of all that it had. Repeatable.
    #[arg(long = "source", value_name = "SOURCE")]
    sources: Vec<String>,
    /// Use no credential source any more.
    #[arg(long, conflicts_with_all = ["sources", "credential_source"])]
    no_sources: bool,
    /// The plugins that it selects, in the place of all that it had: a file with a JSON object; `{}` selects none.
    #[arg(long, value_name = "FILE")]
    plugins: Option<PathBuf>,
}

impl Create {
    /// Reads the workspace files.
    pub(super) fn files(&self) -> Done<Map<String, Value>> {
        let mut files = Map::new();
        for (name, path) in &self.workspace_files {
            if files
                .insert(name.as_str().to_owned(), input::text(path)?.into())
                .is_some()
            {
                return Err(Failure::usage(format!("{} is given twice", name.as_str())));
            }
        }
        Ok(files)
    }
}

pub(super) async fn create(session: &Session, create: Create, files: Map<String, Value>, cx: &Context<'_>) -> Done {
    let mut body = match &create.preset {
        Some(preset) => json!(preset::find(session, preset).await?.settings),
        None => json!({}),
    };
    body["name"] = json!(create.name);
    body["initialWorkspaceFiles"] = json!(files);
    if let Some(configuration) = create.configuration {
        body["configurationId"] = json!(configuration);
    }
    if let Some(mode) = create.mode {
        body["executionMode"] = json!(mode);
    }
    if body.get("configurationId").is_none() {
        return Err(Failure::usage(
            "the Preset names no Configuration: give one with --configuration",
        ));
    }
    if let Some(auth) = create.auth.body(session).await? {
        body["harnessAuth"] = auth;
    }
    if let Some(backend) = create.backend {
        body["backendId"] = json!(backend);
    }
    sources(session, &mut body, &create.sources).await?;
    if let Some(plugins) = &create.plugins {
        body["plugins"] = json!(input::document(plugins)?);
    }
    let agent: Agent = session.client.post(&paths::agents(session.namespace), &body).await?;
    cx.output.one(&agent, fields)
}

pub(super) async fn update(session: &Session, update: Update, cx: &Context<'_>) -> Done {
    let agent = session.agent(&update.agent).await?;
    // The API always wants the Configuration named.
    let mut body = json!({ "configurationId": update.configuration.unwrap_or(agent.configuration_id) });
    if let Some(mode) = update.mode {
        body["executionMode"] = json!(mode);
    }
    if update.no_backend || update.backend.is_some() {
        body["backendId"] = json!(update.backend);
    }
    if let Some(auth) = update.auth.body(session).await? {
        body["harnessAuth"] = auth;
    } else if update.no_auth {
        body["harnessAuth"] = Value::Null;
    }
    sources(session, &mut body, &update.sources).await?;
    if update.no_sources {
        body["credentialSources"] = json!([]);
    }
    if let Some(plugins) = &update.plugins {
        body["plugins"] = json!(input::document(plugins)?);
    }
    let path = paths::agent(session.namespace, agent.id);
    let agent: Agent = session.client.patch(&path, &body).await?;
    cx.output.one(&agent, fields)
}

/// The credential sources that are named; the model credential's is always among them.
async fn sources(session: &Session, body: &mut Value, named: &[String]) -> Done {
    let mut ids = Vec::new();
    if let Some(id) = body["harnessAuth"]["sourceId"].as_str() {
        ids.push(json!({ "sourceId": id }));
    }
    for source in named {
        let id = json!({ "sourceId": credential_source::find(session, source).await? });
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if !ids.is_empty() {
        body["credentialSources"] = ids.into();
    }
    Ok(())
}

impl Auth {
    async fn body(&self, session: &Session) -> Done<Option<Value>> {
        if let Some(source) = &self.credential_source {
            let id = credential_source::find(session, source).await?;
            return Ok(Some(json!({ "method": "credential_source", "sourceId": id })));
        }
        if let Some(account) = &self.service_account {
            let id = service_account::find(session, account).await?;
            let source = json!({ "kind": "service_account", "namespaceId": session.namespace, "id": id });
            return Ok(Some(json!({ "method": "codex_pat", "source": source })));
        }
        let (method, secret) = match (&self.api_key_secret, &self.token_secret) {
            (Some(secret), _) => ("api_key", secret),
            (None, Some(secret)) => ("codex_pat", secret),
            (None, None) => return Ok(self.runtime.then(|| json!({ "method": "runtime" }))),
        };
        let id = session.secret(secret).await?;
        let source = json!({ "kind": "secret", "namespaceId": session.namespace, "id": id });
        Ok(Some(json!({ "method": method, "source": source })))
    }
}

fn mode(text: &str) -> Result<ExecutionMode, String> {
    serde_json::from_value(text.into()).map_err(|_| "expected embedded or dedicated".to_owned())
}

fn workspace_file(text: &str) -> Result<(WorkspaceFileName, PathBuf), String> {
    let known = || "expected NAME=FILE, with NAME one of AGENTS.md, SOUL.md, IDENTITY.md and USER.md".to_owned();
    let (name, path) = text.split_once('=').ok_or_else(known)?;
    Ok((WorkspaceFileName::parse(name).ok_or_else(known)?, path.into()))
}

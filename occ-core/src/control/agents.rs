//! Agents: drafts and reads (seed: Agents; spec/engine 1.9, 3.1).

use super::{
    AgentView, Answer, Caller, ControlPlane, CreateAgent, Page, PageQuery, Tag, UpdateAgent,
    configurations::bound,
    installation::opaque,
    namespaces::ACCEPTING,
    operation::{Operation, Scope},
    page::Cursor,
};
use crate::{
    admission::{
        DetailCode, Grants, Refusal,
        draft::{self, DraftInputs},
        plugins,
        source::{self, Sources},
    },
    audit::Authorization,
    driver::{Action, ResourceRef},
    id::{AgentId, ConfigurationId, CredentialSourceId, NamespaceId},
    resource::{
        Agent, AgentCredentialSource, AgentStatus, Approver, BackendId, CredentialSource, DesiredRuntimeState,
        HarnessAuth, InvalidWorkspaceFile, OwnedKind, PluginId, PluginSelection, Plugins, Secret, ServiceAccount,
        WorkspaceFiles, WorkspaceSetup,
    },
    store::{AgentRow, Change, ConfigurationRow, Expect, NamespaceRow, SavedField, Slice, Write},
};

/// Most credential sources of one Agent.
const CREDENTIAL_SOURCES_MAX: usize = 8;
/// Most approvers that one Agent names.
const APPROVERS_MAX: usize = 64;
/// Most plugins that one Agent selects.
const PLUGINS_MAX: usize = 256;

/// What a draft names, for its admission.
struct Named<'a> {
    configuration_id: ConfigurationId,
    harness_auth: Option<HarnessAuth>,
    backend_id: Option<&'a BackendId>,
    credential_sources: Vec<CredentialSourceId>,
    plugins: &'a Plugins,
    plugin_approvers: Option<&'a [Approver]>,
    replaced: &'a [SavedField],
    defaults_known: bool,
}

/// What an admitted draft rests on.
struct Draft {
    agent_row: Option<AgentRow>,
    configuration: Option<ConfigurationRow>,
    secrets: Vec<Secret>,
    account: Option<ServiceAccount>,
    sources: Vec<CredentialSource>,
}

impl ControlPlane {
    /// Creates an Agent with a service principal of its own; starts nothing.
    pub async fn create_agent(&self, caller: &Caller, namespace: NamespaceId, input: CreateAgent) -> Answer<Agent> {
        let op = self.operation(caller, "openclaw.agents.create", Scope::Namespace(namespace));
        op.answer(async {
            check_workspace(&input)?;
            let approvers = input.plugin_approvers.as_deref();
            check_extras(&input.credential_sources, &input.plugins, approvers)?;
            let question = draft::permission(&caller.principal, namespace, None);
            let id = AgentId::random();
            let named = Named {
                configuration_id: input.configuration_id,
                harness_auth: input.harness_auth,
                backend_id: input.backend_id.as_ref(),
                credential_sources: input.credential_sources.iter().map(|source| source.source_id).collect(),
                plugins: &input.plugins,
                plugin_approvers: approvers,
                replaced: &[],
                defaults_known: self.knows_defaults(input.workspace_defaults_id.as_deref()),
            };
            let mut tries = op.tries();
            loop {
                let allowed = granted(op.decide(vec![question.clone()]).await?)?;
                if let Some(first) = op.first_answer().await? {
                    return Ok(first);
                }
                let draft = self.admit_draft(&op, &allowed, namespace, None, &named).await?;
                let agent = Agent {
                    id,
                    namespace_id: namespace,
                    name: input.name.clone(),
                    service_principal_id: opaque("spn_"),
                    configuration_id: input.configuration_id,
                    backend_id: input.backend_id.clone(),
                    harness_auth: input.harness_auth,
                    execution_mode: input.execution_mode,
                    credential_sources: input.credential_sources.clone(),
                    plugins: input.plugins.clone(),
                    plugin_approvers: input.plugin_approvers.clone(),
                    desired_runtime_state: DesiredRuntimeState::Stopped,
                    active_revision_id: None,
                    status: AgentStatus::Active,
                    created_at: self.store.now().await?,
                };
                let event = op
                    .event(ResourceRef::agent(namespace, id), &allowed)
                    .with("servicePrincipalId", agent.service_principal_id.as_str())
                    .with("configurationId", agent.configuration_id.to_string());
                let change = draft
                    .expected(Change::new().expect(Expect::NamespaceStatus(namespace, ACCEPTING)))
                    .write(Write::Agent(agent.clone(), setup(&input)))
                    .audit(event);
                if tries.commit(op.answering(change, &agent)?).await? {
                    return Ok(agent);
                }
            }
        })
        .await
    }

    /// An Agent.
    pub async fn agent(&self, caller: &Caller, namespace: NamespaceId, id: AgentId) -> Answer<Agent> {
        let op = self.operation(caller, "openclaw.agents.read", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::agent(namespace, id)).await?;
            let row = self.agent_row(namespace, id).await?;
            draft::readable(&row.unreadable)?;
            Ok(row.agent)
        })
        .await
    }

    /// An Agent as far as its saved settings can be read, and the tag of its draft.
    pub async fn saved_agent(&self, caller: &Caller, namespace: NamespaceId, id: AgentId) -> Answer<(AgentView, Tag)> {
        let op = self.operation(caller, "openclaw.agents.read", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::agent(namespace, id)).await?;
            let row = self.agent_row(namespace, id).await?;
            let tag = Tag::of_draft(&row.agent);
            Ok((row.into(), tag))
        })
        .await
    }

    /// The Agents that the caller may read, in pages, by creation, as far as their saved settings can be read.
    pub async fn agents_page(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        query: &PageQuery,
    ) -> Answer<Page<AgentView>> {
        let op = self.operation(caller, "openclaw.agents.list", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::namespace(namespace)).await?;
            self.live_namespace(namespace).await?;
            let read = async |slice: Slice| self.store.agents_in(namespace, &slice).await;
            let place = |row: &AgentRow| Cursor {
                order: row.agent.created_at.as_millis(),
                id: row.agent.id.to_string(),
            };
            let page = op
                .page(query, read, place, |row| ResourceRef::agent(namespace, row.agent.id))
                .await?;
            Ok(page.map(Into::into))
        })
        .await
    }

    /// The Agents that the caller may read, all of them, by creation. Needs `namespace:read`.
    pub async fn agents(&self, caller: &Caller, namespace: NamespaceId) -> Answer<Vec<Agent>> {
        let op = self.operation(caller, "openclaw.agents.list", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::namespace(namespace)).await?;
            self.live_namespace(namespace).await?;
            let rows = self.store.agents(namespace).await?;
            let rows = op
                .readable(rows, |row| ResourceRef::agent(namespace, row.agent.id))
                .await?;
            rows.iter().try_for_each(|row| draft::readable(&row.unreadable))?;
            Ok(rows.into_iter().map(|row| row.agent).collect())
        })
        .await
    }

    /// Changes an Agent's draft; changes no version and queues nothing.
    pub async fn update_agent(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: AgentId,
        input: UpdateAgent,
    ) -> Answer<Agent> {
        let op = self.operation(caller, "openclaw.agents.update", Scope::Namespace(namespace));
        op.answer(async {
            let question = draft::permission(&caller.principal, namespace, Some(id));
            let sources = input.credential_sources.clone().unwrap_or_default();
            let plugins = input.plugins.clone().unwrap_or_default();
            let approvers = input.plugin_approvers.named().map(Vec::as_slice);
            check_extras(&sources, &plugins, approvers)?;
            let replaced = input.replaced();
            let named = Named {
                credential_sources: sources.iter().map(|source| source.source_id).collect(),
                plugins: &plugins,
                plugin_approvers: approvers,
                configuration_id: input.configuration_id,
                harness_auth: input.harness_auth.named().copied(),
                backend_id: input.backend_id.named(),
                replaced: &replaced,
                defaults_known: true,
            };
            let mut tries = op.tries();
            loop {
                let allowed = granted(op.decide(vec![question.clone()]).await?)?;
                let draft = self.admit_draft(&op, &allowed, namespace, Some(id), &named).await?;
                let row = draft.agent_row.clone().ok_or_else(Refusal::not_found)?;
                op.on_state(&Tag::of_draft(&row.agent))?;
                let agent = changed(row.agent, &input);
                let event = op
                    .event(ResourceRef::agent(namespace, id), &allowed)
                    .with("configurationId", agent.configuration_id.to_string());
                let change = draft
                    .expected(Change::new().expect(Expect::Agent(id, row.version)))
                    .write(Write::UpdateAgent(agent.clone()))
                    .audit(event);
                if tries.commit(change).await? {
                    return Ok(agent);
                }
            }
        })
        .await
    }

    /// An Agent's row; 404 when there is none.
    pub(super) async fn agent_row(&self, namespace: NamespaceId, id: AgentId) -> Answer<AgentRow> {
        self.store.agent(namespace, id).await?.ok_or_else(Refusal::not_found)
    }

    async fn admit_draft(
        &self,
        op: &Operation<'_>,
        allowed: &Authorization,
        namespace: NamespaceId,
        agent: Option<AgentId>,
        named: &Named<'_>,
    ) -> Answer<Draft> {
        let namespace_row: Option<NamespaceRow> = self.store.namespace(namespace).await?;
        let agent_row = match agent {
            Some(id) => self.store.agent(namespace, id).await?,
            None => None,
        };
        let configuration = self.store.configuration(namespace, named.configuration_id).await?;
        let current = agent_row.as_ref().and_then(|row| row.agent.harness_auth);
        let auths = [current, named.harness_auth];
        let used = agent_row.iter().flat_map(|row| &row.agent.credential_sources);
        let used = used.map(|source| source.source_id);
        let asked: Vec<_> = named.credential_sources.iter().copied().chain(used).collect();
        let questions = draft::required(
            op.principal(),
            namespace,
            named.configuration_id,
            &auths,
            &asked,
            configuration.as_ref(),
        );
        let grants = Grants::new(op.decide(questions).await?).and([allowed.clone()]);
        let bindings = configuration
            .iter()
            .flat_map(|row| row.secret_bindings.values().map(|b| b.source.id));
        let auth = named
            .harness_auth
            .as_ref()
            .and_then(HarnessAuth::secret)
            .map(|(_, id)| id);
        let secrets = self.named_secrets(namespace, bindings.chain(auth).collect()).await?;
        // Looked for only by those who may know.
        let account = match source::account_of(named.harness_auth.as_ref()) {
            Some(id) => {
                let row = self
                    .store
                    .owned(namespace, OwnedKind::ServiceAccount, &id.to_string())
                    .await?;
                row.map(ServiceAccount::try_from).transpose()?
            }
            None => None,
        };
        let mediated = named.harness_auth.as_ref().and_then(HarnessAuth::credential_source);
        let mut mediated: Vec<_> = mediated
            .into_iter()
            .chain(named.credential_sources.iter().copied())
            .collect();
        mediated.sort_unstable();
        mediated.dedup();
        let sources = self.named_sources(namespace, &mediated).await?;
        draft::admit(&DraftInputs {
            caller: op.principal(),
            namespace,
            agent,
            configuration_id: named.configuration_id,
            harness_auth: named.harness_auth,
            backend_id: named.backend_id,
            backends: self.drivers.backends(),
            credential_sources: &named.credential_sources,
            sources: Sources {
                gateway: self.drivers.gateway_id(),
                rows: &sources,
            },
            plugins: named.plugins,
            plugin_approvers: named.plugin_approvers,
            plugin_driver: self.drivers.plugin.as_deref(),
            account: account.as_ref(),
            grants: &grants,
            namespace_row: namespace_row.as_ref(),
            agent_row: agent_row.as_ref(),
            replaced: named.replaced,
            configuration: configuration.as_ref(),
            secrets: &secrets,
            secret_driver: &self.drivers.secret.identity().id,
            defaults_known: named.defaults_known,
        })?;
        Ok(Draft {
            agent_row,
            configuration,
            secrets,
            account,
            sources,
        })
    }

    /// Whether the caller saw the stock files of the runtime that will apply them; an Installation that cannot tell takes any.
    fn knows_defaults(&self, id: Option<&str>) -> bool {
        let Some(id) = id else { return true };
        let mut known = self
            .drivers
            .harnesses
            .iter()
            .filter_map(|harness| harness.workspace_defaults())
            .peekable();
        known.peek().is_none() || known.any(|current| current == id)
    }
}

impl Draft {
    /// The change, under what the draft's admission rests on.
    fn expected(&self, change: Change) -> Change {
        let change = match &self.configuration {
            Some(row) => change.expect(Expect::Configuration(row.id, row.generation)),
            None => change,
        };
        let change = match &self.account {
            Some(account) => change.expect(Expect::Owned(account.id.to_string(), account.version)),
            None => change,
        };
        let change = self.sources.iter().fold(change, |change, source| {
            change.expect(Expect::Owned(source.id.to_string(), source.version))
        });
        bound(change, &self.secrets)
    }
}

/// The first answer, when it grants.
pub(super) fn granted(answers: Vec<Authorization>) -> Answer<Authorization> {
    match answers.into_iter().next() {
        Some(answer) if answer.decision.allowed => Ok(answer),
        Some(answer) => Err(crate::admission::denied(answer)),
        None => Err(Refusal::driver_away(crate::driver::DriverKind::Iam)),
    }
}

fn changed(mut agent: Agent, input: &UpdateAgent) -> Agent {
    agent.configuration_id = input.configuration_id;
    if let Some(mode) = input.execution_mode {
        agent.execution_mode = mode;
    }
    input.backend_id.clone().apply(&mut agent.backend_id);
    input.harness_auth.apply(&mut agent.harness_auth);
    if let Some(sources) = &input.credential_sources {
        agent.credential_sources.clone_from(sources);
    }
    if let Some(plugins) = &input.plugins {
        agent.plugins.clone_from(plugins);
    }
    input.plugin_approvers.clone().apply(&mut agent.plugin_approvers);
    agent
}

/// What the form of these fields alone does not say.
fn check_extras(sources: &[AgentCredentialSource], plugins: &Plugins, approvers: Option<&[Approver]>) -> Answer<()> {
    let repeated = (1..sources.len()).find(|&i| sources[..i].contains(&sources[i]));
    if sources.len() > CREDENTIAL_SOURCES_MAX {
        let refusal = Refusal::invalid("An Agent may use at most 8 credential sources.");
        return Err(refusal.at("/credentialSources", DetailCode::TooLong));
    }
    if let Some(index) = repeated {
        let refusal = Refusal::invalid("A credential source is named once.");
        return Err(refusal.at(&format!("/credentialSources/{index}"), DetailCode::InvalidValue));
    }
    let approvers = approvers.unwrap_or_default();
    let repeated = (1..approvers.len()).find(|&i| approvers[..i].contains(&approvers[i]));
    if let Some(index) = repeated {
        let refusal = Refusal::invalid("An approver is named once.");
        return Err(refusal.at(&format!("/pluginApprovers/{index}"), DetailCode::InvalidValue));
    }
    if approvers.len() > APPROVERS_MAX {
        let refusal = Refusal::invalid("At most 64 approvers may be named.");
        return Err(refusal.at("/pluginApprovers", DetailCode::TooLong));
    }
    if plugins.len() > PLUGINS_MAX {
        let refusal = Refusal::invalid("An Agent may select at most 256 plugins.");
        return Err(refusal.at("/plugins", DetailCode::TooLong));
    }
    let fault = |(id, plugin): (&PluginId, &PluginSelection)| Some((id.clone(), plugin.fault()?));
    if let Some((id, (below, message))) = plugins.iter().find_map(fault) {
        let at = plugins::pointer(id.as_str(), &below);
        return Err(Refusal::invalid(message).at(&at, DetailCode::InvalidValue));
    }
    Ok(())
}

/// Files that are staged until the first deployment; no file at all is native initialization (seed).
fn setup(input: &CreateAgent) -> Option<WorkspaceSetup> {
    let files = &input.initial_workspace_files;
    let staged = || WorkspaceSetup {
        id: crate::randomness::uuid(),
        defaults_id: input.workspace_defaults_id.clone(),
        files: Some(files.clone()),
    };
    (!files.0.is_empty()).then(staged)
}

fn check_workspace(input: &CreateAgent) -> Answer<()> {
    for (name, content) in &input.initial_workspace_files.0 {
        let (message, code) = match WorkspaceFiles::check(content) {
            Ok(()) => continue,
            Err(InvalidWorkspaceFile::TooLong) => ("A workspace file must fit within 16 KiB.", DetailCode::TooLong),
            Err(InvalidWorkspaceFile::Nul) => ("A workspace file must not contain NUL.", DetailCode::InvalidValue),
        };
        return Err(Refusal::invalid(message).at(&format!("/initialWorkspaceFiles/{}", name.as_str()), code));
    }
    let hexadecimal = |id: &str| id.len() == 64 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match &input.workspace_defaults_id {
        Some(id) if !hexadecimal(id) => {
            let refusal = Refusal::invalid("The workspaceDefaultsId must be 64 hexadecimal digits.");
            Err(refusal.at("/workspaceDefaultsId", DetailCode::InvalidFormat))
        }
        _ => Ok(()),
    }
}

//! Agents: drafts and reads (seed: Agents; spec/engine 1.9, 3.1).

use super::{
    Answer, Caller, ControlPlane, CreateAgent, UpdateAgent,
    commit::Tries,
    configurations::bound,
    installation::opaque,
    namespaces::ACCEPTING,
    operation::{Operation, Scope},
};
use crate::{
    admission::{
        DetailCode, Grants, Refusal,
        draft::{self, DraftInputs},
    },
    audit::Authorization,
    driver::{Action, ResourceRef},
    id::{AgentId, ConfigurationId, NamespaceId},
    resource::{
        Agent, AgentStatus, BackendId, DesiredRuntimeState, HarnessAuth, InvalidWorkspaceFile, Secret, WorkspaceFiles,
        WorkspaceSetup,
    },
    store::{AgentRow, Change, ConfigurationRow, Expect, NamespaceRow, Write},
};

/// What a draft names, for its admission.
struct Named<'a> {
    configuration_id: ConfigurationId,
    harness_auth: Option<HarnessAuth>,
    backend_id: Option<&'a BackendId>,
    defaults_known: bool,
}

/// What an admitted draft rests on.
struct Draft {
    agent_row: Option<AgentRow>,
    configuration: Option<ConfigurationRow>,
    secrets: Vec<Secret>,
}

impl ControlPlane {
    /// Creates an Agent with a service principal of its own; starts nothing.
    pub async fn create_agent(&self, caller: &Caller, namespace: NamespaceId, input: CreateAgent) -> Answer<Agent> {
        let op = self.operation(caller, "openclaw.agents.create", Scope::Namespace(namespace));
        op.answer(async {
            check_workspace(&input)?;
            let allowed = op
                .decide(vec![draft::permission(&caller.principal, namespace, None)])
                .await?;
            let allowed = granted(allowed)?;
            let id = AgentId::random();
            let named = Named {
                configuration_id: input.configuration_id,
                harness_auth: input.harness_auth,
                backend_id: input.backend_id.as_ref(),
                defaults_known: self.knows_defaults(input.workspace_defaults_id.as_deref()),
            };
            let mut tries = Tries::new(&*self.store);
            loop {
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
                if tries.commit(change).await? {
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
            Ok(self.agent_row(namespace, id).await?.agent)
        })
        .await
    }

    /// The Agents that the caller may read, by creation. Needs `namespace:read`.
    pub async fn agents(&self, caller: &Caller, namespace: NamespaceId) -> Answer<Vec<Agent>> {
        let op = self.operation(caller, "openclaw.agents.list", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::namespace(namespace)).await?;
            self.live_namespace(namespace).await?;
            let agents = self
                .store
                .agents(namespace)
                .await?
                .into_iter()
                .map(|row| row.agent)
                .collect();
            op.readable(agents, |agent| ResourceRef::agent(namespace, agent.id))
                .await
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
            let allowed = op
                .decide(vec![draft::permission(&caller.principal, namespace, Some(id))])
                .await?;
            let allowed = granted(allowed)?;
            let named = Named {
                configuration_id: input.configuration_id,
                harness_auth: input.harness_auth.named().copied(),
                backend_id: input.backend_id.named(),
                defaults_known: true,
            };
            let mut tries = Tries::new(&*self.store);
            loop {
                let draft = self.admit_draft(&op, &allowed, namespace, Some(id), &named).await?;
                let row = draft.agent_row.clone().ok_or_else(Refusal::not_found)?;
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
        let questions = draft::required(
            op.principal(),
            namespace,
            named.configuration_id,
            &auths,
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
        draft::admit(&DraftInputs {
            caller: op.principal(),
            namespace,
            agent,
            configuration_id: named.configuration_id,
            harness_auth: named.harness_auth,
            backend_id: named.backend_id,
            grants: &grants,
            namespace_row: namespace_row.as_ref(),
            agent_row: agent_row.as_ref(),
            configuration: configuration.as_ref(),
            secrets: &secrets,
            secret_driver: &self.drivers.secret.identity().id,
            defaults_known: named.defaults_known,
        })?;
        Ok(Draft {
            agent_row,
            configuration,
            secrets,
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
    agent
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

//! Deployment: the draft becomes the next version (seed: Agent identity and deployment; spec/engine 3).

use std::collections::BTreeMap;

use futures_util::future::{join_all, join3};

use super::{
    Answer, Caller, ControlPlane, RevisionView,
    agents::granted,
    commit::Tries,
    configurations::bound,
    credentials::Provisioned,
    operation::{Operation, Scope, effect, look},
    runtime::{agent_ref, credentials_refusal},
    secrets::identity_of,
};
use crate::{
    admission::{
        Grants, Refusal,
        deploy::{self, Admitted, DeployInputs, Gathered},
        source,
    },
    audit::Authorization,
    driver::{Action, DriverKind, OperationContext, ResourceRef},
    id::{AgentId, NamespaceId, RevisionId, SecretId},
    resource::{Agent, AgentRevision, BackendRef, DesiredRuntimeState, Document, NamespaceStatus},
    revision,
    store::{Change, DeployRead, Expect, Write},
    work::{NewWork, Target},
};

/// What drivers answered.
struct Answers {
    document: Gathered<Option<(u64, Document)>>,
    secrets: BTreeMap<SecretId, Gathered<BackendRef>>,
    credentials: Option<Gathered<bool>>,
}

impl ControlPlane {
    /// Saves the draft as the next version and queues its deployment. The answer confirms that both are committed, together
    /// with the audit; it says nothing about the workload.
    pub async fn deploy_agent(&self, caller: &Caller, namespace: NamespaceId, id: AgentId) -> Answer<RevisionView> {
        let op = self.operation(caller, "openclaw.agents.deploy", Scope::Namespace(namespace));
        op.answer(async {
            let allowed = granted(
                op.decide(vec![deploy::permission(&caller.principal, namespace, id)])
                    .await?,
            )?;
            let mut tries = Tries::new(&*self.store);
            let mut provisioned = Provisioned::new(self);
            let answer = async {
                loop {
                    let read = self.store.deploy_read(namespace, id).await?;
                    let questions = deploy::required(&caller.principal, &read);
                    let grants = Grants::new(op.decide(questions).await?).and([allowed.clone()]);
                    let cx = self.context();
                    let answers = self.ask_drivers(&op, &cx, &read, &grants).await;
                    // A document that stays away is for the checks to judge.
                    if answers.stale(&read) && !tries.is_last() {
                        tries.again().await?;
                        continue;
                    }
                    let inputs = DeployInputs {
                        caller: &caller.principal,
                        namespace,
                        agent: id,
                        read: &read,
                        grants,
                        document: answers.document,
                        secrets: answers.secrets,
                        credentials: answers.credentials,
                        drivers: &self.drivers,
                    };
                    let admitted = deploy::admit(&inputs)?;
                    let row = read.agent.as_ref().ok_or_else(Refusal::not_found)?;
                    if admitted.provision_credentials {
                        provisioned.of(&row.agent);
                        self.provision_credentials(&cx, &row.agent).await?;
                    }
                    let revision = frozen(&row.agent, admitted, &read);
                    let change = admission_change(&op, &allowed, &read, &revision).state(cx.state().take_staged());
                    if tries.commit(change).await? {
                        return Ok(revision.into());
                    }
                }
            }
            .await;
            provisioned.kept(answer).await
        })
        .await
    }

    /// Asks the drivers what the checks will want to know, and nothing that the caller's or the Agent's grants do not cover.
    async fn ask_drivers(
        &self,
        op: &Operation<'_>,
        cx: &OperationContext,
        read: &DeployRead,
        grants: &Grants,
    ) -> Answers {
        let Some(agent) = read.agent.as_ref().map(|row| &row.agent) else {
            return Answers {
                document: Gathered::NotAsked,
                secrets: BTreeMap::new(),
                credentials: None,
            };
        };
        let document = async {
            let resource = ResourceRef::configuration(agent.namespace_id, agent.configuration_id);
            match &read.configuration {
                Some(row) if grants.allows(&op.ask(Action::Read, resource)) => Gathered::of(
                    look(self.drivers.configuration.read(cx, row.namespace_id, row.id)).await,
                    |e| Refusal::driver(DriverKind::Configuration, e),
                ),
                _ => Gathered::NotAsked,
            }
        };
        let secrets = join_all(deploy::secret_ids(read).into_iter().map(|id| async move {
            let both = [op.principal(), &agent.service_principal_id];
            let granted = both
                .iter()
                .all(|who| grants.allows(&source::operate(who, agent.namespace_id, id)));
            let own = |driver: &str| driver == self.drivers.secret.identity().id;
            let answer = match read.secrets.iter().find(|secret| secret.id == id) {
                Some(secret) if granted && own(&secret.driver_id) => {
                    let identity = identity_of(secret);
                    Gathered::of(
                        look(self.drivers.secret.resolve(cx, &identity, &secret.backend_ref)).await,
                        |e| Refusal::driver(DriverKind::Secret, e),
                    )
                }
                _ => Gathered::NotAsked,
            };
            (id, answer)
        }));
        let credentials = async {
            match self.drivers.compute.runtime_credentials() {
                Some(credentials) => Some(Gathered::of(
                    look(credentials.exist(cx, &agent_ref(agent))).await,
                    credentials_refusal,
                )),
                None => None,
            }
        };
        let (document, secrets, credentials) = join3(document, secrets, credentials).await;
        Answers {
            document,
            secrets: secrets.into_iter().collect(),
            credentials,
        }
    }

    /// Creates the Agent's transport credentials without ever overwriting, and looks that they exist (spec/contracts 4.5).
    pub(super) async fn provision_credentials(&self, cx: &OperationContext, agent: &Agent) -> Answer<()> {
        let Some(credentials) = self.drivers.compute.runtime_credentials() else {
            return Ok(());
        };
        let agent = agent_ref(agent);
        effect(credentials.provision(cx, &agent))
            .await
            .map_err(|error| credentials_refusal(&error))?;
        match look(credentials.exist(cx, &agent)).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::driver_away(DriverKind::Compute)),
            Err(error) => Err(credentials_refusal(&error)),
        }
    }
}

impl Answers {
    /// Whether the document is of another generation than the row, because it changed between the two reads.
    fn stale(&self, read: &DeployRead) -> bool {
        match (&self.document, &read.configuration) {
            (Gathered::Known(document), Some(row)) => document
                .as_ref()
                .is_none_or(|(generation, _)| *generation != row.generation),
            _ => false,
        }
    }
}

fn frozen(agent: &Agent, admitted: Admitted, read: &DeployRead) -> AgentRevision {
    AgentRevision {
        id: RevisionId::random(),
        namespace_id: agent.namespace_id,
        agent_id: agent.id,
        revision: admitted.number,
        digest: revision::digest(&revision::canonical(&admitted.snapshot)),
        snapshot: admitted.snapshot,
        created_at: read.now,
    }
}

/// The version, its work, the desired state and the audit, under everything that the admission rests on.
fn admission_change(
    op: &Operation<'_>,
    allowed: &Authorization,
    read: &DeployRead,
    revision: &AgentRevision,
) -> Change {
    let (namespace, agent) = (revision.namespace_id, revision.agent_id);
    let mut change = Change::new().expect(Expect::NamespaceStatus(namespace, &[NamespaceStatus::Ready]));
    if let Some(row) = &read.agent {
        let running = Agent {
            desired_runtime_state: DesiredRuntimeState::Running,
            ..row.agent.clone()
        };
        change = change
            .expect(Expect::Agent(agent, row.version))
            .write(Write::UpdateAgent(running));
    }
    if let Some(row) = &read.configuration {
        change = change.expect(Expect::Configuration(row.id, row.generation));
    }
    let target = Target::Revision {
        namespace,
        agent,
        revision: revision.id,
    };
    let event = op
        .event(ResourceRef::agent_revision(namespace, revision.id), allowed)
        .with("agentId", agent.to_string())
        .with("revision", revision.revision)
        .with("digest", revision.digest.as_str());
    bound(change, &read.secrets)
        .expect(Expect::RevisionCount(agent, read.revisions))
        .write(Write::Revision {
            revision: Box::new(revision.clone()),
            bytes: revision::canonical(&revision.snapshot),
        })
        .write(Write::Enqueue(NewWork {
            target,
            actor: op.principal().clone(),
        }))
        .audit(event)
}

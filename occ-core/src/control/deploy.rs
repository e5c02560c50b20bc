//! Deployment: the draft becomes the next version (seed: Agent identity and deployment; spec/engine 3).

use std::collections::BTreeMap;

use futures_util::future::{join_all, join3};

use super::{
    Answer, Caller, ControlPlane, RevisionView,
    commit::Tries,
    configurations::bound,
    credentials::Generated,
    operation::{Operation, Scope, look},
    runtime::{agent_ref, credentials_refusal},
    secrets::identity_of,
};
use crate::{
    admission::{
        Grants, Refusal,
        deploy::{self, Admitted, DeployInputs, Gathered, Repeated},
        source,
    },
    audit::Authorization,
    driver::{Action, DriverKind, OperationContext, ResourceRef},
    id::{AgentId, NamespaceId, RevisionId, SecretId},
    resource::{
        Agent, AgentCredentialSource, AgentRevision, BackendRef, CredentialSource, DesiredRuntimeState, Document,
        NamespaceStatus, OwnedKind, PrincipalId, SecretBinding, SecretDelivery, SecretSource, SecretSourceKind,
        ServiceAccount,
    },
    revision,
    store::{AgentRow, Change, ConfigurationRow, DeployQuery, DeployRead, Expect, Write},
    work::Target,
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
        op.answer(self.deployed(&op, namespace, id, None)).await
    }

    /// Saves what an earlier version saved as the next version, and queues its deployment. Nothing of the earlier version
    /// changes, and nothing of the draft; everything is admitted anew, under the policy and the drivers of now. Needs `read` of
    /// the earlier version besides what a deployment needs.
    pub async fn redeploy(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: AgentId,
        earlier: RevisionId,
    ) -> Answer<RevisionView> {
        let op = self.operation(caller, "openclaw.agents.deploy", Scope::Namespace(namespace));
        op.answer(self.deployed(&op, namespace, id, Some(earlier))).await
    }

    async fn deployed(
        &self,
        op: &Operation<'_>,
        namespace: NamespaceId,
        id: AgentId,
        earlier: Option<RevisionId>,
    ) -> Answer<RevisionView> {
        let mut generated = Generated::new(self);
        // It holds all that an admission reads and freezes: too much for the futures of its callers.
        let answer = Box::pin(self.next_version(op, namespace, id, earlier, &mut generated)).await;
        generated.over().await;
        answer
    }

    /// The next version: of the draft, or of what an earlier version saved.
    async fn next_version(
        &self,
        op: &Operation<'_>,
        namespace: NamespaceId,
        id: AgentId,
        earlier: Option<RevisionId>,
        generated: &mut Generated<'_>,
    ) -> Answer<RevisionView> {
        let caller = op.principal();
        let mut first = vec![deploy::permission(caller, namespace, id)];
        first.extend(earlier.map(|earlier| op.ask(Action::Read, ResourceRef::agent_revision(namespace, earlier))));
        let query = self.deploy_query(caller, namespace, id);
        let mut tries = Tries::new(&*self.store);
        loop {
            // Rows, policy and records come in one read; nothing of it is told before the caller's grant, not even that it failed.
            let mut read = match self.store.deploy_read(&query).await {
                Ok(read) => read,
                Err(error) => {
                    op.require_all(first).await?;
                    return Err(error.into());
                }
            };
            let cx = self.context_knowing(std::mem::take(&mut read.records), std::mem::take(&mut read.policy));
            let allowed = op.require_all_in(&cx, first.clone()).await?.swap_remove(0);
            if let Some(first) = op.first_answer().await? {
                return Ok(first);
            }
            let draft = read.agent.clone();
            let pinned = match earlier {
                Some(earlier) => self.pin(&mut read, namespace, id, earlier).await?,
                None => None,
            };
            let account = self.named_account(&mut read, namespace).await?;
            let used = read.agent.as_ref().map(|row| deploy::source_ids(&row.agent));
            let sources = self.named_sources(namespace, &used.unwrap_or_default()).await?;
            let questions = deploy::required(caller, &read);
            let grants = Grants::new(op.decide_in(&cx, questions).await?).and([allowed.clone()]);
            let gathering = Gathering {
                op,
                read: &read,
                grants: &grants,
                account: account.as_ref(),
                reads_document: pinned.is_none(),
            };
            let mut answers = self.ask_drivers(&cx, &gathering).await;
            let repeated = pinned.as_ref().map(|pinned| pinned.repeated.clone());
            if let Some(Pinned { document, .. }) = pinned {
                let generation = read.configuration.as_ref().map_or(0, |row| row.generation);
                answers.document = Gathered::Known(Some((generation, document)));
            }
            // A document that stays away is for the checks to judge.
            if answers.stale(&read) && !tries.is_last() {
                tries.again().await?;
                continue;
            }
            let inputs = DeployInputs {
                caller,
                namespace,
                agent: id,
                read: &read,
                grants,
                document: answers.document,
                secrets: answers.secrets,
                credentials: answers.credentials,
                account: account.clone(),
                sources: sources.clone(),
                repeated,
                drivers: &self.drivers,
            };
            let admitted = deploy::admit(&inputs)?;
            let row = draft.as_ref().ok_or_else(Refusal::not_found)?;
            if admitted.provision_credentials {
                let begins = op.event(ResourceRef::agent(namespace, id), &allowed);
                if !generated.provide(&cx, row, begins, &mut tries).await? {
                    continue;
                }
            }
            let frozen = Frozen::of(&row.agent, admitted, &read);
            let source = Source {
                draft: row,
                account: account.as_ref(),
                sources: &sources,
                earlier,
            };
            let view = RevisionView::from(frozen.revision.clone());
            let change = admission_change(op, &allowed, &read, &source, frozen).state(cx.state().take_staged());
            if tries.commit(op.answering(change, &view)?).await? {
                return Ok(view);
            }
        }
    }

    /// What the store is asked for: the rows, and what drivers would ask it for themselves.
    fn deploy_query(&self, caller: &PrincipalId, namespace: NamespaceId, agent: AgentId) -> DeployQuery {
        let (configuration, secret) = (&self.drivers.configuration, &self.drivers.secret);
        let kept = [
            (configuration.keeps_in_store(), configuration.identity()),
            (secret.keeps_in_store(), secret.identity()),
        ];
        let records_of = kept
            .into_iter()
            .filter(|(in_store, _)| *in_store)
            .map(|(_, identity)| format!("{}/{}", identity.kind, identity.id))
            .collect();
        DeployQuery {
            namespace,
            agent,
            policy_of: self.drivers.iam.decides_by_stored_policy().then(|| caller.clone()),
            records_of,
        }
    }

    /// The service account that the draft names, if it exists; puts the Secret of its issued token among the rows.
    async fn named_account(&self, read: &mut DeployRead, namespace: NamespaceId) -> Answer<Option<ServiceAccount>> {
        let auth = read.agent.as_ref().and_then(|row| row.agent.harness_auth.as_ref());
        let Some(id) = source::account_of(auth) else {
            return Ok(None);
        };
        let row = self
            .store
            .owned(namespace, OwnedKind::ServiceAccount, &id.to_string())
            .await?;
        let account: Option<ServiceAccount> = row.map(TryInto::try_into).transpose()?;
        if let Some((token, _)) = account.as_ref().and_then(ServiceAccount::issued)
            && read.secrets.iter().all(|secret| secret.id != token)
        {
            read.secrets.extend(self.store.secret(namespace, token).await?);
        }
        Ok(account)
    }

    /// Puts what an earlier version saved in the place of the draft. Nothing without an Agent.
    async fn pin(
        &self,
        read: &mut DeployRead,
        namespace: NamespaceId,
        agent: AgentId,
        earlier: RevisionId,
    ) -> Answer<Option<Pinned>> {
        let Some(row) = &mut read.agent else { return Ok(None) };
        let revision = self.saved_revision(namespace, agent, earlier).await?;
        let snapshot = revision.snapshot;
        row.agent.configuration_id = snapshot.configuration_id;
        row.agent.backend_id = snapshot.backend_id;
        row.agent.harness_auth = Some(snapshot.harness_auth.binding);
        row.agent.execution_mode = snapshot.harness.mode;
        row.agent.credential_sources = snapshot
            .credential_sources
            .iter()
            .map(|frozen| AgentCredentialSource {
                source_id: frozen.source_id,
            })
            .collect();
        row.agent.plugins = snapshot.plugins.map(|frozen| frozen.plugins).unwrap_or_default();
        row.agent.plugin_approvers = snapshot.plugin_approvers;
        let binding = |id| SecretBinding {
            source: SecretSource {
                kind: SecretSourceKind::Secret,
                namespace_id: namespace,
                id,
            },
            delivery: SecretDelivery::Env,
        };
        let secret_bindings = snapshot
            .secret_bindings
            .into_iter()
            .map(|(name, frozen)| (name, binding(frozen.id)))
            .collect();
        // The Configuration itself may be another by now, or be gone.
        read.configuration = Some(ConfigurationRow {
            id: snapshot.configuration_id,
            namespace_id: namespace,
            kind: snapshot.configuration_kind,
            generation: snapshot.configuration_generation,
            secret_bindings,
            deleting: false,
            created_at: revision.created_at,
        });
        read.secrets = self.named_secrets(namespace, deploy::secret_ids(read)).await?;
        Ok(Some(Pinned {
            document: snapshot.configuration,
            repeated: Repeated {
                sandbox_driver_id: snapshot.sandbox_driver_id,
            },
        }))
    }

    /// Asks the drivers what the checks will want to know, and nothing that the caller's or the Agent's grants do not cover.
    async fn ask_drivers(&self, cx: &OperationContext, gathering: &Gathering<'_>) -> Answers {
        let Gathering {
            op,
            read,
            grants,
            account,
            reads_document,
        } = *gathering;
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
                Some(row) if reads_document && grants.allows(&op.ask(Action::Read, resource)) => Gathered::of(
                    look(self.drivers.configuration.read(cx, row.namespace_id, row.id)).await,
                    |e| Refusal::driver(DriverKind::Configuration, e),
                ),
                _ => Gathered::NotAsked,
            }
        };
        let both = [op.principal(), &agent.service_principal_id];
        let operated = deploy::secret_ids(read).into_iter().map(|id| {
            let ask = |who| grants.allows(&source::operate(who, agent.namespace_id, id));
            (id, both.into_iter().all(ask))
        });
        // Whoever may read an account may use its token.
        let token = account.and_then(|account| {
            let resource = ResourceRef::service_account(agent.namespace_id, account.id);
            Some((account.issued()?.0, grants.allows(&op.ask(Action::Read, resource))))
        });
        let secrets = join_all(token.into_iter().chain(operated).map(|(id, granted)| async move {
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
}

/// What an earlier version saved.
struct Pinned {
    document: Document,
    repeated: Repeated,
}

/// What drivers are asked about.
#[derive(Clone, Copy)]
struct Gathering<'a> {
    op: &'a Operation<'a>,
    read: &'a DeployRead,
    grants: &'a Grants,
    account: Option<&'a ServiceAccount>,
    /// Whether the document is the Configuration Driver's, and no earlier version's.
    reads_document: bool,
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

/// A version and its bytes.
struct Frozen {
    revision: AgentRevision,
    bytes: Vec<u8>,
}

impl Frozen {
    fn of(agent: &Agent, admitted: Admitted, read: &DeployRead) -> Self {
        let bytes = revision::canonical(&admitted.snapshot);
        let revision = AgentRevision {
            id: RevisionId::random(),
            namespace_id: agent.namespace_id,
            agent_id: agent.id,
            revision: admitted.number,
            digest: revision::digest(&bytes),
            snapshot: admitted.snapshot,
            created_at: read.now,
        };
        Self { revision, bytes }
    }
}

/// What a version is made of.
struct Source<'a> {
    /// The Agent's row as it is saved.
    draft: &'a AgentRow,
    /// The service account behind its token.
    account: Option<&'a ServiceAccount>,
    /// The credential sources.
    sources: &'a [CredentialSource],
    /// The earlier version that is repeated.
    earlier: Option<RevisionId>,
}

/// The version, its work, the desired state and the audit, under everything that the admission rests on.
fn admission_change(
    op: &Operation<'_>,
    allowed: &Authorization,
    read: &DeployRead,
    source: &Source<'_>,
    Frozen { revision, bytes }: Frozen,
) -> Change {
    let (namespace, agent) = (revision.namespace_id, revision.agent_id);
    let mut change = Change::new().expect(Expect::NamespaceStatus(namespace, &[NamespaceStatus::Ready]));
    let row = source.draft;
    let running = Agent {
        desired_runtime_state: DesiredRuntimeState::Running,
        ..row.agent.clone()
    };
    change = change
        .expect(Expect::Agent(agent, row.version))
        .write(Write::UpdateAgent(running));
    if let (Some(row), None) = (&read.configuration, source.earlier) {
        change = change.expect(Expect::Configuration(row.id, row.generation));
    }
    if let Some(account) = source.account {
        change = change.expect(Expect::Owned(account.id.to_string(), account.version));
    }
    for used in source.sources {
        change = change.expect(Expect::Owned(used.id.to_string(), used.version));
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
    let event = match source.earlier {
        Some(earlier) => event.with("repeatedRevisionId", earlier.to_string()),
        None => event,
    };
    bound(change, &read.secrets)
        .expect(Expect::RevisionCount(agent, read.revisions))
        .write(Write::Revision {
            revision: Box::new(revision),
            bytes,
        })
        .write(Write::Enqueue(op.work(target)))
        .audit(event)
}

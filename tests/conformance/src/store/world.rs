//! An Installation with one of each thing, and short ways to act on it.

use std::{sync::Arc, time::Duration};

use occ_core::{
    audit::AuditEvent,
    driver::ResourceRef,
    id::{AgentId, ConfigurationId, InstallationId, NamespaceId, RevisionId, SecretId},
    reason::{Pending, Success},
    resource::{
        Agent, AgentRevision, AgentStatus, BackendRef, ComputeIdentity, ConfigurationKind, DesiredRuntimeState,
        ExecutionMode, HarnessAuth, HarnessAuthSnapshot, HarnessIdentity, Installation, Namespace, NamespaceStatus,
        PrincipalId, Secret, SecretBindings, SecretSnapshot, SecretSource, SecretSourceKind, Snapshot,
    },
    revision,
    store::{Change, CommitError, ConfigurationRow, DeployQuery, Expect, Store, WorkState, Write},
    time::Timestamp,
    trace::TraceContext,
    work::{Claim, Lease, NewWork, Target, Transition},
};

use super::{Recorded, Subject};

/// A lease that does not end during a test.
pub(super) const LONG: Lease = Lease {
    duration: Duration::from_hours(1),
    max_attempts: 5,
};
/// A lease that has ended by the time that anyone looks again.
pub(super) const SHORT: Lease = Lease {
    duration: Duration::from_millis(1),
    max_attempts: 5,
};

/// Waits until the condition holds, and gives what it found. The bound is for a busy machine.
pub(super) async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..6000 {
        if let Some(found) = found().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what} did not happen within 30 seconds");
}

pub(super) fn principal(text: &str) -> PrincipalId {
    text.parse().expect("a principal's id")
}

pub(super) struct World {
    pub subject: Arc<dyn Subject>,
    pub store: Arc<dyn Store>,
    pub actor: PrincipalId,
    pub namespace: NamespaceId,
    pub configuration: ConfigurationRow,
    pub secret: Secret,
}

impl World {
    /// An Installation with a ready Namespace, a Secret and a Configuration.
    pub(super) async fn new(subject: Arc<dyn Subject>) -> Self {
        let store = subject.store();
        let at = store.now().await.expect("the clock");
        let namespace = namespace("default", at);
        let secret = secret(namespace.id, "model-key", at);
        let configuration = configuration(namespace.id, SecretBindings::new(), at);
        let world = Self {
            subject,
            store,
            actor: principal("prn_operator"),
            namespace: namespace.id,
            configuration: configuration.clone(),
            secret: secret.clone(),
        };
        let installation = Installation {
            id: InstallationId::random(),
            name: "test".parse().expect("a name"),
            created_at: at,
        };
        let change = Change::new()
            .expect(Expect::NoInstallation)
            .write(Write::Installation(installation))
            .write(Write::Principal(world.actor.clone(), "Operator".to_owned()))
            .write(Write::Namespace(namespace))
            .write(Write::Secret(secret))
            .write(Write::Configuration(configuration));
        world.commit(change).await;
        world
    }

    pub(super) async fn commit(&self, change: Change) {
        self.store.commit(change).await.expect("the change commits");
    }

    pub(super) async fn refused(&self, change: Change) -> CommitError {
        self.store.commit(change).await.expect_err("the change is refused")
    }

    pub(super) async fn write(&self, write: Write) {
        self.commit(Change::new().write(write)).await;
    }

    pub(super) async fn audit(&self) -> Vec<Recorded> {
        self.subject.audit().await
    }

    /// The reconcile evidence of one piece of work.
    pub(super) async fn evidence(&self, target: &Target) -> Vec<Recorded> {
        let key = target.key();
        let of = |event: &Recorded| event.action == "reconcile" && event.details["workId"] == key.as_str();
        self.audit().await.into_iter().filter(of).collect()
    }

    /// An event about the Namespace.
    pub(super) fn event(&self, action: &str) -> AuditEvent {
        AuditEvent::mutation(self.actor.clone(), action, ResourceRef::namespace(self.namespace))
    }

    pub(super) async fn now(&self) -> Timestamp {
        self.store.now().await.expect("the clock")
    }

    /// A stopped Agent that nobody has committed.
    pub(super) fn draft(&self, name: &str, at: Timestamp) -> Agent {
        let id = AgentId::random();
        Agent {
            id,
            namespace_id: self.namespace,
            name: name.parse().expect("a name"),
            service_principal_id: principal(&format!("service-agent-{id}")),
            configuration_id: self.configuration.id,
            backend_id: None,
            harness_auth: Some(HarnessAuth::ApiKey {
                source: source(&self.secret),
            }),
            execution_mode: ExecutionMode::Embedded,
            credential_sources: Vec::new(),
            plugins: std::collections::BTreeMap::default(),
            plugin_approvers: None,
            desired_runtime_state: DesiredRuntimeState::Stopped,
            active_revision_id: None,
            status: AgentStatus::Active,
            created_at: at,
        }
    }

    pub(super) async fn agent(&self, name: &str) -> Agent {
        let agent = self.draft(name, self.now().await);
        self.write(Write::Agent(agent.clone(), None)).await;
        agent
    }

    pub(super) async fn read_agent(&self, id: AgentId) -> Option<Agent> {
        self.store
            .agent(self.namespace, id)
            .await
            .expect("a read")
            .map(|row| row.agent)
    }

    /// The version of an Agent's row.
    pub(super) async fn version(&self, id: AgentId) -> u64 {
        self.store
            .agent(self.namespace, id)
            .await
            .expect("a read")
            .expect("the Agent")
            .version
    }

    pub(super) fn next_revision(&self, agent: &Agent, number: u64, at: Timestamp) -> AgentRevision {
        let snapshot = Snapshot {
            backend_id: None,
            configuration_id: self.configuration.id,
            configuration_kind: ConfigurationKind::Agent,
            configuration_generation: 1,
            configuration: serde_json::Map::new(),
            harness: HarnessIdentity {
                id: "openclaw".to_owned(),
                version: "1".to_owned(),
                mode: ExecutionMode::Embedded,
            },
            compute: ComputeIdentity {
                id: "compute".to_owned(),
                implementation: "test/null".to_owned(),
            },
            sandbox_driver_id: None,
            credential_sources: Vec::new(),
            plugins: None,
            plugin_approvers: None,
            harness_auth: HarnessAuthSnapshot {
                binding: HarnessAuth::ApiKey {
                    source: source(&self.secret),
                },
                secret: Some(SecretSnapshot {
                    id: self.secret.id,
                    secret_driver_id: self.secret.driver_id.clone(),
                    backend_ref: self.secret.backend_ref.clone(),
                }),
                account: None,
                source: None,
            },
            secret_bindings: std::collections::BTreeMap::new(),
            service_principal_id: agent.service_principal_id.clone(),
        };
        AgentRevision {
            id: RevisionId::random(),
            namespace_id: self.namespace,
            agent_id: agent.id,
            revision: number,
            digest: revision::digest(&revision::canonical(&snapshot)),
            snapshot,
            created_at: at,
        }
    }

    /// Admits the next version: the version, the desired state and the work, in one change.
    pub(super) async fn deploy(&self, agent: &Agent) -> AgentRevision {
        let read = self
            .store
            .deploy_read(&DeployQuery::rows(self.namespace, agent.id))
            .await
            .expect("a read");
        let revision = self.next_revision(agent, read.revisions + 1, read.now);
        let mut draft = read.agent.expect("the Agent").agent;
        draft.desired_runtime_state = DesiredRuntimeState::Running;
        let change = Change::new()
            .expect(Expect::RevisionCount(agent.id, read.revisions))
            .write(written(&revision))
            .write(Write::UpdateAgent(draft))
            .write(Write::Enqueue(self.work(self.deployment(&revision))));
        self.commit(change).await;
        // Work of the same millisecond would be claimed by its key.
        let queued = self.now().await;
        until("the next millisecond", async || {
            (self.now().await > queued).then_some(())
        })
        .await;
        revision
    }

    /// Moves the Agent's pointer.
    pub(super) async fn select(&self, revision: &AgentRevision) {
        self.write(Write::ActiveRevision(revision.agent_id, Some(revision.id)))
            .await;
    }

    /// Marks the Agent as being deleted and queues the work.
    pub(super) async fn delete(&self, id: AgentId) -> Target {
        let mut agent = self.read_agent(id).await.expect("the Agent");
        agent.desired_runtime_state = DesiredRuntimeState::Stopped;
        agent.status = AgentStatus::Deleting;
        let target = Target::AgentDeleted {
            namespace: self.namespace,
            agent: id,
        };
        self.commit(
            Change::new()
                .write(Write::UpdateAgent(agent))
                .write(Write::Enqueue(self.work(target))),
        )
        .await;
        target
    }

    pub(super) const fn deployment(&self, revision: &AgentRevision) -> Target {
        Target::Revision {
            namespace: self.namespace,
            agent: revision.agent_id,
            revision: revision.id,
        }
    }

    pub(super) fn work(&self, target: Target) -> NewWork {
        NewWork::new(target, self.actor.clone())
    }

    /// Claims the one piece of work that is due.
    pub(super) async fn claim(&self, lease: Lease) -> Claim {
        let mut claims = until("a claim", async || {
            Some(self.store.claim(16, lease).await.expect("a claim")).filter(|claims| !claims.is_empty())
        })
        .await;
        assert_eq!(claims.len(), 1, "one piece of work is due: {claims:?}");
        claims.remove(0)
    }

    pub(super) async fn settle(&self, claim: &Claim, transition: Transition) {
        let change = Change::new()
            .expect(Expect::ClaimHeld(claim.token))
            .write(Write::Settle(claim.token, transition));
        self.commit(change).await;
    }

    /// Claims under a lease that lapses, and takes the claim back.
    pub(super) async fn lose(&self) -> Claim {
        let claim = self.claim(SHORT).await;
        self.recovered(SHORT).await;
        claim
    }

    /// Waits until something was recovered.
    pub(super) async fn recovered(&self, lease: Lease) -> usize {
        until("a recovery", async || {
            Some(self.store.recover(lease).await.expect("a recovery")).filter(|n| *n > 0)
        })
        .await
    }

    pub(super) async fn state(&self, target: &Target) -> WorkState {
        self.store
            .work_state(&target.key())
            .await
            .expect("a read")
            .expect("the work")
    }
}

/// A place in a trace.
pub(super) fn trace() -> TraceContext {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    TraceContext::parse(parent, Some("vendor=opaque,other=1")).expect("a context")
}

/// A deferral that is due at once.
pub(super) const fn defer(reason: Pending) -> Transition {
    Transition::Defer {
        reason,
        delay: Duration::ZERO,
        refusal: None,
        failed_stops: 0,
        repeat_evidence: false,
    }
}

pub(super) const fn complete(code: Success) -> Transition {
    Transition::Complete {
        code,
        warnings: Vec::new(),
    }
}

pub(super) fn written(revision: &AgentRevision) -> Write {
    Write::Revision {
        revision: Box::new(revision.clone()),
        bytes: revision::canonical(&revision.snapshot),
    }
}

pub(super) fn namespace(name: &str, at: Timestamp) -> Namespace {
    Namespace {
        id: NamespaceId::random(),
        name: name.parse().expect("a name"),
        existing_namespace: None,
        status: NamespaceStatus::Ready,
        created_at: at,
    }
}

pub(super) fn secret(namespace: NamespaceId, name: &str, at: Timestamp) -> Secret {
    let id = SecretId::random();
    Secret {
        id,
        namespace_id: namespace,
        name: name.parse().expect("a name"),
        driver_id: "secret-local".to_owned(),
        backend_ref: BackendRef {
            namespace_name: namespace.to_string(),
            name: id.to_string(),
            key: "value".to_owned(),
            uid: uuid::Uuid::new_v4().to_string(),
        },
        version: 1,
        deleting: false,
        created_at: at,
    }
}

pub(super) fn configuration(
    namespace: NamespaceId,
    secret_bindings: SecretBindings,
    at: Timestamp,
) -> ConfigurationRow {
    ConfigurationRow {
        id: ConfigurationId::random(),
        namespace_id: namespace,
        kind: ConfigurationKind::Agent,
        generation: 1,
        secret_bindings,
        deleting: false,
        created_at: at,
    }
}

pub(super) const fn source(secret: &Secret) -> SecretSource {
    SecretSource {
        kind: SecretSourceKind::Secret,
        namespace_id: secret.namespace_id,
        id: secret.id,
    }
}

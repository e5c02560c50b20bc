//! One Agent that is deployed again and again, over any store.

pub mod spoilt;

use std::sync::Arc;

use occ_core::{
    audit::AuditEvent,
    driver::{ResourceRef, StateWrite},
    id::{AgentId, ConfigurationId, InstallationId, NamespaceId, RevisionId, SecretId},
    resource::{
        Agent, AgentRevision, AgentStatus, BackendRef, ComputeIdentity, ConfigurationKind, DesiredRuntimeState,
        ExecutionMode, HarnessAuth, HarnessAuthSnapshot, HarnessIdentity, Installation, Namespace, NamespaceStatus,
        PrincipalId, Secret, SecretBindings, SecretSource, SecretSourceKind, Snapshot,
    },
    revision,
    store::{Change, CommitError, ConfigurationRow, DeployQuery, Expect, Slice, Store, Write},
    work::{NewWork, Target},
};

/// How much one change writes.
#[derive(Debug, Clone, Copy)]
pub enum Load {
    /// A few hundred bytes.
    Small,
    /// 64 KiB.
    Large,
}

/// One Agent that is deployed again and again. Each step writes a version, its work, a driver's record and an event.
pub struct World {
    store: Arc<dyn Store>,
    namespace: NamespaceId,
    agent: Agent,
}

pub const DRIVER: &str = "configuration/test";

impl World {
    /// Over the Agent that an earlier process left, or a new one.
    pub async fn open(store: Arc<dyn Store>) -> Self {
        let namespaces = store.namespaces(&Slice::ALL).await.expect("a read");
        let Some(namespace) = namespaces.first().map(|row| row.namespace.id) else {
            return Self::create(store).await;
        };
        let agent = store.agents(namespace).await.expect("a read").remove(0).agent;
        Self {
            store,
            namespace,
            agent,
        }
    }

    pub async fn create(store: Arc<dyn Store>) -> Self {
        let at = store.now().await.expect("the clock");
        let name = |text: &str| text.parse().expect("a name");
        let namespace = Namespace {
            id: NamespaceId::random(),
            name: name("default"),
            existing_namespace: None,
            status: NamespaceStatus::Ready,
            created_at: at,
        };
        let secret = Secret {
            id: SecretId::random(),
            namespace_id: namespace.id,
            name: name("model-key"),
            driver_id: "secret-local".to_owned(),
            backend_ref: BackendRef {
                namespace_name: "ns".to_owned(),
                name: "secret".to_owned(),
                key: "value".to_owned(),
                uid: "1".to_owned(),
            },
            version: 1,
            deleting: false,
            created_at: at,
        };
        let configuration = ConfigurationRow {
            id: ConfigurationId::random(),
            namespace_id: namespace.id,
            kind: ConfigurationKind::Agent,
            generation: 1,
            secret_bindings: SecretBindings::new(),
            deleting: false,
            created_at: at,
        };
        let id = AgentId::random();
        let source = SecretSource {
            kind: SecretSourceKind::Secret,
            namespace_id: namespace.id,
            id: secret.id,
        };
        let agent = Agent {
            id,
            namespace_id: namespace.id,
            name: name("triage"),
            service_principal_id: format!("service-agent-{id}").parse().expect("an id"),
            configuration_id: configuration.id,
            backend_id: None,
            harness_auth: Some(HarnessAuth::ApiKey { source }),
            execution_mode: ExecutionMode::Embedded,
            credential_sources: Vec::new(),
            plugins: std::collections::BTreeMap::default(),
            plugin_approvers: None,
            desired_runtime_state: DesiredRuntimeState::Running,
            active_revision_id: None,
            status: AgentStatus::Active,
            created_at: at,
        };
        let installation = Installation {
            id: InstallationId::random(),
            name: name("test"),
            created_at: at,
        };
        let namespace_id = namespace.id;
        let change = Change::new()
            .write(Write::Installation(installation))
            .write(Write::Namespace(namespace))
            .write(Write::Secret(secret))
            .write(Write::Configuration(configuration))
            .write(Write::Agent(agent.clone(), None));
        store.commit(change).await.expect("the world commits");
        Self {
            store,
            namespace: namespace_id,
            agent,
        }
    }

    /// How many versions there are.
    pub async fn count(&self) -> u64 {
        self.store
            .deploy_read(&DeployQuery::rows(self.namespace, self.agent.id))
            .await
            .expect("a read")
            .revisions
    }

    /// Admits the next version.
    pub async fn step(&mut self, load: Load) -> Result<u64, CommitError> {
        let (number, change) = self.next(load).await;
        self.store.commit(change).await.map(|()| number)
    }

    /// The change that would admit the next version.
    pub async fn next(&self, load: Load) -> (u64, Change) {
        let read = self
            .store
            .deploy_read(&DeployQuery::rows(self.namespace, self.agent.id))
            .await
            .expect("a read");
        let number = read.revisions + 1;
        let snapshot = Snapshot {
            backend_id: None,
            configuration_id: self.agent.configuration_id,
            configuration_kind: ConfigurationKind::Agent,
            configuration_generation: number,
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
                binding: HarnessAuth::Runtime {},
                secret: None,
                account: None,
                source: None,
            },
            secret_bindings: std::collections::BTreeMap::new(),
            service_principal_id: self.agent.service_principal_id.clone(),
        };
        let bytes = revision::canonical(&snapshot);
        let revision = AgentRevision {
            id: RevisionId::random(),
            namespace_id: self.namespace,
            agent_id: self.agent.id,
            revision: number,
            digest: revision::digest(&bytes),
            snapshot,
            created_at: read.now,
        };
        let actor: PrincipalId = "prn_operator".parse().expect("an id");
        let resource = ResourceRef::agent_revision(self.namespace, revision.id);
        let target = Target::Revision {
            namespace: self.namespace,
            agent: self.agent.id,
            revision: revision.id,
        };
        let size = match load {
            Load::Small => 256,
            Load::Large => 64 * 1024,
        };
        let record = StateWrite {
            driver: DRIVER.to_owned(),
            key: revision.id.to_string(),
            expected: None,
            value: Some(vec![b'x'; size]),
        };
        let change = Change::new()
            .expect(Expect::RevisionCount(self.agent.id, read.revisions))
            .write(Write::UpdateAgent(self.agent.clone()))
            .write(Write::Revision {
                revision: Box::new(revision),
                bytes,
            })
            .write(Write::Enqueue(NewWork::new(target, actor.clone())))
            .state(vec![record])
            .audit(AuditEvent::mutation(actor, "openclaw.agents.deploy", resource));
        (number, change)
    }
}

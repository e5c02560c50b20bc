//! The Agent's versions.

use std::sync::PoisonError;

use occ_core::{
    driver::{AgentRef, RevisionContext, RevisionRef},
    id::{ConfigurationId, RevisionId, SecretId},
    resource::{
        AgentRevision, BackendRef, ComputeIdentity, ConfigurationKind, Document, EnvName, HarnessAuth,
        HarnessAuthSnapshot, HarnessIdentity, SecretSnapshot, SecretSource, SecretSourceKind, Snapshot,
    },
    time::Timestamp,
};

use super::Scene;
use crate::compute::{Wish, plan};

impl Scene {
    pub(in crate::compute) fn wish(&self, version: u64) -> Wish {
        Wish {
            version: version.to_string(),
            refused: false,
            password: self.driver.runtime_credentials().is_some(),
            workspace: false,
        }
    }

    /// The Agent's version of this number.
    pub(in crate::compute) fn version(&self, number: u64) -> RevisionContext {
        self.version_as(number, &self.wish(number))
    }

    pub(in crate::compute) fn version_as(&self, number: u64, wish: &Wish) -> RevisionContext {
        let id = RevisionId::random();
        let target = RevisionRef {
            agent: self.agent.clone(),
            id,
            number,
            mode: self.subject.mode(),
        };
        self.versions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(target.clone());
        RevisionContext {
            namespace: self.namespace.clone(),
            target,
            revision: AgentRevision {
                id,
                namespace_id: self.namespace.id,
                agent_id: self.agent.id,
                revision: number,
                snapshot: self.snapshot(),
                digest: occ_core::digest::hex(id.to_string().as_bytes()),
                created_at: Timestamp::from_millis(0),
            },
            plan: self.subject.plan(wish),
            secrets: self.subject.secrets(),
            workspace_setup: None,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let identity = self.driver.identity();
        let secret = |id| SecretSnapshot {
            id,
            secret_driver_id: "secrets".to_owned(),
            backend_ref: BackendRef {
                namespace_name: "secrets".to_owned(),
                name: id.to_string(),
                key: "value".to_owned(),
                uid: "1".to_owned(),
            },
        };
        let (credential, bound) = (SecretId::random(), SecretId::random());
        let source = SecretSource {
            kind: SecretSourceKind::Secret,
            namespace_id: self.namespace.id,
            id: credential,
        };
        let name = EnvName::try_from(plan::BOUND.to_owned()).expect("a name that is not reserved");
        Snapshot {
            backend_id: None,
            configuration_id: ConfigurationId::random(),
            configuration_kind: ConfigurationKind::Agent,
            configuration_generation: 1,
            configuration: Document::new(),
            harness: HarnessIdentity {
                id: "conformance".to_owned(),
                version: "1.0.0".to_owned(),
                mode: self.subject.mode(),
            },
            compute: ComputeIdentity {
                id: identity.id.clone(),
                implementation: identity.implementation.clone(),
            },
            sandbox_driver_id: None,
            credential_sources: Vec::new(),
            plugins: None,
            plugin_approvers: None,
            harness_auth: HarnessAuthSnapshot {
                binding: HarnessAuth::ApiKey { source },
                secret: Some(secret(credential)),
                account: None,
                source: None,
            },
            secret_bindings: [(name, secret(bound))].into(),
            service_principal_id: self.agent.service_principal_id.clone(),
        }
    }

    pub(super) fn versions_of(&self, agent: &AgentRef) -> Vec<RevisionRef> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions
            .iter()
            .filter(|version| version.agent == *agent)
            .cloned()
            .collect()
    }

    pub(super) fn earlier(&self, target: &RevisionRef) -> Vec<RevisionRef> {
        let mut versions = self.versions_of(&target.agent);
        versions.retain(|version| version.number < target.number);
        versions
    }
}

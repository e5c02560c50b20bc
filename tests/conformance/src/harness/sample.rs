//! A document with what admission knows besides it.

use occ_core::{
    driver::{ComputeProfile, DocumentProblem, Harness, Listen, PlanInput},
    id::{ConfigurationId, NamespaceId, SecretId},
    plan::WorkloadPlan,
    resource::{
        BackendRef, ComputeIdentity, ConfigurationKind, Document, EnvName, ExecutionMode, HarnessAuth,
        HarnessAuthMethod, HarnessAuthSnapshot, HarnessIdentity, SecretSnapshot, SecretSource, SecretSourceKind,
        Snapshot,
    },
};

use crate::canary;

/// A native document, how it runs, how it authenticates, and what the Configuration binds.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The native document.
    pub document: Document,
    /// How it runs.
    pub mode: ExecutionMode,
    /// How the model credential is obtained.
    pub auth: HarnessAuth,
    /// Environment variables that Secrets are bound to.
    pub bindings: Vec<EnvName>,
}

impl Sample {
    /// A document that runs embedded with an API key from a Secret, and binds nothing.
    pub fn embedded(document: Document) -> Self {
        let source = SecretSource {
            kind: SecretSourceKind::Secret,
            namespace_id: NamespaceId::random(),
            id: SecretId::random(),
        };
        Self {
            document,
            mode: ExecutionMode::Embedded,
            auth: HarnessAuth::ApiKey { source },
            bindings: Vec::new(),
        }
    }

    /// The method alone.
    pub const fn method(&self) -> HarnessAuthMethod {
        self.auth.method()
    }

    /// A revision of it, as admission freezes it. Every private locator is a canary.
    pub(super) fn snapshot(&self, harness: &dyn Harness) -> Snapshot {
        let secret = |id| SecretSnapshot {
            id,
            secret_driver_id: "secrets".to_owned(),
            backend_ref: BackendRef {
                namespace_name: canary::OTHER.to_owned(),
                name: canary::OTHER.to_owned(),
                key: canary::OTHER.to_owned(),
                uid: canary::OTHER.to_owned(),
            },
        };
        Snapshot {
            backend_id: None,
            configuration_id: ConfigurationId::random(),
            configuration_kind: ConfigurationKind::Agent,
            configuration_generation: 1,
            configuration: self.document.clone(),
            harness: HarnessIdentity {
                id: harness.identity().id.clone(),
                version: harness.version().to_owned(),
                mode: self.mode,
            },
            compute: ComputeIdentity {
                id: "compute".to_owned(),
                implementation: "conformance/none".to_owned(),
            },
            sandbox_driver_id: None,
            credential_sources: Vec::new(),
            plugins: None,
            plugin_approvers: None,
            harness_auth: HarnessAuthSnapshot {
                binding: self.auth,
                secret: self.auth.secret().map(|(_, id)| secret(id)),
                account: None,
                source: None,
            },
            secret_bindings: self
                .bindings
                .iter()
                .map(|name| (name.clone(), secret(SecretId::random())))
                .collect(),
            service_principal_id: "principal".parse().expect("a principal"),
        }
    }
}

/// Where a gateway may be asked to listen.
pub(super) const LISTENS: [Listen; 2] = [Listen::Loopback, Listen::AllAddresses];

pub(super) fn plan(
    harness: &dyn Harness,
    snapshot: &Snapshot,
    listen: Listen,
) -> Result<WorkloadPlan, DocumentProblem> {
    harness.plan(PlanInput {
        snapshot,
        compute: ComputeProfile { listen },
    })
}

/// Every plan of what the Harness runs, with its sample.
pub(super) fn plans(subject: &dyn super::Subject) -> Vec<(Sample, WorkloadPlan)> {
    let harness = subject.harness();
    let accepted = subject.accepted();
    assert!(
        !accepted.is_empty(),
        "the subject has no document that the Harness runs"
    );
    let mut all = Vec::new();
    for sample in accepted {
        for listen in LISTENS {
            let planned = plan(&*harness, &sample.snapshot(&*harness), listen);
            all.push((sample.clone(), planned.expect("what the Harness runs has a plan")));
        }
    }
    all
}

//! A driver over a policy that a test changes.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use occ_core::{
    driver::{
        AccessRequest, Action, Decision, DriverKind, EffectResult, Fault, FaultKind, IamDriver, Identity, IdentityKind,
        OperationContext, ResourceKind, ResourceRef,
    },
    iam::{AccessBinding, Grants, Permission, PolicyReader, Restriction, Role, Subject},
    id::{AgentId, NamespaceId},
    registry::{BuildError, Built, HostServices, Registry},
    resource::PrincipalId,
};
use serde_json::{Value, json};

/// A policy that a test changes while a driver reads it.
#[derive(Default)]
pub(crate) struct Policy {
    pub(crate) grants: Mutex<Grants>,
    pub(crate) away: Mutex<bool>,
    pub(crate) reads: AtomicUsize,
}

#[async_trait]
impl PolicyReader for Policy {
    async fn grants(&self, _: &PrincipalId) -> EffectResult<Grants> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if *self.away.lock().expect("no panic") {
            return Err(Fault::new("read the policy", FaultKind::Unavailable).into());
        }
        Ok(self.grants.lock().expect("no panic").clone())
    }
}

pub(crate) fn build(id: &str, settings: Value, policy: Arc<Policy>) -> Result<Arc<dyn IamDriver>, BuildError> {
    let host = HostServices::new(std::env::temp_dir(), policy);
    let registry = Registry::linked().expect("one driver is linked");
    let registration = registry.find(DriverKind::Iam, "native").expect("the driver is linked");
    match (registration.build)(id, settings, &host)? {
        Built::Iam(driver) => Ok(driver),
        _ => panic!("another kind"),
    }
}

pub(crate) fn principal(text: &str) -> PrincipalId {
    text.parse().expect("a principal")
}

/// A human who may read every Agent and create Agents in one Namespace.
pub(crate) struct Rig {
    pub(crate) driver: Arc<dyn IamDriver>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) namespace: NamespaceId,
    pub(crate) agent: AgentId,
}

pub(crate) fn permission(action: Action, kind: ResourceKind) -> Permission {
    Permission { action, kind }
}

pub(crate) fn role(id: &str, permissions: &[Permission]) -> Role {
    Role {
        id: id.to_owned(),
        namespace_id: None,
        permissions: permissions.to_vec(),
    }
}

pub(crate) fn binding(id: &str, subject: Subject, role: &str) -> AccessBinding {
    AccessBinding {
        id: id.to_owned(),
        namespace_id: None,
        subject,
        role_id: role.to_owned(),
        resource: None,
    }
}

pub(crate) fn restriction(id: &str, action: Action, kind: ResourceKind) -> Restriction {
    Restriction {
        id: id.to_owned(),
        namespace_id: None,
        action,
        kind,
        resource_id: None,
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        let policy = Arc::new(Policy::default());
        *policy.grants.lock().expect("no panic") = Grants {
            identity: Some(Identity {
                id: principal("ada"),
                kind: IdentityKind::Human,
                namespace_id: None,
                agent_id: None,
            }),
            groups: vec!["operators".to_owned()],
            bindings: vec![binding("b-person", Subject::Identity(principal("ada")), "reader")],
            roles: vec![role("reader", &[permission(Action::Read, ResourceKind::Agent)])],
            restrictions: Vec::new(),
        };
        let driver = build("iam-native", json!({}), policy.clone()).expect("it builds");
        Self {
            driver,
            policy,
            namespace: NamespaceId::random(),
            agent: AgentId::random(),
        }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Grants)) {
        change(&mut self.policy.grants.lock().expect("no panic"));
    }

    /// Makes the principal a service principal.
    pub(crate) fn service(&self, namespace: Option<NamespaceId>, agent: Option<AgentId>) {
        self.change(|grants| {
            let identity = grants.identity.as_mut().expect("an identity");
            (identity.kind, identity.namespace_id, identity.agent_id) = (IdentityKind::Service, namespace, agent);
        });
    }

    pub(crate) async fn ask(&self, action: Action, resource: ResourceRef) -> Decision {
        let request = AccessRequest {
            principal: principal("ada"),
            action,
            resource,
        };
        self.driver
            .authorize(&OperationContext::default(), &request)
            .await
            .expect("an answer")
    }

    pub(crate) async fn read_agent(&self) -> Decision {
        self.ask(Action::Read, ResourceRef::agent(self.namespace, self.agent))
            .await
    }

    pub(crate) async fn allowed(&self) -> bool {
        self.read_agent().await.allowed
    }
}

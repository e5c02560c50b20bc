//! One Agent on the Compute under test, led through its life as the engine leads it.

mod looks;
mod steps;
mod version;

use std::sync::{Arc, Mutex, PoisonError};

use occ_core::{
    driver::{AgentRef, ComputeDriver, EffectResult, NamespaceState, OperationContext, RevisionRef},
    id::{AgentId, NamespaceId},
    resource::{Namespace, NamespaceStatus},
    time::Timestamp,
};

use super::Subject;
use crate::patience::until;

use steps::waits;
pub(in crate::compute) use steps::{settled, watched};

/// An Agent, and everything that was ever asked of the Compute for it.
pub(in crate::compute) struct Scene {
    pub(in crate::compute) subject: Arc<dyn Subject>,
    pub(in crate::compute) driver: Arc<dyn ComputeDriver>,
    pub(in crate::compute) namespace: Namespace,
    pub(in crate::compute) agent: AgentRef,
    /// Every version of every Agent of this place, so that nothing is left running.
    versions: Arc<Mutex<Vec<RevisionRef>>>,
    agents: Arc<Mutex<Vec<AgentRef>>>,
}

fn namespace(name: &str) -> Namespace {
    Namespace {
        id: NamespaceId::random(),
        name: name.parse().expect("a name"),
        existing_namespace: None,
        status: NamespaceStatus::Ready,
        created_at: Timestamp::from_millis(0),
    }
}

fn agent(namespace: NamespaceId) -> AgentRef {
    let id = AgentId::random();
    AgentRef {
        namespace_id: namespace,
        id,
        name: "agent".parse().expect("a name"),
        service_principal_id: format!("principal-of-{id}").parse().expect("a principal"),
    }
}

impl Scene {
    pub(in crate::compute) fn new(subject: Arc<dyn Subject>) -> Self {
        let driver = subject.driver();
        let namespace = namespace("conformance");
        let agent = agent(namespace.id);
        Self {
            subject,
            driver,
            agents: Arc::new(Mutex::new(vec![agent.clone()])),
            namespace,
            agent,
            versions: Arc::default(),
        }
    }

    /// The same place with an Agent of its own.
    fn beside(&self, namespace: Namespace) -> Self {
        let agent = agent(namespace.id);
        self.agents
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(agent.clone());
        Self {
            subject: Arc::clone(&self.subject),
            driver: Arc::clone(&self.driver),
            namespace,
            agent,
            versions: Arc::clone(&self.versions),
            agents: Arc::clone(&self.agents),
        }
    }

    /// Another Agent of the same Namespace.
    pub(in crate::compute) fn sibling(&self) -> Self {
        self.beside(self.namespace.clone())
    }

    /// An Agent of another Namespace.
    pub(in crate::compute) fn stranger(&self) -> Self {
        self.beside(namespace("another"))
    }

    /// A driver over the same place, as after a restart of the control plane.
    pub(in crate::compute) async fn restart(&mut self) {
        self.driver = self.subject.driver();
        self.bind().await;
    }

    pub(in crate::compute) fn cx() -> OperationContext {
        OperationContext::default()
    }

    /// What the engine does before the first version: the Namespace, the driver's record of the Agent, its credentials.
    pub(in crate::compute) async fn provide(&self) {
        self.provide_namespace().await;
        self.bind().await;
        if let Some(credentials) = self.driver.runtime_credentials() {
            let made = credentials.provision(&Self::cx(), &self.agent).await;
            watched("provision", made).expect("the credentials are made");
        }
    }

    pub(in crate::compute) async fn provide_namespace(&self) {
        until("the Namespace is provided", async || {
            let state = self.driver.ensure_namespace(&Self::cx(), &self.namespace).await;
            self.namespace_done(state)
        })
        .await;
    }

    pub(in crate::compute) async fn remove_namespace(&self) {
        until("the Namespace is removed", async || {
            let state = self.driver.delete_namespace(&Self::cx(), &self.namespace).await;
            self.namespace_done(state)
        })
        .await;
    }

    fn namespace_done(&self, state: EffectResult<NamespaceState>) -> Option<()> {
        match watched("a Namespace operation", state) {
            Ok(state) => {
                assert_eq!(state.namespace_id, self.namespace.id, "another Namespace was seen");
                state.done.then_some(())
            }
            Err(error) if waits(&error) => None,
            Err(error) => panic!("the Namespace: {error}"),
        }
    }

    async fn bind(&self) {
        if let Some(binding) = self.driver.agent_binding() {
            let bound = binding.bind(&Self::cx(), &self.agent).await;
            watched("bind", bound).expect("the Agent is bound");
        }
    }
}

//! A control plane over the faulty store and Compute: its parts, and those who use it.

use std::{sync::Arc, time::Duration};

use occ_configuration_local::ConfigurationLocal;
use occ_core::{
    control::{
        Bootstrap, Caller, ControlPlane, CreateAccessBinding, CreateAgent, CreateConfiguration, CreateNamespace,
        CreateRole,
    },
    driver::{Action, CONTRACT_VERSION, DriverIdentity, DriverKind, IamDriver, ResourceKind},
    iam::{ExactResource, Permission},
    id::{AgentId, NamespaceId},
    installation::Drivers,
    reason::ApiCode,
    registry::{DriverFactory as _, HostServices},
    resource::{
        Agent, ConfigurationKind, Document, ExecutionMode, HarnessAuth, Name, NamespaceStatus, SecretSource,
        SecretSourceKind, WorkspaceFiles,
    },
    secret_value::SecretValue,
    store::Store,
    work::Policy,
    worker::Worker,
};
use occ_iam_native::NativeIam;
use occ_test_support::drivers::{OutsideSecrets, PlainHarness, ScriptedIam};

use super::{ChaosCompute, dice::Dice, rules::Rules, store::FaultyStore};
use crate::memory::MemoryStore;

/// A control plane that was set up.
pub(super) struct Scene {
    pub plane: ControlPlane,
    pub store: Arc<FaultyStore>,
    pub memory: MemoryStore,
    pub drivers: Arc<Drivers>,
    pub iam: Arc<ScriptedIam>,
    pub admin: Caller,
    pub namespace: NamespaceId,
    pub agents: Vec<Agent>,
    pub rules: Rules,
    pub dice: Dice,
}

fn identity(kind: DriverKind, id: &str, implementation: &str) -> DriverIdentity {
    DriverIdentity {
        kind,
        id: id.to_owned(),
        implementation: implementation.to_owned(),
        contract: CONTRACT_VERSION,
    }
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

/// The embedded drivers, with this Compute.
pub(crate) fn compose(
    store: Arc<dyn Store>,
    compute: Arc<dyn occ_core::driver::ComputeDriver>,
) -> (Arc<Drivers>, Arc<ScriptedIam>) {
    let host = HostServices::new(std::env::temp_dir(), store as _);
    let id = identity(
        DriverKind::Configuration,
        "configuration-local",
        ConfigurationLocal::IMPLEMENTATION,
    );
    let configuration =
        ConfigurationLocal::build(id, occ_configuration_local::Settings::default(), &host).expect("the driver");
    let id = identity(DriverKind::Iam, "iam-native", NativeIam::IMPLEMENTATION);
    let native = NativeIam::build(id, occ_iam_native::Settings::default(), &host).expect("the driver");
    let iam = Arc::new(ScriptedIam::around(Arc::new(native)));
    let modes = [ExecutionMode::Embedded, ExecutionMode::Dedicated];
    let drivers = Drivers::builder()
        .configuration(Arc::new(configuration))
        .iam(Arc::clone(&iam) as Arc<dyn IamDriver>)
        .secret(Arc::new(OutsideSecrets::named("secret-outside")))
        .compute(compute)
        .harness(Arc::new(PlainHarness::named("plain", &modes)))
        .build()
        .expect("drivers that work together");
    (Arc::new(drivers), iam)
}

impl Scene {
    pub async fn set_up(
        dice: Dice,
        rules: Rules,
        memory: MemoryStore,
        store: Arc<FaultyStore>,
        compute: ChaosCompute,
        agents: u64,
    ) -> Self {
        let (drivers, iam) = compose(Arc::clone(&store) as _, Arc::new(compute));
        let plane = ControlPlane::new(Arc::clone(&store) as _, Arc::clone(&drivers));
        dice.hold_still(true);
        let bootstrapped = plane
            .bootstrap(Bootstrap {
                name: name("simulation"),
                administrator: name("Ada"),
            })
            .await
            .expect("an empty store");
        let admin = Caller::new(bootstrapped.administrator.clone());
        let mut scene = Self {
            plane,
            store,
            memory,
            drivers,
            iam,
            admin,
            namespace: bootstrapped.namespace.id,
            agents: Vec::new(),
            rules,
            dice,
        };
        for number in 0..agents {
            let dedicated = scene.dice.chance(300);
            let agent = agent(&scene.plane, &scene.admin, scene.namespace, number, dedicated).await;
            scene.agents.push(agent);
        }
        scene.ready().await;
        scene.dice.hold_still(false);
        scene
    }

    /// Lets a worker provide the Namespace.
    async fn ready(&self) {
        let worker = Worker::new(
            Arc::clone(&self.store) as _,
            Arc::clone(&self.drivers),
            Policy::default(),
        );
        let worker = worker.with_clock(Arc::new(self.memory.clone())).start();
        let status = || {
            let data = self.memory.data();
            data.namespaces[&self.namespace].row.namespace.status
        };
        while status() != NamespaceStatus::Ready {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        worker.shutdown().await;
    }

    /// One thing that somebody does, at random.
    pub async fn act(&self, dice: &Dice) {
        let agent = dice.pick(&self.agents).id;
        match dice.below(12) {
            0..=6 => drop(self.deploy(agent).await),
            7..=8 => self.stop(agent).await,
            9 => self.delete(agent).await,
            10 => self.namespace_life(dice).await,
            _ => {
                let status = self.memory.data();
                let versions = status.revisions.values().map(|row| row.revision.id).collect::<Vec<_>>();
                if !versions.is_empty() {
                    let revision = *dice.pick(&versions);
                    let read = self
                        .plane
                        .deployment(&self.admin, self.namespace, agent, revision)
                        .await;
                    self.answered("a status", read.map(drop));
                }
            }
        }
    }

    /// Whatever happens outside, no operation ever fails for a fault of its own.
    fn answered(&self, what: &str, answer: occ_core::control::Answer<()>) {
        if let Err(refusal) = answer {
            self.rules.step(|| format!("{what} is refused: {refusal}"));
            self.rules.hold(refusal.code() != ApiCode::InternalError, || {
                format!("{what} failed for a fault of the control plane: {refusal}")
            });
        }
    }

    pub async fn deploy(&self, agent: AgentId) -> Option<occ_core::id::RevisionId> {
        let answer = self.plane.deploy_agent(&self.admin, self.namespace, agent).await;
        let admitted = answer.as_ref().ok().map(|revision| revision.id);
        if let Some(revision) = admitted {
            self.rules.step(|| format!("{revision} of {agent} is admitted"));
            let data = self.memory.data();
            let gone = !data.agents.contains_key(&agent);
            self.rules.hold(gone || data.revisions.contains_key(&revision), || {
                format!("{revision} was answered with 202 and is not there")
            });
        }
        self.answered("a deployment", answer.map(drop));
        admitted
    }

    pub async fn stop(&self, agent: AgentId) {
        self.rules.step(|| format!("{agent} is asked to stop"));
        let answer = self.plane.stop_agent(&self.admin, self.namespace, agent).await;
        self.answered("a stop", answer.map(drop));
    }

    pub async fn delete(&self, agent: AgentId) {
        self.rules.step(|| format!("{agent} is asked to be deleted"));
        let answer = self.plane.delete_agent(&self.admin, self.namespace, agent).await;
        self.answered("a deletion", answer.map(drop));
    }

    async fn namespace_life(&self, dice: &Dice) {
        let others: Vec<_> = self
            .memory
            .data()
            .namespaces
            .values()
            .filter(|named| !named.tombstone && named.row.namespace.id != self.namespace)
            .map(|named| named.row.namespace.id)
            .collect();
        if others.is_empty() || dice.chance(300) {
            let input = CreateNamespace {
                name: name(&format!("namespace-{}", dice.below(1_000_000))),
                existing_namespace: None,
            };
            let answer = self.plane.create_namespace(&self.admin, input).await;
            self.answered("a new Namespace", answer.map(drop));
        } else {
            let answer = self.plane.delete_namespace(&self.admin, *dice.pick(&others)).await;
            self.answered("a Namespace's deletion", answer.map(drop));
        }
    }
}

/// An Agent that can be deployed.
async fn agent(plane: &ControlPlane, admin: &Caller, namespace: NamespaceId, number: u64, dedicated: bool) -> Agent {
    let value = SecretValue::from("sk-test-0123456789".to_owned());
    let secret = plane
        .create_secret(admin, namespace, name(&format!("key-{number}")), value)
        .await
        .expect("a new Secret")
        .id;
    let configuration = CreateConfiguration {
        kind: ConfigurationKind::Agent,
        values: Document::new(),
        secret_bindings: std::collections::BTreeMap::new(),
    };
    let configuration = plane
        .create_configuration(admin, namespace, configuration)
        .await
        .expect("a new Configuration");
    let source = SecretSource {
        kind: SecretSourceKind::Secret,
        namespace_id: namespace,
        id: secret,
    };
    let input = CreateAgent {
        name: name(&format!("agent-{number}")),
        configuration_id: configuration.id,
        execution_mode: if dedicated {
            ExecutionMode::Dedicated
        } else {
            ExecutionMode::Embedded
        },
        backend_id: None,
        harness_auth: Some(HarnessAuth::ApiKey { source }),
        credential_sources: Vec::new(),
        plugins: std::collections::BTreeMap::default(),
        plugin_approvers: None,
        initial_workspace_files: WorkspaceFiles::default(),
        workspace_defaults_id: None,
    };
    let agent = plane.create_agent(admin, namespace, input).await.expect("a new Agent");
    let permissions = vec![Permission {
        action: Action::Operate,
        kind: ResourceKind::Secret,
    }];
    let role = plane
        .create_role(admin, namespace, CreateRole { permissions })
        .await
        .expect("a new Role");
    let input = CreateAccessBinding {
        principal_id: agent.service_principal_id.clone(),
        role_id: role.id,
        resource: Some(ExactResource {
            kind: ResourceKind::Secret,
            id: secret.to_string(),
        }),
    };
    plane
        .create_access_binding(admin, namespace, input)
        .await
        .expect("a new access binding");
    agent
}

/// Sets an Installation up with one dedicated Agent. Its Namespace is being provided.
pub(crate) async fn furnish(plane: &ControlPlane) -> (Caller, NamespaceId, AgentId) {
    let bootstrapped = plane
        .bootstrap(Bootstrap {
            name: name("lives"),
            administrator: name("Ada"),
        })
        .await
        .expect("an empty store");
    let admin = Caller::new(bootstrapped.administrator.clone());
    let namespace = bootstrapped.namespace.id;
    let agent = agent(plane, &admin, namespace, 0, true).await;
    (admin, namespace, agent.id)
}

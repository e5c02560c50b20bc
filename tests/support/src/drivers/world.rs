//! A whole control plane for one test: the embedded drivers over a database in memory, with a Compute that runs nothing.

// A test whose scene cannot be set has failed.
#![allow(clippy::missing_panics_doc)]

use std::{path::Path, sync::Arc};

use occ_configuration_local::ConfigurationLocal;
use occ_core::{
    control::{Bootstrap, Caller, ControlPlane, CreateAccessBinding, CreateAgent, CreateConfiguration, CreateRole},
    driver::{Action, CredentialGateway, DriverKind, PluginDriver, ResourceKind, SecretDriver, ServiceAccountDriver},
    iam::{ExactResource, NoPolicy, Permission, Role},
    id::{ConfigurationId, NamespaceId, RequestId, SecretId},
    installation::Drivers,
    registry::{DriverFactory, HostServices},
    resource::{
        Agent, Backend, BackendKind, ConfigurationKind, Document, ExecutionMode, HarnessAuth, Name, NamespaceStatus,
        PrincipalId, SecretSource, SecretSourceKind, WorkspaceFiles,
    },
    secret_value::SecretValue,
    store::{Change, Store, Write, sqlite::SqliteStore},
};
use occ_iam_native::NativeIam;
use occ_secret_local::SecretLocal;

use super::{NullCompute, OutsideSecrets, PlainHarness, PlainSandbox, RecordingStore, ScriptedIam, identity};

/// What a [`World`] is made with.
#[derive(Default)]
pub struct WorldBuilder {
    compute: NullCompute,
    harnesses: Vec<PlainHarness>,
    secret: Option<Arc<dyn SecretDriver>>,
    sandbox: Option<PlainSandbox>,
    store: Option<Arc<dyn Store>>,
    optional: Optional,
}

/// Drivers of kinds that an Installation need not select, and the Backends that they work for.
#[derive(Clone, Default)]
pub struct Optional {
    /// The Service Account Driver.
    pub service_account: Option<Arc<dyn ServiceAccountDriver>>,
    /// The Plugin Driver.
    pub plugin: Option<Arc<dyn PluginDriver>>,
    /// The Credential Gateway; a Sandbox Driver that confines nothing comes with it.
    pub credential_gateway: Option<Arc<dyn CredentialGateway>>,
    /// The configured Backends.
    pub backends: Vec<Backend>,
}

/// A control plane that was set up, with the Namespace `default` ready.
pub struct World {
    /// The control plane.
    pub plane: ControlPlane,
    /// Its store.
    pub store: Arc<RecordingStore>,
    /// Its drivers.
    pub drivers: Arc<Drivers>,
    /// Its Compute.
    pub compute: Arc<NullCompute>,
    /// Its IAM Driver.
    pub iam: Arc<ScriptedIam>,
    /// The administrator, with a key.
    pub admin: Caller,
    /// The Namespace `default`.
    pub namespace: NamespaceId,
    files: tempfile::TempDir,
}

impl WorldBuilder {
    /// With this Compute.
    #[must_use]
    pub fn compute(mut self, compute: NullCompute) -> Self {
        self.compute = compute;
        self
    }

    /// With this Harness, besides the others that were given; [`PlainHarness::default`] when none is.
    #[must_use]
    pub fn harness(mut self, harness: PlainHarness) -> Self {
        self.harnesses.push(harness);
        self
    }

    /// With this Secret Driver instead of the embedded one.
    #[must_use]
    pub fn secret(mut self, driver: Arc<dyn SecretDriver>) -> Self {
        self.secret = Some(driver);
        self
    }

    /// With this Sandbox Driver.
    #[must_use]
    pub fn sandbox(mut self, driver: PlainSandbox) -> Self {
        self.sandbox = Some(driver);
        self
    }

    /// With this Backend configured.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Self {
        self.optional.backends.push(backend);
        self
    }

    /// With this Service Account Driver, and a Backend `chatgpt` that it works for.
    #[must_use]
    pub fn service_account(mut self, driver: Arc<dyn ServiceAccountDriver>) -> Self {
        self.optional.service_account = Some(driver);
        self.backend(chatgpt())
    }

    /// With this Plugin Driver.
    #[must_use]
    pub fn plugin(mut self, driver: Arc<dyn PluginDriver>) -> Self {
        self.optional.plugin = Some(driver);
        self
    }

    /// With this Credential Gateway, and a Sandbox Driver that confines nothing.
    #[must_use]
    pub fn credential_gateway(mut self, gateway: Arc<dyn CredentialGateway>) -> Self {
        self.optional.credential_gateway = Some(gateway);
        self
    }

    /// Over this store, which is empty.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Makes it.
    pub async fn build(self) -> World {
        let store = match self.store {
            Some(store) => store,
            None => Arc::new(SqliteStore::open_in_memory().await.expect("a database in memory")),
        };
        let store = Arc::new(RecordingStore::around(store));
        let files = tempfile::tempdir().expect("a directory for keys");
        let compute = Arc::new(self.compute);
        let parts = Parts {
            compute: Arc::clone(&compute),
            harnesses: self.harnesses,
            secret: self.secret,
            sandbox: self.sandbox,
            optional: self.optional,
        };
        let (drivers, iam) = parts.compose(&host(files.path(), &store));
        let drivers = Arc::new(drivers);
        let plane = ControlPlane::new(Arc::clone(&store) as _, Arc::clone(&drivers));
        let set_up = plane
            .bootstrap(Bootstrap {
                name: name("test"),
                administrator: name("Ada"),
            })
            .await
            .expect("an empty database");
        let key = set_up.key.value.expose_str().expect("a key is text");
        let admin = plane
            .authenticate(key, RequestId::random())
            .await
            .expect("the first key");
        let namespace = set_up.namespace.id;
        let world = World {
            plane,
            store,
            drivers,
            compute,
            iam,
            admin,
            namespace,
            files,
        };
        world.set_namespace(namespace, NamespaceStatus::Ready).await;
        world
    }
}

struct Parts {
    compute: Arc<NullCompute>,
    harnesses: Vec<PlainHarness>,
    secret: Option<Arc<dyn SecretDriver>>,
    sandbox: Option<PlainSandbox>,
    optional: Optional,
}

impl Parts {
    fn compose(self, host: &HostServices) -> (Drivers, Arc<ScriptedIam>) {
        let settings = occ_configuration_local::Settings::default();
        let id = identity(
            DriverKind::Configuration,
            "configuration-local",
            ConfigurationLocal::IMPLEMENTATION,
        );
        let configuration = ConfigurationLocal::build(id, settings, host).expect("the embedded Configuration Driver");
        let id = identity(DriverKind::Iam, "iam-native", NativeIam::IMPLEMENTATION);
        let native = NativeIam::build(id, occ_iam_native::Settings::default(), host).expect("the embedded IAM Driver");
        let iam = Arc::new(ScriptedIam::around(Arc::new(native)));
        let secret = self.secret.unwrap_or_else(|| {
            let id = identity(DriverKind::Secret, "secret-local", SecretLocal::IMPLEMENTATION);
            let settings = occ_secret_local::Settings::default();
            Arc::new(SecretLocal::build(id, settings, host).expect("the embedded Secret Driver"))
        });
        let mut builder = Drivers::builder()
            .configuration(Arc::new(configuration))
            .iam(Arc::clone(&iam) as _)
            .secret(secret)
            .compute(self.compute);
        let sandboxed = self.sandbox.is_some();
        if let Some(sandbox) = self.sandbox {
            builder = builder.sandbox(Arc::new(sandbox));
        }
        let harnesses = if self.harnesses.is_empty() {
            vec![PlainHarness::default()]
        } else {
            self.harnesses
        };
        let Optional {
            service_account,
            plugin,
            credential_gateway,
            backends,
        } = self.optional;
        for backend in backends {
            builder = builder.backend(backend);
        }
        if let Some(driver) = service_account {
            builder = builder.service_account(driver);
        }
        if let Some(gateway) = credential_gateway {
            builder = builder.credential_gateway(gateway);
            if !sandboxed {
                builder = builder.sandbox(Arc::new(PlainSandbox::with(Ok)));
            }
        }
        if let Some(driver) = plugin {
            builder = builder.plugin(driver);
        }
        for harness in harnesses {
            builder = builder.harness(Arc::new(harness));
        }
        (builder.build().expect("drivers that work together"), iam)
    }
}

/// The drivers of a [`World`] over a store that another process set up. Values of Secrets are not there.
pub fn drivers_over(store: &Arc<dyn Store>, data_dir: &Path, compute: NullCompute) -> Drivers {
    let parts = Parts {
        compute: Arc::new(compute),
        harnesses: Vec::new(),
        secret: None,
        sandbox: None,
        optional: Optional::default(),
    };
    let host = HostServices::new(data_dir.to_owned(), Arc::clone(store) as _);
    parts.compose(&host).0
}

fn host(data_dir: &Path, store: &Arc<RecordingStore>) -> HostServices {
    HostServices::new(data_dir.to_owned(), Arc::clone(store) as _)
}

/// Drivers without a store behind them, for tests of what is pure. Nobody is granted anything.
pub fn drivers(compute: NullCompute, harness: PlainHarness, sandbox: Option<PlainSandbox>) -> Drivers {
    let secret: Arc<dyn SecretDriver> = Arc::new(OutsideSecrets::named("secret-outside"));
    let parts = Parts {
        compute: Arc::new(compute),
        harnesses: vec![harness],
        secret: Some(secret),
        sandbox,
        optional: Optional::default(),
    };
    parts
        .compose(&HostServices::new(std::env::temp_dir(), Arc::new(NoPolicy)))
        .0
}

/// The Backend that a Service Account Driver works for.
pub fn chatgpt() -> Backend {
    Backend {
        id: "chatgpt".parse().expect("an id"),
        kind: BackendKind::Chatgpt,
    }
}

/// A name that is known to be one.
fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

impl World {
    /// With the ordinary drivers.
    pub async fn new() -> Self {
        Self::builder().build().await
    }

    /// With other drivers.
    pub fn builder() -> WorldBuilder {
        WorldBuilder::default()
    }

    /// The same database under another selection of Secret Driver and Compute, as after a restart with another Installation file.
    pub fn with(&self, secret: Option<Arc<dyn SecretDriver>>, compute: NullCompute) -> ControlPlane {
        self.selecting(secret, compute, Optional::default())
    }

    /// The same, also of drivers of optional kinds.
    pub fn selecting(
        &self,
        secret: Option<Arc<dyn SecretDriver>>,
        compute: NullCompute,
        optional: Optional,
    ) -> ControlPlane {
        let modes = [ExecutionMode::Embedded, ExecutionMode::Dedicated];
        self.composed(Parts {
            compute: Arc::new(compute),
            harnesses: vec![PlainHarness::named("plain", &modes)],
            secret,
            sandbox: None,
            optional,
        })
    }

    /// The same database with this Harness alone.
    pub fn speaking(&self, harness: PlainHarness) -> ControlPlane {
        self.composed(Parts {
            compute: Arc::default(),
            harnesses: vec![harness],
            secret: None,
            sandbox: None,
            optional: Optional::default(),
        })
    }

    fn composed(&self, parts: Parts) -> ControlPlane {
        let (drivers, _) = parts.compose(&host(self.files.path(), &self.store));
        ControlPlane::new(Arc::clone(&self.store) as _, Arc::new(drivers))
    }

    /// Sets a Namespace's status, as the worker does.
    pub async fn set_namespace(&self, id: NamespaceId, status: NamespaceStatus) {
        let change = Change::new().write(Write::NamespaceStatus {
            id,
            status,
            deletion_actor: None,
        });
        self.store.commit(change).await.expect("the Namespace exists");
    }

    /// Stores a Secret of the Namespace.
    pub async fn secret(&self, called: &str, value: &str) -> SecretId {
        let value = SecretValue::from(value.to_owned());
        self.plane
            .create_secret(&self.admin, self.namespace, name(called), value)
            .await
            .expect("a new Secret")
            .id
    }

    /// Stores a Configuration that binds nothing.
    pub async fn configuration(&self, values: serde_json::Value) -> ConfigurationId {
        let input = CreateConfiguration {
            kind: ConfigurationKind::Agent,
            values: document(values),
            secret_bindings: std::collections::BTreeMap::default(),
        };
        self.plane
            .create_configuration(&self.admin, self.namespace, input)
            .await
            .expect("a new Configuration")
            .id
    }

    /// Creates an Agent with `api_key` authentication from this Secret.
    pub async fn agent(&self, called: &str, configuration: ConfigurationId, secret: SecretId) -> Agent {
        let input = CreateAgent {
            name: name(called),
            configuration_id: configuration,
            execution_mode: ExecutionMode::Embedded,
            backend_id: None,
            harness_auth: Some(self.api_key(secret)),
            credential_sources: Vec::new(),
            plugins: std::collections::BTreeMap::default(),
            plugin_approvers: None,
            initial_workspace_files: WorkspaceFiles::default(),
            workspace_defaults_id: None,
        };
        self.plane
            .create_agent(&self.admin, self.namespace, input)
            .await
            .expect("a new Agent")
    }

    /// The binding that names this Secret of the Namespace.
    pub fn api_key(&self, secret: SecretId) -> HarnessAuth {
        HarnessAuth::ApiKey {
            source: SecretSource {
                kind: SecretSourceKind::Secret,
                namespace_id: self.namespace,
                id: secret,
            },
        }
    }

    /// Creates a Role of the Namespace.
    pub async fn role(&self, permissions: &[(Action, ResourceKind)]) -> Role {
        let permissions = permissions
            .iter()
            .map(|(action, kind)| Permission {
                action: *action,
                kind: *kind,
            })
            .collect();
        self.plane
            .create_role(&self.admin, self.namespace, CreateRole { permissions })
            .await
            .expect("a new Role")
    }

    /// Lets a principal operate exactly this Secret.
    pub async fn let_operate(&self, principal: &PrincipalId, secret: SecretId) {
        let role = self.role(&[(Action::Operate, ResourceKind::Secret)]).await;
        let input = CreateAccessBinding {
            principal_id: principal.clone(),
            role_id: role.id,
            resource: Some(ExactResource {
                kind: ResourceKind::Secret,
                id: secret.to_string(),
            }),
        };
        self.plane
            .create_access_binding(&self.admin, self.namespace, input)
            .await
            .expect("a new access binding");
    }

    /// An Agent that can be deployed: with a Configuration, a Secret, and its principal's grant.
    pub async fn deployable(&self, called: &str) -> Agent {
        let configuration = self.configuration(serde_json::json!({})).await;
        let secret = self.secret(&format!("{called}-key"), "sk-test-0123456789").await;
        let agent = self.agent(called, configuration, secret).await;
        self.let_operate(&agent.service_principal_id, secret).await;
        agent
    }
}

/// A document that is known to be an object.
///
/// # Panics
/// When it is not.
pub fn document(values: serde_json::Value) -> Document {
    match values {
        serde_json::Value::Object(document) => document,
        _ => panic!("a document is an object"),
    }
}

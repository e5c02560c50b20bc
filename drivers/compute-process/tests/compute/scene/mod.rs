//! One Agent on a Process Compute of its own, with a small real component.

mod clock;
mod plan;
mod process;
mod supervisor;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
pub use clock::Clock;
use occ_compute_process as _;
use occ_core::{
    driver::{
        AgentRef, ComputeDriver, DriverKind, DriverState, EffectError, EffectResult, EmptyState, OperationContext,
        Readiness, RevisionContext, RevisionObservation, RevisionRef, SecretAccess, Stop,
    },
    iam::NoPolicy,
    id::{AgentId, ConfigurationId, NamespaceId, RevisionId},
    plan::SecretSlot,
    registry::{Built, HostServices, Registry},
    resource::{
        AgentRevision, BackendRef, ComputeIdentity, ConfigurationKind, ExecutionMode, HarnessAuth, HarnessAuthSnapshot,
        HarnessIdentity, Namespace, NamespaceStatus, Snapshot, WorkspaceSetup,
    },
    secret_value::SecretValue,
    time::Timestamp,
};
pub use process::{children, cmdline, environ, kill, named, suspend};
use serde_json::{Value, json};

/// What the model credential is; looked for where it must not be.
pub const KEY: &str = "canary-model-key-5b1f";
const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(30);

/// One Agent, and a directory that holds all of the test.
pub struct Scene {
    root: tempfile::TempDir,
    pub cx: OperationContext,
    pub clock: Arc<Clock>,
    pub driver: Arc<dyn ComputeDriver>,
    pub namespace: Namespace,
    pub agent: AgentRef,
}

impl Scene {
    pub fn new() -> Self {
        Self::with(json!({}))
    }

    /// A scene whose driver has these settings besides its tools and its supervisor.
    pub fn with(settings: Value) -> Self {
        let root = tempfile::Builder::new().prefix("occ-process-").tempdir().unwrap();
        fs::create_dir(root.path().join("control")).unwrap();
        fs::write(
            root.path().join("component.py"),
            include_str!("../fixture/component.py"),
        )
        .unwrap();
        let namespace = Namespace {
            id: NamespaceId::random(),
            name: "tests".parse().unwrap(),
            existing_namespace: None,
            status: NamespaceStatus::Ready,
            created_at: Timestamp::from_millis(0),
        };
        let agent = AgentRef {
            namespace_id: namespace.id,
            id: AgentId::random(),
            name: "agent".parse().unwrap(),
            service_principal_id: "principal-of-the-agent".parse().unwrap(),
        };
        let driver = build(root.path(), &root.path().join("data"), settings);
        let clock = Arc::new(Clock::default());
        let cx = OperationContext::new(clock.clone(), DriverState::new(Arc::new(EmptyState)));
        Self {
            root,
            cx,
            clock,
            driver,
            namespace,
            agent,
        }
    }

    /// The same with the Namespace provided and the password generated, as the engine leaves an Agent before its first version.
    pub async fn provided(self) -> Self {
        let state = self.driver.ensure_namespace(&self.cx, &self.namespace).await.unwrap();
        assert!(state.done);
        self.driver
            .runtime_credentials()
            .unwrap()
            .provision(&self.cx, &self.agent)
            .await
            .unwrap();
        self
    }

    /// Another driver with the same data, as after a restart of the control plane.
    pub fn restart(&mut self) {
        self.driver = build(self.root.path(), &self.data(), json!({}));
    }

    /// Another driver with other settings on the same data.
    pub fn restart_with(&mut self, settings: Value) {
        self.driver = build(self.root.path(), &self.data(), settings);
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    pub fn namespace_dir(&self) -> PathBuf {
        self.data()
            .join("compute/process-1/namespaces")
            .join(self.namespace.id.to_string())
    }

    pub fn agent_dir(&self) -> PathBuf {
        self.namespace_dir().join("agents").join(self.agent.id.to_string())
    }

    pub fn revision_dir(&self, revision: &RevisionContext) -> PathBuf {
        self.agent_dir().join("revisions").join(revision.target.id.to_string())
    }

    /// Turns a behaviour of the component on or off.
    pub fn control(&self, name: &str, on: bool) {
        let path = self.root.path().join("control").join(name);
        if on {
            fs::write(path, "").unwrap();
        } else {
            let _ = fs::remove_file(path);
        }
    }

    /// Versions whose model was checked, in order.
    pub fn checks(&self) -> Vec<String> {
        lines(&self.root.path().join("control/checks"))
    }

    /// Versions whose gateway was started, in order.
    pub fn starts(&self) -> Vec<String> {
        lines(&self.agent_dir().join("workspace/starts"))
    }

    /// A version of the Agent.
    pub fn revision(&self, number: u64) -> RevisionContext {
        let snapshot = Snapshot {
            backend_id: None,
            configuration_id: ConfigurationId::random(),
            configuration_kind: ConfigurationKind::Agent,
            configuration_generation: 1,
            configuration: occ_core::resource::Document::new(),
            harness: HarnessIdentity {
                id: "fixture".to_owned(),
                version: "1".to_owned(),
                mode: ExecutionMode::Embedded,
            },
            compute: ComputeIdentity {
                id: "process-1".to_owned(),
                implementation: "occ/process".to_owned(),
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
            secret_bindings: BTreeMap::new(),
            service_principal_id: self.agent.service_principal_id.clone(),
        };
        let id = RevisionId::random();
        RevisionContext {
            namespace: self.namespace.clone(),
            target: RevisionRef {
                agent: self.agent.clone(),
                id,
                number,
                mode: ExecutionMode::Embedded,
            },
            revision: AgentRevision {
                id,
                namespace_id: self.namespace.id,
                agent_id: self.agent.id,
                revision: number,
                snapshot,
                digest: format!("{number:064}"),
                created_at: Timestamp::from_millis(0),
            },
            plan: plan::of(&number.to_string(), &self.root.path().join("control")),
            secrets: Arc::new(FixedSecrets),
            workspace_setup: None,
        }
    }

    /// A version with initial workspace files.
    pub fn revision_with_setup(&self, number: u64, setup: WorkspaceSetup) -> RevisionContext {
        let mut context = self.revision(number);
        context.plan = plan::with_workspace(context.plan);
        context.workspace_setup = Some(setup);
        context
    }

    pub async fn prepare(&self, revision: &RevisionContext) -> EffectResult<Readiness> {
        seen(revision, self.driver.prepare_revision(&self.cx, revision).await)
    }

    pub async fn activate(&self, revision: &RevisionContext) -> EffectResult<Readiness> {
        seen(revision, self.driver.activate_revision(&self.cx, revision).await)
    }

    /// Prepares until it is not pending any more.
    pub async fn prepared(&self, revision: &RevisionContext) -> EffectResult<()> {
        self.settled(async || self.prepare(revision).await).await
    }

    /// Prepares and activates as the engine does until the version serves.
    pub async fn deployed(&self, revision: &RevisionContext) -> EffectResult<()> {
        self.prepared(revision).await?;
        self.settled(async || match self.prepare(revision).await? {
            Readiness::Ready { .. } => self.activate(revision).await,
            pending @ Readiness::Pending { .. } => Ok(pending),
        })
        .await
    }

    async fn settled(&self, step: impl AsyncFn() -> EffectResult<Readiness>) -> EffectResult<()> {
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            match step().await {
                Ok(Readiness::Ready { .. }) => return Ok(()),
                Ok(Readiness::Pending { .. }) | Err(EffectError::Transient(_)) => {}
                Err(error) => return Err(error),
            }
            assert!(std::time::Instant::now() < deadline, "still pending");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Stops until nothing of the version runs.
    pub async fn stopped(&self, revision: &RevisionContext) {
        self.drained(async || self.driver.stop_revision(&self.cx, &revision.target).await)
            .await;
    }

    pub async fn retired(&self, revision: &RevisionContext) {
        self.drained(async || self.driver.retire_revision(&self.cx, &revision.target).await)
            .await;
    }

    pub async fn agent_deleted(&self) {
        self.drained(async || self.driver.delete_agent(&self.cx, &self.agent).await)
            .await;
    }

    async fn drained(&self, step: impl AsyncFn() -> EffectResult<Stop>) {
        until(async || step().await == Ok(Stop::Stopped)).await;
    }

    /// Kills the supervisor as nobody could see coming, and waits until nothing is left.
    pub async fn lost(&self) {
        kill(self.process("supervise"));
        until(async || self.processes("").is_empty()).await;
    }

    /// Where the version's gateway is, if it is on the route.
    pub async fn endpoint(&self, revision: &RevisionContext) -> Option<String> {
        let access = self.driver.gateway_access().unwrap();
        access
            .endpoint(&self.cx, &revision.target)
            .await
            .unwrap()
            .map(|endpoint| endpoint.url)
    }

    /// What the gateway on the Agent's port answers; `None` when nothing does.
    pub async fn get(&self, path: &str) -> Option<Value> {
        let ports: Value = serde_json::from_slice(&fs::read(self.agent_dir().join("ports.json")).ok()?).ok()?;
        process::get(ports["gateway"].as_u64()?, path).await
    }

    /// The version whose gateway answers.
    pub async fn serving(&self) -> Option<String> {
        self.get("/version").await?["version"].as_str().map(str::to_owned)
    }

    /// Processes of this scene whose command line holds the text.
    pub fn processes(&self, text: &str) -> Vec<u32> {
        named(self.root.path().to_str().unwrap(), text)
    }

    /// The one process of this scene whose command line holds the text.
    pub fn process(&self, text: &str) -> u32 {
        let found = self.processes(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        found[0]
    }
}

impl Drop for Scene {
    /// Whatever a failed test left is ended: these are processes that the test started, found by its own directory.
    fn drop(&mut self) {
        for text in ["supervise", "component.py"] {
            self.processes(text).into_iter().for_each(kill);
        }
    }
}

fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Waits for a condition.
pub async fn until(condition: impl AsyncFn() -> bool) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while !condition().await {
        assert!(std::time::Instant::now() < deadline, "the condition was not met");
        tokio::time::sleep(PAUSE).await;
    }
}

fn seen(revision: &RevisionContext, result: EffectResult<RevisionObservation>) -> EffectResult<Readiness> {
    let observation = result?;
    assert!(observation.is_of(&revision.target));
    Ok(observation.readiness)
}

/// A driver as an installation builds it.
pub fn build(root: &Path, data: &Path, mut settings: Value) -> Arc<dyn ComputeDriver> {
    let given = settings.as_object_mut().unwrap();
    given
        .entry("supervisor")
        .or_insert_with(|| supervisor::program().to_str().unwrap().into());
    given
        .entry("tools")
        .or_insert_with(|| json!({ "python": "/usr/bin/python3", "component": root.join("component.py") }));
    let host = HostServices::new(data.to_owned(), Arc::new(NoPolicy));
    let registry = Registry::linked().unwrap();
    let registration = registry.find(DriverKind::Compute, "process").unwrap();
    match (registration.build)("process-1", settings, &host).unwrap() {
        Built::Compute(driver) => driver,
        _ => unreachable!("a Compute was registered"),
    }
}

struct FixedSecrets;

#[async_trait]
impl SecretAccess for FixedSecrets {
    fn reference(&self, _: &SecretSlot) -> Option<BackendRef> {
        None
    }

    async fn value(&self, slot: &SecretSlot) -> EffectResult<SecretValue> {
        assert_eq!(*slot, SecretSlot::HarnessCredential);
        Ok(SecretValue::from(KEY.to_owned()))
    }
}

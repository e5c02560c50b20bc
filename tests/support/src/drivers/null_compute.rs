//! A Compute that realises nothing: at once ready, unless a test scripts another answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use occ_core::{
    driver::{
        ActivationOrder, AgentRef, Check, ComputeAdmission, ComputeDriver, ComputeProfile, Diagnostics, DriverIdentity,
        DriverKind, EffectResult, GatewayAccess, GatewayEndpoint, GatewaySettings, HarnessAuthRequest, HookHost,
        LifecycleHooks, Listen, LiveWorkspace, LogQuery, Maintenance, NamespaceAdoption, NamespaceState,
        OperationContext, PreflightWarning, Rejection, RevisionContext, RevisionObservation, RevisionRef,
        RevisionWatch, RuntimeCredentials, RuntimeLogs, SettingRejection, Stop, WorkspaceSetupSupport,
    },
    id::{AgentId, NamespaceId, RevisionId},
    plan::{SecretSlot, WorkloadPlan},
    resource::{Name, Namespace, SourceType, WorkspaceFileName},
    secret_value::SecretValue,
};
use uuid::Uuid;

use super::script::{Script, lock};

/// One call that the engine made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Call {
    Preflight,
    AttachHooks,
    EnsureNamespace(NamespaceId),
    DeleteNamespace(NamespaceId),
    Prepare(RevisionId),
    Activate(RevisionId),
    Deactivate(RevisionId),
    Stop(RevisionId),
    Retire(RevisionId),
    DeleteAgent(AgentId),
    CredentialsExist(AgentId),
    ProvisionCredentials(AgentId),
    DeleteCredentials(AgentId),
    DiscardSetup(AgentId),
    Endpoint(RevisionId),
    Diagnose(RevisionId),
    Logs(RevisionId),
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    credentials: BTreeSet<AgentId>,
    auth: Option<Rejection>,
    source_type: Option<SourceType>,
    settings: Option<SettingRejection>,
    files: BTreeMap<(AgentId, WorkspaceFileName), String>,
    lines: Vec<String>,
    delivered: BTreeMap<RevisionId, SecretValue>,
    planned: BTreeMap<RevisionId, WorkloadPlan>,
    checks: Vec<Check>,
    changed: BTreeSet<RevisionId>,
}

/// An ability that a test can take away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ability {
    Credentials,
    Setup,
    Logs,
}

/// A Compute that realises nothing, records its calls, and answers from scripts.
pub struct NullCompute {
    identity: DriverIdentity,
    order: ActivationOrder,
    exclusive: bool,
    reads_credential: bool,
    lacks: Vec<Ability>,
    maintenance: Option<Duration>,
    hears: bool,
    state: Mutex<State>,
    /// Answers of `ensure_namespace`; ordinarily done.
    pub ensure_namespace: Script<NamespaceId, NamespaceState>,
    /// Answers of `delete_namespace`; ordinarily done.
    pub delete_namespace: Script<NamespaceId, NamespaceState>,
    /// Answers of `prepare_revision`; ordinarily ready.
    pub prepare: Script<RevisionRef, RevisionObservation>,
    /// Answers of `activate_revision`; ordinarily ready.
    pub activate: Script<RevisionRef, RevisionObservation>,
    /// Answers of `deactivate_revision`; ordinarily done.
    pub deactivate: Script<RevisionRef, ()>,
    /// Answers of `stop_revision`; ordinarily stopped.
    pub stop: Script<RevisionRef, Stop>,
    /// Answers of `retire_revision`; ordinarily stopped.
    pub retire: Script<RevisionRef, Stop>,
    /// Answers of `delete_agent`; ordinarily stopped.
    pub delete_agent: Script<AgentRef, Stop>,
    /// Answers of the look for credentials; ordinarily what was provisioned.
    pub credentials_exist: Script<AgentRef, bool>,
    /// Answers of provisioning credentials; ordinarily done.
    pub provision_credentials: Script<AgentRef, ()>,
    /// Answers of deleting credentials; ordinarily done.
    pub delete_credentials: Script<AgentRef, ()>,
    /// Answers of a write into a workspace; ordinarily done.
    pub write_file: Script<RevisionRef, ()>,
    /// Answers of a look into the logs; ordinarily what [`NullCompute::log`] said last.
    pub read_logs: Script<RevisionRef, Vec<String>>,
}

impl fmt::Debug for NullCompute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NullCompute")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl Default for NullCompute {
    fn default() -> Self {
        Self::named("compute-null")
    }
}

impl NullCompute {
    /// With every ability but maintenance; [`ActivationOrder::AfterCommit`], not exclusive.
    pub fn named(id: &str) -> Self {
        Self {
            identity: super::identity(DriverKind::Compute, id, "occ/null"),
            order: ActivationOrder::AfterCommit,
            exclusive: false,
            reads_credential: false,
            lacks: Vec::new(),
            maintenance: None,
            hears: false,
            state: Mutex::default(),
            ensure_namespace: Script::default(),
            delete_namespace: Script::default(),
            prepare: Script::default(),
            activate: Script::default(),
            deactivate: Script::default(),
            stop: Script::default(),
            retire: Script::default(),
            delete_agent: Script::default(),
            credentials_exist: Script::default(),
            provision_credentials: Script::default(),
            delete_credentials: Script::default(),
            write_file: Script::default(),
            read_logs: Script::default(),
        }
    }

    /// The same, which wants every predecessor stopped first.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// The same, which reads the model credential of a version before it is prepared.
    #[must_use]
    pub fn reading_the_credential(mut self) -> Self {
        self.reads_credential = true;
        self
    }

    /// The same, which activates before the pointer moves.
    #[must_use]
    pub fn before_commit(mut self) -> Self {
        self.order = ActivationOrder::BeforeCommit;
        self
    }

    /// The same, which generates no transport credentials.
    #[must_use]
    pub fn without_credentials(mut self) -> Self {
        self.lacks.push(Ability::Credentials);
        self
    }

    /// The same, which takes no initial workspace files.
    #[must_use]
    pub fn without_workspace_setup(mut self) -> Self {
        self.lacks.push(Ability::Setup);
        self
    }

    /// The same, which has no logs and no diagnostics.
    #[must_use]
    pub fn without_logs(mut self) -> Self {
        self.lacks.push(Ability::Logs);
        self
    }

    /// The same, with maintenance every `interval`.
    #[must_use]
    pub fn maintained(mut self, interval: Duration) -> Self {
        self.maintenance = Some(interval);
        self
    }

    /// The same, which hears of every change by itself: of those that [`NullCompute::change`] makes.
    #[must_use]
    pub fn hearing(mut self) -> Self {
        self.hears = true;
        self
    }

    /// Something changes about a version.
    pub fn change(&self, revision: RevisionId) {
        lock(&self.state).changed.insert(revision);
    }

    /// What admission is told of authentications from now on.
    pub fn reject_auth(&self, rejection: Option<Rejection>) {
        lock(&self.state).auth = rejection;
    }

    /// Of what type the credential source was whose use was judged last.
    pub fn judged_source(&self) -> Option<SourceType> {
        lock(&self.state).source_type.clone()
    }

    /// What admission is told of gateway settings from now on.
    pub fn reject_settings(&self, rejection: Option<SettingRejection>) {
        lock(&self.state).settings = rejection;
    }

    /// What the logs say from now on.
    pub fn log(&self, lines: &[&str]) {
        lock(&self.state).lines = lines.iter().map(|line| (*line).to_owned()).collect();
    }

    /// What a diagnosis finds from now on.
    pub fn find(&self, checks: Vec<Check>) {
        lock(&self.state).checks = checks;
    }

    /// The Agent's credentials vanish, as when somebody removes them by hand.
    pub fn lose_credentials(&self, agent: AgentId) {
        lock(&self.state).credentials.remove(&agent);
    }

    /// The Agent's credentials appear, as when a call that was cut off takes effect after all.
    pub fn find_credentials(&self, agent: AgentId) {
        lock(&self.state).credentials.insert(agent);
    }

    /// What this version was last asked to run.
    pub fn planned(&self, revision: RevisionId) -> Option<WorkloadPlan> {
        lock(&self.state).planned.get(&revision).cloned()
    }

    /// The model credential that was read for this version.
    pub fn delivered(&self, revision: RevisionId) -> Option<SecretValue> {
        lock(&self.state).delivered.get(&revision).cloned()
    }

    /// Whether the Agent has credentials.
    pub fn has_credentials(&self, agent: AgentId) -> bool {
        lock(&self.state).credentials.contains(&agent)
    }

    /// Every call so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.state).calls.clone()
    }

    /// The calls so far, which are then forgotten.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut lock(&self.state).calls)
    }

    fn has(&self, ability: Ability) -> bool {
        !self.lacks.contains(&ability)
    }

    fn called(&self, call: Call) {
        lock(&self.state).calls.push(call);
    }
}

impl ComputeAdmission for NullCompute {
    fn harness_auth(&self, request: &HarnessAuthRequest<'_>) -> Result<(), Rejection> {
        let mut state = lock(&self.state);
        state.source_type = request.source_type.cloned();
        state.auth.map_or(Ok(()), Err)
    }

    fn gateway_settings(&self, _: &GatewaySettings) -> Result<(), SettingRejection> {
        lock(&self.state).settings.map_or(Ok(()), Err)
    }
}

#[async_trait]
impl ComputeDriver for NullCompute {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    fn profile(&self) -> ComputeProfile {
        ComputeProfile {
            listen: Listen::Loopback,
        }
    }

    fn admission(&self) -> &dyn ComputeAdmission {
        self
    }

    async fn preflight(&self, _: &OperationContext) -> EffectResult<Vec<PreflightWarning>> {
        self.called(Call::Preflight);
        Ok(Vec::new())
    }

    async fn ensure_namespace(&self, cx: &OperationContext, namespace: &Namespace) -> EffectResult<NamespaceState> {
        let namespace_id = namespace.id;
        self.called(Call::EnsureNamespace(namespace_id));
        self.ensure_namespace
            .play(
                cx,
                namespace_id,
                NamespaceState {
                    namespace_id,
                    done: true,
                },
            )
            .await
    }

    async fn delete_namespace(&self, cx: &OperationContext, namespace: &Namespace) -> EffectResult<NamespaceState> {
        let namespace_id = namespace.id;
        self.called(Call::DeleteNamespace(namespace_id));
        self.delete_namespace
            .play(
                cx,
                namespace_id,
                NamespaceState {
                    namespace_id,
                    done: true,
                },
            )
            .await
    }

    async fn prepare_revision(
        &self,
        cx: &OperationContext,
        revision: &RevisionContext,
    ) -> EffectResult<RevisionObservation> {
        let target = revision.target.clone();
        self.called(Call::Prepare(target.id));
        lock(&self.state).changed.remove(&target.id);
        lock(&self.state).planned.insert(target.id, revision.plan.clone());
        if self.reads_credential {
            let value = revision.secrets.value(&SecretSlot::HarnessCredential).await?;
            lock(&self.state).delivered.insert(target.id, value);
        }
        let ready = RevisionObservation::ready(&target);
        self.prepare.play(cx, target, ready).await
    }

    async fn activate_revision(
        &self,
        cx: &OperationContext,
        revision: &RevisionContext,
    ) -> EffectResult<RevisionObservation> {
        let target = revision.target.clone();
        self.called(Call::Activate(target.id));
        let ready = RevisionObservation::ready(&target);
        self.activate.play(cx, target, ready).await
    }

    async fn deactivate_revision(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<()> {
        self.called(Call::Deactivate(revision.id));
        self.deactivate.play(cx, revision.clone(), ()).await
    }

    async fn stop_revision(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Stop> {
        self.called(Call::Stop(revision.id));
        self.stop.play(cx, revision.clone(), Stop::Stopped).await
    }

    async fn retire_revision(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Stop> {
        self.called(Call::Retire(revision.id));
        self.retire.play(cx, revision.clone(), Stop::Stopped).await
    }

    async fn delete_agent(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<Stop> {
        self.called(Call::DeleteAgent(agent.id));
        self.delete_agent.play(cx, agent.clone(), Stop::Stopped).await
    }

    fn activation_order(&self) -> ActivationOrder {
        self.order
    }

    fn requires_stopped_predecessors(&self, _: &RevisionRef) -> bool {
        self.exclusive
    }

    fn runtime_credentials(&self) -> Option<&dyn RuntimeCredentials> {
        self.has(Ability::Credentials).then_some(self as _)
    }

    fn gateway_access(&self) -> Option<&dyn GatewayAccess> {
        self.has(Ability::Credentials).then_some(self as _)
    }

    fn workspace_setup(&self) -> Option<&dyn WorkspaceSetupSupport> {
        self.has(Ability::Setup).then_some(self as _)
    }

    fn live_workspace(&self) -> Option<&dyn LiveWorkspace> {
        self.has(Ability::Setup).then_some(self as _)
    }

    fn diagnostics(&self) -> Option<&dyn Diagnostics> {
        self.has(Ability::Logs).then_some(self as _)
    }

    fn logs(&self) -> Option<&dyn RuntimeLogs> {
        self.has(Ability::Logs).then_some(self as _)
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        self.maintenance.is_some().then_some(self as _)
    }

    fn revision_watch(&self) -> Option<&dyn RevisionWatch> {
        self.hears.then_some(self as _)
    }

    fn namespace_adoption(&self) -> Option<&dyn NamespaceAdoption> {
        Some(self)
    }

    fn hook_host(&self) -> Option<&dyn HookHost> {
        Some(self)
    }
}

#[async_trait]
impl RuntimeCredentials for NullCompute {
    async fn exist(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<bool> {
        self.called(Call::CredentialsExist(agent.id));
        let exist = self.has_credentials(agent.id);
        self.credentials_exist.play(cx, agent.clone(), exist).await
    }

    async fn provision(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<()> {
        self.called(Call::ProvisionCredentials(agent.id));
        self.provision_credentials.play(cx, agent.clone(), ()).await?;
        lock(&self.state).credentials.insert(agent.id);
        Ok(())
    }

    async fn delete(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<()> {
        self.called(Call::DeleteCredentials(agent.id));
        self.delete_credentials.play(cx, agent.clone(), ()).await?;
        self.lose_credentials(agent.id);
        Ok(())
    }
}

#[async_trait]
impl GatewayAccess for NullCompute {
    async fn endpoint(&self, _: &OperationContext, revision: &RevisionRef) -> EffectResult<Option<GatewayEndpoint>> {
        self.called(Call::Endpoint(revision.id));
        Ok(Some(GatewayEndpoint {
            url: "http://127.0.0.1:9".to_owned(),
            password_file: None,
        }))
    }

    async fn password(&self, _: &OperationContext, agent: &AgentRef) -> EffectResult<Option<SecretValue>> {
        Ok(self
            .has_credentials(agent.id)
            .then(|| SecretValue::from(format!("gateway password of {}", agent.id))))
    }
}

#[async_trait]
impl WorkspaceSetupSupport for NullCompute {
    async fn discard(&self, _: &OperationContext, agent: &AgentRef, _: Uuid) -> EffectResult<()> {
        self.called(Call::DiscardSetup(agent.id));
        Ok(())
    }
}

#[async_trait]
impl LiveWorkspace for NullCompute {
    async fn read(
        &self,
        _: &OperationContext,
        revision: &RevisionRef,
        name: WorkspaceFileName,
    ) -> EffectResult<Option<String>> {
        Ok(lock(&self.state).files.get(&(revision.agent.id, name)).cloned())
    }

    async fn write(
        &self,
        cx: &OperationContext,
        revision: &RevisionRef,
        name: WorkspaceFileName,
        content: &str,
    ) -> EffectResult<()> {
        self.write_file.play(cx, revision.clone(), ()).await?;
        let file = (revision.agent.id, name);
        lock(&self.state).files.insert(file, content.to_owned());
        Ok(())
    }
}

#[async_trait]
impl Diagnostics for NullCompute {
    async fn diagnose(&self, _: &OperationContext, revision: &RevisionRef) -> EffectResult<Vec<Check>> {
        self.called(Call::Diagnose(revision.id));
        Ok(lock(&self.state).checks.clone())
    }
}

#[async_trait]
impl RuntimeLogs for NullCompute {
    async fn read(&self, cx: &OperationContext, revision: &RevisionRef, query: &LogQuery) -> EffectResult<Vec<String>> {
        self.called(Call::Logs(revision.id));
        let lines = lock(&self.state).lines.clone();
        let last = lines.len().saturating_sub(query.lines.into());
        self.read_logs
            .play(cx, revision.clone(), lines.into_iter().skip(last).collect())
            .await
    }
}

impl Maintenance for NullCompute {
    fn interval(&self) -> Duration {
        self.maintenance.unwrap_or(Duration::MAX)
    }
}

impl RevisionWatch for NullCompute {
    fn unchanged(&self, revision: &RevisionRef) -> bool {
        !lock(&self.state).changed.contains(&revision.id)
    }
}

impl NamespaceAdoption for NullCompute {
    fn accepts(&self, name: &str) -> bool {
        name != "kube-system"
    }
}

impl HookHost for NullCompute {
    fn attach(&self, _: Vec<Arc<dyn LifecycleHooks>>) {
        self.called(Call::AttachHooks);
    }

    fn sandbox_namespace(&self, namespace: &Name) -> Option<String> {
        Some(namespace.to_string())
    }
}

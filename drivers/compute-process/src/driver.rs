//! The contract, calling the rest.

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use occ_core::{
    driver::{
        AgentRef, Check, ComputeAdmission, ComputeDriver, ComputeProfile, Diagnostics, DriverIdentity, EffectError,
        EffectResult, Fault, FaultKind, GatewayAccess, GatewayEndpoint, Listen, LiveWorkspace, LogQuery, Maintenance,
        NamespaceState, OperationContext, PreflightWarning, RevisionContext, RevisionObservation, RevisionRef,
        RuntimeCredentials, RuntimeLogs, Stop, WorkspaceSetupSupport,
    },
    reason::{Dependency, Pending, Token},
    registry::{BuildError, DriverFactory, HostServices},
    resource::{Namespace, WorkspaceFileName},
    secret_value::SecretValue,
};
use uuid::Uuid;

use crate::{
    active,
    admission::Admission,
    credentials, diagnostics,
    error::{Error, Result},
    gateway, launch, logs, namespace,
    naming::Root,
    ownership::Owner,
    place::{Instance, Place, unlapsed},
    preflight,
    prepare::{self, Next, Said},
    settings::Settings,
    setup, stop, workspace,
};

/// How often the selected version is looked after: one that was lost to a reboot or a kill is started again.
const MAINTENANCE: Duration = Duration::from_secs(30);

/// Runs Agents as local processes of this user.
#[derive(Debug)]
pub struct ProcessCompute {
    identity: DriverIdentity,
    instance: Arc<Instance>,
}

impl DriverFactory for ProcessCompute {
    const DRIVER: &'static str = "process";
    const IMPLEMENTATION: &'static str = "occ/process";
    type Settings = Settings;

    fn build(
        identity: DriverIdentity,
        settings: Settings,
        host: &HostServices,
    ) -> std::result::Result<Self, BuildError> {
        settings.check()?;
        let data_dir = std::path::absolute(&host.data_dir)
            .map_err(|_| BuildError::Unavailable("the data directory has no absolute path".to_owned()))?;
        if data_dir.to_str().is_none() {
            return Err(BuildError::Unavailable(
                "the data directory's path is not UTF-8".to_owned(),
            ));
        }
        let supervisor = match &settings.supervisor {
            Some(path) => path.clone(),
            None => beside_this_program(),
        };
        let instance = Instance {
            owner: Owner::new(&identity),
            root: Root::new(&data_dir, &identity.id),
            settings,
            supervisor,
        };
        Ok(Self {
            identity,
            instance: Arc::new(instance),
        })
    }
}

/// Preflight says so when nothing is there.
fn beside_this_program() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.with_file_name("occ-runtime")
}

impl ProcessCompute {
    /// Runs a step that reads and writes files, away from the threads that must not wait. The step itself refuses to go on
    /// under a lapsed lease.
    async fn blocking<T, F>(&self, cx: &OperationContext, step: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Instance, &OperationContext) -> Result<T> + Send + 'static,
    {
        let (instance, cx) = (Arc::clone(&self.instance), cx.clone());
        let step = move || {
            unlapsed(&cx)?;
            step(&instance, &cx)
        };
        match tokio::task::spawn_blocking(step).await {
            Ok(result) => result,
            Err(_) => Err(Fault::new("run a step", FaultKind::Unavailable).into()),
        }
    }

    async fn converge(
        &self,
        cx: &OperationContext,
        context: &RevisionContext,
        pending: Pending,
        step: fn(&Instance, &OperationContext, &RevisionContext) -> Result<Next>,
    ) -> EffectResult<RevisionObservation> {
        let target = &context.target;
        let component = context
            .plan
            .gateway()
            .map_or(Token::known("gateway"), |component| component.name.clone());
        let preparing = |error: Error| error.while_preparing(&component, cx.now());
        let whole = context.clone();
        let next = self
            .blocking(cx, move |instance, cx| step(instance, cx, &whole))
            .await
            .map_err(preparing)?;
        match next {
            Next::Say(said) => said.of(target),
            Next::Launch(place, staged) => {
                let secrets = launch::secrets(&staged, &place.agent, context.secrets.as_ref()).await?;
                unlapsed(cx)?;
                // Another supervisor that came first is observed by the next call, as the new one is.
                launch::launch(&self.instance.supervisor, &staged, &secrets)
                    .await
                    .map_err(|error| preparing(error.own()))?;
                Said::Pending(pending, None).of(target)
            }
            Next::Confirm(place, url) => {
                if !gateway::answers(&url).await {
                    return Err(EffectError::Transient(Dependency::AgentGateway));
                }
                let selected = target.clone();
                self.blocking(cx, move |_, _| place.select(&selected)).await?;
                Said::Ready.of(target)
            }
        }
    }
}

#[async_trait]
impl ComputeDriver for ProcessCompute {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    fn profile(&self) -> ComputeProfile {
        ComputeProfile {
            listen: Listen::Loopback,
        }
    }

    fn admission(&self) -> &dyn ComputeAdmission {
        &Admission
    }

    async fn preflight(&self, cx: &OperationContext) -> EffectResult<Vec<PreflightWarning>> {
        Ok(self.blocking(cx, |instance, _| preflight::preflight(instance)).await?)
    }

    async fn ensure_namespace(&self, cx: &OperationContext, namespace: &Namespace) -> EffectResult<NamespaceState> {
        let namespace = namespace.clone();
        Ok(self
            .blocking(cx, move |instance, _| namespace::ensure(instance, &namespace))
            .await?)
    }

    async fn delete_namespace(&self, cx: &OperationContext, namespace: &Namespace) -> EffectResult<NamespaceState> {
        let id = namespace.id;
        Ok(self
            .blocking(cx, move |instance, _| namespace::delete(instance, id))
            .await?)
    }

    async fn prepare_revision(
        &self,
        cx: &OperationContext,
        revision: &RevisionContext,
    ) -> EffectResult<RevisionObservation> {
        self.converge(cx, revision, Pending::RevisionIncomplete, prepare::prepare)
            .await
    }

    async fn activate_revision(
        &self,
        cx: &OperationContext,
        revision: &RevisionContext,
    ) -> EffectResult<RevisionObservation> {
        self.converge(cx, revision, Pending::RevisionFinalizationIncomplete, prepare::activate)
            .await
    }

    async fn deactivate_revision(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<()> {
        let target = revision.clone();
        let step = move |instance: &Instance, cx: &OperationContext| match Place::find(instance, cx, &target.agent)? {
            Some(place) => active::withdraw(&place.agent, target.id),
            None => Ok(()),
        };
        Ok(self.blocking(cx, step).await?)
    }

    async fn stop_revision(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Stop> {
        let target = revision.clone();
        Ok(self
            .blocking(cx, move |instance, cx| stop::stop(instance, cx, &target))
            .await?)
    }

    async fn retire_revision(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Stop> {
        let target = revision.clone();
        Ok(self
            .blocking(cx, move |instance, cx| stop::retire(instance, cx, &target))
            .await?)
    }

    async fn delete_agent(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<Stop> {
        let agent = agent.clone();
        Ok(self
            .blocking(cx, move |instance, cx| stop::delete_agent(instance, cx, &agent))
            .await?)
    }

    fn runtime_credentials(&self) -> Option<&dyn RuntimeCredentials> {
        Some(self)
    }

    fn gateway_access(&self) -> Option<&dyn GatewayAccess> {
        Some(self)
    }

    fn workspace_setup(&self) -> Option<&dyn WorkspaceSetupSupport> {
        Some(self)
    }

    fn live_workspace(&self) -> Option<&dyn LiveWorkspace> {
        Some(self)
    }

    fn diagnostics(&self) -> Option<&dyn Diagnostics> {
        Some(self)
    }

    fn logs(&self) -> Option<&dyn RuntimeLogs> {
        Some(self)
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        Some(self)
    }
}

#[async_trait]
impl RuntimeCredentials for ProcessCompute {
    async fn exist(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<bool> {
        let agent = agent.clone();
        let step = move |instance: &Instance, _: &OperationContext| match instance.look(&agent)? {
            Some(paths) => Ok(credentials::password(&paths)?.is_some()),
            None => Ok(false),
        };
        Ok(self.blocking(cx, step).await?)
    }

    async fn provision(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<()> {
        let agent = agent.clone();
        let step = move |instance: &Instance, cx: &OperationContext| {
            let place = Place::claim(instance, cx, &agent)?;
            credentials::provision(&place.agent)
        };
        Ok(self.blocking(cx, step).await?)
    }

    async fn delete(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<()> {
        let agent = agent.clone();
        let step = move |instance: &Instance, cx: &OperationContext| match Place::find(instance, cx, &agent)? {
            Some(place) => credentials::delete(&place.agent),
            None => Ok(()),
        };
        Ok(self.blocking(cx, step).await?)
    }
}

#[async_trait]
impl GatewayAccess for ProcessCompute {
    async fn endpoint(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Option<GatewayEndpoint>> {
        let target = revision.clone();
        Ok(self
            .blocking(cx, move |instance, _| gateway::endpoint(instance, &target))
            .await?)
    }

    async fn password(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<Option<SecretValue>> {
        let agent = agent.clone();
        let step = move |instance: &Instance, _: &OperationContext| match instance.look(&agent)? {
            Some(paths) => credentials::password(&paths),
            None => Ok(None),
        };
        Ok(self.blocking(cx, step).await?)
    }
}

#[async_trait]
impl WorkspaceSetupSupport for ProcessCompute {
    async fn discard(&self, cx: &OperationContext, agent: &AgentRef, setup: Uuid) -> EffectResult<()> {
        let agent = agent.clone();
        Ok(self
            .blocking(cx, move |instance, cx| setup::discard(instance, cx, &agent, setup))
            .await?)
    }
}

#[async_trait]
impl LiveWorkspace for ProcessCompute {
    async fn read(
        &self,
        cx: &OperationContext,
        revision: &RevisionRef,
        name: WorkspaceFileName,
    ) -> EffectResult<Option<String>> {
        let agent = revision.agent.clone();
        Ok(self
            .blocking(cx, move |instance, _| workspace::read(instance, &agent, name))
            .await?)
    }

    async fn write(
        &self,
        cx: &OperationContext,
        revision: &RevisionRef,
        name: WorkspaceFileName,
        content: &str,
    ) -> EffectResult<()> {
        let (agent, content) = (revision.agent.clone(), content.to_owned());
        Ok(self
            .blocking(cx, move |instance, cx| {
                workspace::write(instance, cx, &agent, name, &content)
            })
            .await?)
    }
}

#[async_trait]
impl Diagnostics for ProcessCompute {
    async fn diagnose(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Vec<Check>> {
        let target = revision.clone();
        let seen = self
            .blocking(cx, move |instance, _| diagnostics::read(instance, &target))
            .await?;
        Ok(diagnostics::diagnose(cx, seen).await)
    }
}

#[async_trait]
impl RuntimeLogs for ProcessCompute {
    async fn read(&self, cx: &OperationContext, revision: &RevisionRef, query: &LogQuery) -> EffectResult<Vec<String>> {
        let (target, query) = (revision.clone(), query.clone());
        Ok(self
            .blocking(cx, move |instance, _| logs::read(instance, &target, &query))
            .await?)
    }
}

impl Maintenance for ProcessCompute {
    fn interval(&self) -> Duration {
        MAINTENANCE
    }
}

//! Drivers that are built and never run: composition causes no effect.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use occ_core::{
    driver::{
        AccessRequest, AccountIdentity, AgentRef, Attachment, AttachmentCondition, CatalogPlugin, ComputeAdmission,
        ComputeDriver, ComputeProfile, ConfigurationDriver, CredentialGateway, Decision, DocumentProblem,
        DriverIdentity, EffectError, EffectResult, GatewaySettings, Harness, HarnessAuthRequest, HarnessSelection,
        HookHost, IamDriver, Identity, LifecycleHooks, Listen, Maintenance, NamespaceState, OperationContext,
        PlanInput, PluginDriver, PolicyCapabilities, PreflightWarning, Rejection, RevisionContext, RevisionObservation,
        RevisionRef, SandboxDriver, SandboxFacet, SecretDriver, SecretIdentity, ServiceAccountDriver, SettingRejection,
        SourceCondition, SourceContent, SourceIdentity, SourceTypeInfo, Stop, Terminal,
    },
    iam::NoPolicy,
    id::{ConfigurationId, NamespaceId},
    plan::WorkloadPlan,
    registry::{BuildError, DriverFactory, HostServices},
    resource::{
        BackendRef, Document, ExecutionMode, HarnessAuthMethod, HarnessIdentity, Name, Namespace, PrincipalId,
        ProviderAccount,
    },
    secret_value::SecretValue,
};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

pub fn host() -> HostServices {
    HostServices::new(PathBuf::from("/nonexistent"), Arc::new(NoPolicy))
}

fn not_run<T>() -> EffectResult<T> {
    Err(EffectError::UnknownOutcome)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

struct Hooks;
impl LifecycleHooks for Hooks {}

pub struct StubConfiguration(DriverIdentity);

impl DriverFactory for StubConfiguration {
    const DRIVER: &'static str = "stub";
    const IMPLEMENTATION: &'static str = "test/stub";
    type Settings = NoSettings;
    fn build(identity: DriverIdentity, _: NoSettings, _: &HostServices) -> Result<Self, BuildError> {
        Ok(Self(identity))
    }
}

#[async_trait]
impl ConfigurationDriver for StubConfiguration {
    fn identity(&self) -> &DriverIdentity {
        &self.0
    }
    async fn create(&self, _: &OperationContext, _: NamespaceId, _: ConfigurationId, _: &Document) -> EffectResult<()> {
        not_run()
    }
    async fn read(
        &self,
        _: &OperationContext,
        _: NamespaceId,
        _: ConfigurationId,
    ) -> EffectResult<Option<(u64, Document)>> {
        not_run()
    }
    async fn update(
        &self,
        _: &OperationContext,
        _: NamespaceId,
        _: ConfigurationId,
        _: u64,
        _: &Document,
    ) -> EffectResult<()> {
        not_run()
    }
    async fn delete(&self, _: &OperationContext, _: NamespaceId, _: ConfigurationId) -> EffectResult<()> {
        not_run()
    }
}
occ_core::register_configuration!(StubConfiguration);

pub struct StubIam {
    identity: DriverIdentity,
    hooks: bool,
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub struct IamSettings {
    /// Whether it brings hooks.
    hooks: bool,
}

impl DriverFactory for StubIam {
    const DRIVER: &'static str = "stub";
    const IMPLEMENTATION: &'static str = "test/stub";
    type Settings = IamSettings;
    fn build(identity: DriverIdentity, settings: IamSettings, _: &HostServices) -> Result<Self, BuildError> {
        Ok(Self {
            identity,
            hooks: settings.hooks,
        })
    }
}

#[async_trait]
impl IamDriver for StubIam {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }
    async fn lookup(&self, _: &OperationContext, _: &PrincipalId) -> EffectResult<Option<Identity>> {
        not_run()
    }
    async fn authorize(&self, _: &OperationContext, _: &AccessRequest) -> EffectResult<Decision> {
        not_run()
    }
    fn lifecycle_hooks(&self) -> Option<Arc<dyn LifecycleHooks>> {
        self.hooks.then(|| Arc::new(Hooks) as Arc<dyn LifecycleHooks>)
    }
}
occ_core::register_iam!(StubIam);

pub struct StubSecret(DriverIdentity);

impl DriverFactory for StubSecret {
    const DRIVER: &'static str = "stub";
    const IMPLEMENTATION: &'static str = "test/stub";
    type Settings = NoSettings;
    fn build(identity: DriverIdentity, _: NoSettings, _: &HostServices) -> Result<Self, BuildError> {
        Ok(Self(identity))
    }
}

#[async_trait]
impl SecretDriver for StubSecret {
    fn identity(&self) -> &DriverIdentity {
        &self.0
    }
    async fn create(&self, _: &OperationContext, _: &SecretIdentity, _: &SecretValue) -> EffectResult<BackendRef> {
        not_run()
    }
    async fn update(
        &self,
        _: &OperationContext,
        _: &SecretIdentity,
        _: &BackendRef,
        _: &SecretValue,
    ) -> EffectResult<()> {
        not_run()
    }
    async fn delete(&self, _: &OperationContext, _: &SecretIdentity, _: &BackendRef) -> EffectResult<()> {
        not_run()
    }
    async fn resolve(&self, _: &OperationContext, _: &SecretIdentity, _: &BackendRef) -> EffectResult<BackendRef> {
        not_run()
    }
    async fn value(&self, _: &OperationContext, _: &SecretIdentity, _: &BackendRef) -> EffectResult<SecretValue> {
        not_run()
    }
}
occ_core::register_secret!(StubSecret);

/// A Compute with settings of every shape.
pub struct StubCompute {
    identity: DriverIdentity,
    settings: ComputeSettings,
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ComputeSettings {
    tools: BTreeMap<String, PathBuf>,
    pools: Vec<Pool>,
    hook_host: bool,
    maintenance_seconds: Option<u64>,
    unavailable: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    port: u16,
}

impl DriverFactory for StubCompute {
    const DRIVER: &'static str = "stub";
    const IMPLEMENTATION: &'static str = "test/stub";
    type Settings = ComputeSettings;
    fn build(identity: DriverIdentity, settings: ComputeSettings, _: &HostServices) -> Result<Self, BuildError> {
        if settings.unavailable {
            return Err(BuildError::Unavailable("this machine has no such thing".to_owned()));
        }
        if settings.pools.iter().any(|pool| pool.port == 0) {
            return Err(BuildError::setting("/pools", "expected ports above 0"));
        }
        match settings.tools.iter().find(|(_, path)| !path.is_absolute()) {
            Some((name, _)) => Err(BuildError::setting(
                format!("/tools/{name}"),
                "expected an absolute path",
            )),
            None => Ok(Self { identity, settings }),
        }
    }
}

impl ComputeAdmission for StubCompute {
    fn harness_auth(&self, _: &HarnessAuthRequest<'_>) -> Result<(), Rejection> {
        Ok(())
    }
    fn gateway_settings(&self, _: &GatewaySettings) -> Result<(), SettingRejection> {
        Ok(())
    }
}

impl HookHost for StubCompute {
    fn attach(&self, _: Vec<Arc<dyn LifecycleHooks>>) {}
    fn sandbox_namespace(&self, _: &Name) -> Option<String> {
        None
    }
}

impl Maintenance for StubCompute {
    fn interval(&self) -> Duration {
        Duration::from_secs(self.settings.maintenance_seconds.unwrap_or(1))
    }
}

#[async_trait]
impl ComputeDriver for StubCompute {
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
        not_run()
    }
    async fn ensure_namespace(&self, _: &OperationContext, _: &Namespace) -> EffectResult<NamespaceState> {
        not_run()
    }
    async fn delete_namespace(&self, _: &OperationContext, _: &Namespace) -> EffectResult<NamespaceState> {
        not_run()
    }
    async fn prepare_revision(&self, _: &OperationContext, _: &RevisionContext) -> EffectResult<RevisionObservation> {
        not_run()
    }
    async fn activate_revision(&self, _: &OperationContext, _: &RevisionContext) -> EffectResult<RevisionObservation> {
        not_run()
    }
    async fn deactivate_revision(&self, _: &OperationContext, _: &RevisionRef) -> EffectResult<()> {
        not_run()
    }
    async fn stop_revision(&self, _: &OperationContext, _: &RevisionRef) -> EffectResult<Stop> {
        not_run()
    }
    async fn retire_revision(&self, _: &OperationContext, _: &RevisionRef) -> EffectResult<Stop> {
        not_run()
    }
    async fn delete_agent(&self, _: &OperationContext, _: &AgentRef) -> EffectResult<Stop> {
        not_run()
    }
    fn hook_host(&self) -> Option<&dyn HookHost> {
        self.settings.hook_host.then_some(self as &dyn HookHost)
    }
    fn maintenance(&self) -> Option<&dyn Maintenance> {
        self.settings.maintenance_seconds.map(|_| self as &dyn Maintenance)
    }
}
occ_core::register_compute!(StubCompute);

/// A Sandbox that can be told to be wrong.
pub struct StubSandbox {
    identity: DriverIdentity,
    facets: Vec<SandboxFacet>,
    home: &'static str,
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSettings {
    facets: Vec<String>,
    relative: bool,
}

impl DriverFactory for StubSandbox {
    const DRIVER: &'static str = "stub";
    const IMPLEMENTATION: &'static str = "test/stub";
    type Settings = SandboxSettings;
    fn build(identity: DriverIdentity, settings: SandboxSettings, _: &HostServices) -> Result<Self, BuildError> {
        let facet = |name: &String| match name.as_str() {
            "networking" => SandboxFacet::Networking,
            _ => SandboxFacet::Process,
        };
        Ok(Self {
            identity,
            facets: settings.facets.iter().map(facet).collect(),
            home: if settings.relative {
                "/home/../node"
            } else {
                "/home/node"
            },
        })
    }
}

#[async_trait]
impl SandboxDriver for StubSandbox {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }
    fn facets(&self) -> &[SandboxFacet] {
        &self.facets
    }
    fn harness_home(&self) -> &'static str {
        self.home
    }
    fn configure_agent(&self, document: Document, _: &HarnessIdentity) -> Result<Document, Terminal> {
        Ok(document)
    }
    async fn ensure_namespace(&self, _: &OperationContext, _: &Namespace) -> EffectResult<()> {
        not_run()
    }
    async fn cleanup(&self, _: &OperationContext, _: &Namespace, _: Option<&RevisionRef>) -> EffectResult<()> {
        not_run()
    }
    fn lifecycle_hooks(&self) -> Option<Arc<dyn LifecycleHooks>> {
        Some(Arc::new(Hooks))
    }
}
occ_core::register_sandbox!(StubSandbox);

/// A Service Account Driver that is never called.
pub struct StubAccounts(DriverIdentity);

impl DriverFactory for StubAccounts {
    const DRIVER: &'static str = "stub";
    const IMPLEMENTATION: &'static str = "test/stub";
    type Settings = NoSettings;
    fn build(identity: DriverIdentity, _: NoSettings, _: &HostServices) -> Result<Self, BuildError> {
        Ok(Self(identity))
    }
}

#[async_trait]
impl ServiceAccountDriver for StubAccounts {
    fn identity(&self) -> &DriverIdentity {
        &self.0
    }
    async fn create(&self, _: &OperationContext, _: &AccountIdentity) -> EffectResult<ProviderAccount> {
        not_run()
    }
    async fn create_credential(
        &self,
        _: &OperationContext,
        _: &AccountIdentity,
        _: &ProviderAccount,
        _: Uuid,
    ) -> EffectResult<SecretValue> {
        not_run()
    }
    async fn delete_credential(
        &self,
        _: &OperationContext,
        _: &AccountIdentity,
        _: &ProviderAccount,
        _: Uuid,
    ) -> EffectResult<()> {
        not_run()
    }
    async fn delete(&self, _: &OperationContext, _: &AccountIdentity, _: Option<&ProviderAccount>) -> EffectResult<()> {
        not_run()
    }
}
occ_core::register_service_account!(StubAccounts);

/// A Plugin Driver that is never called.
pub struct StubPlugins(DriverIdentity);

impl DriverFactory for StubPlugins {
    const DRIVER: &'static str = "stub";
    const IMPLEMENTATION: &'static str = "test/stub";
    type Settings = NoSettings;
    fn build(identity: DriverIdentity, _: NoSettings, _: &HostServices) -> Result<Self, BuildError> {
        Ok(Self(identity))
    }
}

#[async_trait]
impl PluginDriver for StubPlugins {
    fn identity(&self) -> &DriverIdentity {
        &self.0
    }
    fn policy_capabilities(&self) -> PolicyCapabilities {
        PolicyCapabilities::default()
    }
    async fn list_catalog(&self, _: &OperationContext) -> EffectResult<Vec<CatalogPlugin>> {
        not_run()
    }
}
occ_core::register_plugin!(StubPlugins);

/// A Credential Gateway that is never called.
pub struct StubGateway(DriverIdentity);

impl DriverFactory for StubGateway {
    const DRIVER: &'static str = "stub";
    const IMPLEMENTATION: &'static str = "test/stub";
    type Settings = NoSettings;
    fn build(identity: DriverIdentity, _: NoSettings, _: &HostServices) -> Result<Self, BuildError> {
        Ok(Self(identity))
    }
}

#[async_trait]
impl CredentialGateway for StubGateway {
    fn identity(&self) -> &DriverIdentity {
        &self.0
    }
    fn source_types(&self) -> &[SourceTypeInfo] {
        &[]
    }
    async fn register(
        &self,
        _: &OperationContext,
        _: &SourceIdentity,
        _: SourceContent<'_>,
    ) -> EffectResult<SourceCondition> {
        not_run()
    }
    async fn condition(&self, _: &OperationContext, _: &SourceIdentity) -> EffectResult<SourceCondition> {
        not_run()
    }
    async fn remove(&self, _: &OperationContext, _: &SourceIdentity) -> EffectResult<()> {
        not_run()
    }
    async fn attach(
        &self,
        _: &OperationContext,
        _: &RevisionRef,
        _: &[SourceIdentity],
    ) -> EffectResult<Vec<Attachment>> {
        not_run()
    }
    async fn attachment(
        &self,
        _: &OperationContext,
        _: &RevisionRef,
        _: &SourceIdentity,
    ) -> EffectResult<AttachmentCondition> {
        not_run()
    }
    async fn withdraw(&self, _: &OperationContext, _: &RevisionRef, _: &SourceIdentity) -> EffectResult<()> {
        not_run()
    }
}
occ_core::register_credential_gateway!(StubGateway);

pub struct StubHarness(DriverIdentity);

impl DriverFactory for StubHarness {
    const DRIVER: &'static str = "stub";
    const IMPLEMENTATION: &'static str = "test/stub";
    type Settings = NoSettings;
    fn build(identity: DriverIdentity, _: NoSettings, _: &HostServices) -> Result<Self, BuildError> {
        Ok(Self(identity))
    }
}

impl Harness for StubHarness {
    fn identity(&self) -> &DriverIdentity {
        &self.0
    }
    fn version(&self) -> &'static str {
        "1"
    }
    fn modes(&self) -> &[ExecutionMode] {
        &[ExecutionMode::Embedded]
    }
    fn select(&self, _: &Document) -> Result<HarnessSelection, DocumentProblem> {
        Ok(HarnessSelection {
            harness: self.0.id.clone(),
        })
    }
    fn validate(&self, _: &Document, _: ExecutionMode, _: HarnessAuthMethod) -> Result<(), DocumentProblem> {
        Ok(())
    }
    fn gateway_settings(&self, _: &Document) -> Result<GatewaySettings, DocumentProblem> {
        Ok(GatewaySettings::default())
    }
    fn plan(&self, _: PlanInput<'_>) -> Result<WorkloadPlan, DocumentProblem> {
        Ok(WorkloadPlan { components: Vec::new() })
    }
}
occ_core::register_harness!(StubHarness);

/// A Harness that answers with an id of its own choice.
pub struct Impostor(DriverIdentity);

impl DriverFactory for Impostor {
    const DRIVER: &'static str = "impostor";
    const IMPLEMENTATION: &'static str = "test/impostor";
    type Settings = NoSettings;
    fn build(mut identity: DriverIdentity, _: NoSettings, _: &HostServices) -> Result<Self, BuildError> {
        "somebody-else".clone_into(&mut identity.id);
        Ok(Self(identity))
    }
}

impl Harness for Impostor {
    fn identity(&self) -> &DriverIdentity {
        &self.0
    }
    fn version(&self) -> &'static str {
        "1"
    }
    fn modes(&self) -> &[ExecutionMode] {
        &[]
    }
    fn select(&self, _: &Document) -> Result<HarnessSelection, DocumentProblem> {
        Ok(HarnessSelection {
            harness: self.0.id.clone(),
        })
    }
    fn validate(&self, _: &Document, _: ExecutionMode, _: HarnessAuthMethod) -> Result<(), DocumentProblem> {
        Ok(())
    }
    fn gateway_settings(&self, _: &Document) -> Result<GatewaySettings, DocumentProblem> {
        Ok(GatewaySettings::default())
    }
    fn plan(&self, _: PlanInput<'_>) -> Result<WorkloadPlan, DocumentProblem> {
        Ok(WorkloadPlan { components: Vec::new() })
    }
}
occ_core::register_harness!(Impostor);

/// An Installation file of stubs, with other lines in place of some of its own.
pub fn file_with(replacements: &[(&str, &str)]) -> String {
    let mut text = include_str!("stub.yaml").to_owned();
    for (from, to) in replacements {
        assert!(text.contains(from), "the file has no {from:?}");
        text = text.replace(from, to);
    }
    text
}

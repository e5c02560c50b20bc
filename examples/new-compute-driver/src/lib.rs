//! A Compute Driver from scratch. It logs what the engine asks and runs nothing, so everything that it has ever been asked to
//! run is "ready". Start your own driver from this file: each method says in the contract's docs what it owes.

use async_trait::async_trait;
use occ_core::{
    driver::{
        AgentRef, ComputeAdmission, ComputeDriver, ComputeProfile, DriverIdentity, EffectResult, GatewaySettings,
        HarnessAuthRequest, Listen, NamespaceState, OperationContext, PreflightWarning, Rejection, RevisionContext,
        RevisionObservation, RevisionRef, SettingRejection, Stop,
    },
    register_compute,
    registry::{BuildError, DriverFactory, HostServices},
    resource::Namespace,
};

/// The settings: none. Unknown ones are refused, as every driver's must be.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {}

/// Logs its calls.
pub struct LoggingCompute {
    identity: DriverIdentity,
}

impl DriverFactory for LoggingCompute {
    const DRIVER: &'static str = "logging";
    const IMPLEMENTATION: &'static str = "example/logging";
    type Settings = Settings;
    fn build(identity: DriverIdentity, _: Settings, _: &HostServices) -> Result<Self, BuildError> {
        Ok(Self { identity })
    }
}

register_compute!(LoggingCompute);

impl ComputeAdmission for LoggingCompute {
    fn harness_auth(&self, _: &HarnessAuthRequest<'_>) -> Result<(), Rejection> {
        Ok(())
    }
    fn gateway_settings(&self, _: &GatewaySettings) -> Result<(), SettingRejection> {
        Ok(())
    }
}

#[async_trait]
impl ComputeDriver for LoggingCompute {
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
        Ok(Vec::new())
    }
    async fn ensure_namespace(&self, _: &OperationContext, ns: &Namespace) -> EffectResult<NamespaceState> {
        tracing::info!(namespace = %ns.id, "ensure namespace");
        Ok(NamespaceState::done(ns))
    }
    async fn delete_namespace(&self, _: &OperationContext, ns: &Namespace) -> EffectResult<NamespaceState> {
        tracing::info!(namespace = %ns.id, "delete namespace");
        Ok(NamespaceState::done(ns))
    }
    async fn prepare_revision(&self, _: &OperationContext, rev: &RevisionContext) -> EffectResult<RevisionObservation> {
        tracing::info!(revision = %rev.target.id, components = rev.plan.components.len(), "prepare");
        Ok(RevisionObservation::ready(&rev.target))
    }
    async fn activate_revision(
        &self,
        _: &OperationContext,
        rev: &RevisionContext,
    ) -> EffectResult<RevisionObservation> {
        tracing::info!(revision = %rev.target.id, "activate");
        Ok(RevisionObservation::ready(&rev.target))
    }
    async fn deactivate_revision(&self, _: &OperationContext, rev: &RevisionRef) -> EffectResult<()> {
        tracing::info!(revision = %rev.id, "deactivate");
        Ok(())
    }
    async fn stop_revision(&self, _: &OperationContext, rev: &RevisionRef) -> EffectResult<Stop> {
        tracing::info!(revision = %rev.id, "stop");
        Ok(Stop::Stopped)
    }
    async fn retire_revision(&self, _: &OperationContext, rev: &RevisionRef) -> EffectResult<Stop> {
        tracing::info!(revision = %rev.id, "retire");
        Ok(Stop::Stopped)
    }
    async fn delete_agent(&self, _: &OperationContext, agent: &AgentRef) -> EffectResult<Stop> {
        tracing::info!(agent = %agent.id, "delete agent");
        Ok(Stop::Stopped)
    }
}

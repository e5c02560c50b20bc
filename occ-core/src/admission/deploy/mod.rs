//! Admission of a deployment: a pure decision on what was gathered (seed: Agent identity and deployment; spec/engine 3).

mod checks;
mod inputs;

pub use checks::{CHECKS, Check};
pub(crate) use inputs::select;
pub use inputs::{DeployInputs, Gathered, Repeated, permission, required, secret_ids, source_ids};

use super::{DetailCode, Refusal};
use crate::{
    driver::DocumentProblem,
    resource::{ComputeIdentity, HarnessAuthSnapshot, PluginDriverIdentity, PluginsSnapshot, ServiceAccount, Snapshot},
};

/// A deployment that may be committed, under the preconditions that the rows it was decided on still hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    /// What the version freezes.
    pub snapshot: Snapshot,
    /// The version's number.
    pub number: u64,
    /// Whether the Agent's transport credentials must be made first.
    pub provision_credentials: bool,
}

/// Decides. The first check of [`CHECKS`] that refuses gives the refusal.
pub fn admit(inputs: &DeployInputs<'_>) -> Result<Admitted, Refusal> {
    CHECKS.iter().try_for_each(|(_, check)| check(inputs))?;
    let (agent, configuration) = (inputs.agent_row()?, inputs.configuration_row()?);
    let compute = inputs.drivers.compute.identity();
    let binding = agent.harness_auth.ok_or_else(Refusal::not_found)?;
    let driver = inputs.drivers.plugin.as_ref().filter(|_| !agent.plugins.is_empty());
    let plugins = driver.map(|driver| PluginsSnapshot {
        driver: PluginDriverIdentity {
            id: driver.identity().id.clone(),
            implementation: driver.identity().implementation.clone(),
        },
        plugins: agent.plugins.clone(),
    });
    let delivered = binding.secret().map(|(_, id)| id).or(inputs.token());
    let secret = delivered.map(|id| inputs.snapshot_of(id)).transpose()?;
    let issued = inputs.account.as_ref().and_then(ServiceAccount::issued);
    let mut credential_sources = Vec::new();
    for source in &agent.credential_sources {
        credential_sources.push(inputs.frozen_source(source.source_id)?);
    }
    let mediated = binding.credential_source();
    let mediated = mediated.map(|id| inputs.frozen_source(id)).transpose()?;
    let mut secret_bindings = std::collections::BTreeMap::new();
    for (name, bound) in &configuration.secret_bindings {
        secret_bindings.insert(name.clone(), inputs.snapshot_of(bound.source.id)?);
    }
    let snapshot = Snapshot {
        backend_id: agent.backend_id.clone(),
        configuration_id: configuration.id,
        configuration_kind: configuration.kind,
        configuration_generation: configuration.generation,
        configuration: inputs.effective()?.into_owned(),
        harness: inputs.harness_identity()?,
        compute: ComputeIdentity {
            id: compute.id.clone(),
            implementation: compute.implementation.clone(),
        },
        sandbox_driver_id: inputs
            .drivers
            .sandbox
            .as_ref()
            .map(|sandbox| sandbox.identity().id.clone()),
        plugins,
        plugin_approvers: agent.plugin_approvers.clone(),
        harness_auth: HarnessAuthSnapshot {
            binding,
            secret,
            source: mediated,
            account: issued.map(|(_, binding)| binding.clone()),
        },
        credential_sources,
        secret_bindings,
        service_principal_id: agent.service_principal_id.clone(),
    };
    let provision_credentials = checks::lacks_credentials(inputs)?;
    Ok(Admitted {
        snapshot,
        number: inputs.read.revisions + 1,
        provision_credentials,
    })
}

/// 400 with the Harness's fixed text, pointing into the Configuration's document.
pub(crate) fn document_problem(problem: &DocumentProblem) -> Refusal {
    Refusal::invalid(problem.message).at(&format!("/values{}", problem.pointer), DetailCode::InvalidValue)
}

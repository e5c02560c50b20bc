//! What a pass must know of the selected drivers, looked up once.

use super::pass::{ComputeFacts, revision_ref};
use crate::{driver::Maintenance, installation::Drivers, resource::ComputeIdentity, revision, store::PassRead};

/// Of these drivers, for what was read.
pub(super) fn facts(drivers: &Drivers, read: &PassRead) -> ComputeFacts {
    let identity = drivers.compute.identity();
    let target = read.agent.as_ref().zip(read.head.as_ref());
    let revision = read.revision.as_ref().map(|row| &row.revision);
    ComputeFacts {
        identity: ComputeIdentity {
            id: identity.id.clone(),
            implementation: identity.implementation.clone(),
        },
        order: drivers.compute.activation_order(),
        exclusive: target.is_some_and(|(agent, head)| {
            drivers
                .compute
                .requires_stopped_predecessors(&revision_ref(&agent.agent, head))
        }),
        workspace_setup: drivers.compute.workspace_setup().is_some(),
        binds: drivers.compute.agent_binding().is_some(),
        harness_approved: revision.is_some_and(|revision| {
            let frozen = &revision.snapshot.harness;
            drivers
                .harness(&frozen.id)
                .is_some_and(|harness| harness.version() == frozen.version && harness.modes().contains(&frozen.mode))
        }),
        backend_configured: revision.is_none_or(|revision| {
            let frozen = revision.snapshot.backend_id.as_ref();
            frozen.is_none_or(|id| drivers.backends().iter().any(|backend| backend.id == *id))
        }),
        account_issuer: revision.is_none_or(|revision| {
            let frozen = revision.snapshot.harness_auth.account.as_ref();
            frozen.is_none_or(|binding| drivers.issues(binding))
        }),
        intact: revision.is_none_or(revision::is_intact),
        credential_gateway: drivers.gateway_id().map(str::to_owned),
        secret_driver: drivers.secret.identity().id.clone(),
        maintenance: drivers.compute.maintenance().map(Maintenance::interval),
        installation: None,
    }
}

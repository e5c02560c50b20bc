//! What drivers are given of a version: its plan and its secrets.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use tracing::Instrument as _;

use super::{pass::revision_ref, telemetry};
use crate::{
    driver::{
        EffectError, EffectResult, Fault, FaultKind, OperationContext, PlanInput, RevisionContext, SecretAccess,
        SecretDriver, SecretIdentity, Terminal,
    },
    installation::Drivers,
    plan::SecretSlot,
    resource::{BackendRef, Secret, Snapshot},
    secret_value::SecretValue,
    store::PassRead,
};

/// The secrets that a version froze, answered by the selected Secret Driver.
struct FrozenSecrets {
    driver: Arc<dyn SecretDriver>,
    cx: OperationContext,
    slots: BTreeMap<SecretSlot, (SecretIdentity, BackendRef)>,
}

impl FrozenSecrets {
    fn new(driver: Arc<dyn SecretDriver>, cx: OperationContext, snapshot: &Snapshot, rows: &[Secret]) -> Self {
        let harness = snapshot
            .harness_auth
            .secret
            .iter()
            .map(|secret| (SecretSlot::HarnessCredential, secret));
        let bindings = snapshot
            .secret_bindings
            .iter()
            .map(|(name, secret)| (SecretSlot::Binding(name.clone()), secret));
        let slots = harness
            .chain(bindings)
            .filter_map(|(slot, frozen)| {
                let row = rows.iter().find(|row| row.id == frozen.id)?;
                let identity = SecretIdentity {
                    id: row.id,
                    namespace_id: row.namespace_id,
                    name: row.name.clone(),
                };
                Some((slot, (identity, frozen.backend_ref.clone())))
            })
            .collect();
        Self { driver, cx, slots }
    }
}

#[async_trait]
impl SecretAccess for FrozenSecrets {
    fn reference(&self, slot: &SecretSlot) -> Option<BackendRef> {
        self.slots.get(slot).map(|(_, at)| at.clone())
    }

    async fn value(&self, slot: &SecretSlot) -> EffectResult<SecretValue> {
        let (identity, at) = self
            .slots
            .get(slot)
            .ok_or(Fault::new("find the secret of a slot", FaultKind::Missing))?;
        let span = telemetry::call("secret.value", self.driver.identity());
        let value = self.driver.value(&self.cx, identity, at).instrument(span.clone()).await;
        telemetry::called(&span, &value);
        value
    }
}

/// Builds what prepare and activate need. The plan is made anew each time: it is a pure function of the frozen snapshot.
pub(super) fn revision_context(
    drivers: &Drivers,
    cx: &OperationContext,
    read: &PassRead,
) -> EffectResult<RevisionContext> {
    let missing = |what| EffectError::from(Fault::new(what, FaultKind::Missing));
    let namespace = read
        .namespace
        .as_ref()
        .ok_or_else(|| missing("find the version's Namespace"))?;
    let agent = &read
        .agent
        .as_ref()
        .ok_or_else(|| missing("find the version's Agent"))?
        .agent;
    let revision = &read
        .revision
        .as_ref()
        .ok_or_else(|| missing("find the version"))?
        .revision;
    let harness = drivers
        .harness(&revision.snapshot.harness.id)
        .ok_or_else(|| missing("find the version's Harness"))?;
    let input = PlanInput {
        snapshot: &revision.snapshot,
        compute: drivers.compute.profile(),
    };
    // The document was checked at admission, by the same Harness version.
    let plan = harness
        .plan(input)
        .map_err(|_| EffectError::Terminal(Terminal::ConfigurationInvalid))?;
    let secrets = FrozenSecrets::new(
        Arc::clone(&drivers.secret),
        cx.clone(),
        &revision.snapshot,
        &read.secrets,
    );
    Ok(RevisionContext {
        namespace: namespace.namespace.clone(),
        target: revision_ref(agent, revision),
        revision: revision.clone(),
        plan,
        secrets: Arc::new(secrets),
        workspace_setup: read.setup.clone(),
    })
}

//! What drivers are given of a version: its plan and its secrets.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use tracing::Instrument as _;

use super::{pass::revision_ref, telemetry};
use crate::{
    control::source_identity,
    driver::{
        Attachment, AttachmentCondition, CredentialGateway, EffectError, EffectResult, Fault, FaultKind,
        OperationContext, PlanInput, RevisionContext, SecretAccess, SecretDriver, SecretIdentity, Terminal,
    },
    installation::Drivers,
    plan::{EnvValue, Role, SecretSlot, Text, WorkloadPlan},
    reason::Pending,
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

/// Lets the version use its credential sources, and looks whether it can: one that is not ready yet is waited for.
pub(super) async fn attachments(
    gateway: &dyn CredentialGateway,
    cx: &OperationContext,
    read: &PassRead,
) -> EffectResult<Vec<Attachment>> {
    let (Some(agent), Some(head)) = (&read.agent, &read.head) else {
        return Ok(Vec::new());
    };
    let target = revision_ref(&agent.agent, head);
    let used = read
        .sources
        .iter()
        .filter(|source| source.withdrawal(target.id).is_none());
    let sources: Vec<_> = used.map(source_identity).collect();
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    let attached = gateway.attach(cx, &target, &sources).await?;
    let named = |id| attached.iter().filter(|one| one.source == id).count() == 1;
    if attached.len() != sources.len() || !sources.iter().all(|source| named(source.id)) {
        return Err(Fault::new("count the attachments", FaultKind::Protocol).into());
    }
    for source in &sources {
        match gateway.attachment(cx, &target, source).await? {
            AttachmentCondition::Ready => {}
            AttachmentCondition::Pending | AttachmentCondition::Withheld => {
                return Err(EffectError::Pending(Pending::RevisionIncomplete));
            }
            AttachmentCondition::Failed | AttachmentCondition::Absent => {
                return Err(EffectError::Terminal(Terminal::CredentialSourceUnavailable));
            }
            AttachmentCondition::Revoked => return Err(EffectError::Terminal(Terminal::CredentialWithdrawn)),
        }
    }
    Ok(attached)
}

/// Gives the Harness its placeholders; no two sources, and nothing of the plan, may share a variable.
fn place(plan: &mut WorkloadPlan, attached: &[Attachment]) -> EffectResult<()> {
    let conflict = EffectError::Terminal(Terminal::CredentialSourceEnvironmentConflict);
    for component in plan.components.iter_mut().filter(|part| part.role != Role::Gateway) {
        for (name, placeholder) in attached.iter().flat_map(|one| &one.placeholders) {
            let value = EnvValue::Text(Text::literal(placeholder.clone()));
            if component.environment.insert(name.to_string(), value).is_some() {
                return Err(conflict);
            }
        }
    }
    Ok(())
}

/// Builds what prepare and activate need. The plan is made anew each time: it is a pure function of the frozen snapshot.
pub(super) fn revision_context(
    drivers: &Drivers,
    cx: &OperationContext,
    read: &PassRead,
    attached: &[Attachment],
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
    let (Some(head), Some(row)) = (&read.head, &read.revision) else {
        return Err(missing("find the version"));
    };
    let revision = &row.revision;
    let harness = drivers
        .harness(&revision.snapshot.harness.id)
        .ok_or_else(|| missing("find the version's Harness"))?;
    let input = PlanInput {
        snapshot: &revision.snapshot,
        compute: drivers.compute.profile(),
    };
    // The document was checked at admission, by the same Harness version.
    let mut plan = harness
        .plan(input)
        .map_err(|_| EffectError::Terminal(Terminal::ConfigurationInvalid))?;
    place(&mut plan, attached)?;
    let secrets = FrozenSecrets::new(
        Arc::clone(&drivers.secret),
        cx.clone(),
        &revision.snapshot,
        &read.secrets,
    );
    Ok(RevisionContext {
        namespace: namespace.namespace.clone(),
        target: revision_ref(agent, head),
        revision: revision.clone(),
        plan,
        secrets: Arc::new(secrets),
        workspace_setup: read.setup.clone(),
    })
}

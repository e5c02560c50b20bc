//! Whether what a version authenticates with is still what it froze (spec/engine 5.1, checks 8 and 11). Metadata only.

use super::{refusal::Refusal, revision::Facts};
use crate::{
    admission::source,
    reason::Failure,
    resource::{Snapshot, SourceState},
};

/// Check 8: the service account still has the token that was frozen, of the driver and the Backend that were.
pub(super) fn account(facts: &Facts<'_>, snapshot: &Snapshot) -> Result<(), Refusal> {
    let auth = &snapshot.harness_auth;
    let (Some(frozen), Some(_)) = (&auth.account, source::account_of(Some(&auth.binding))) else {
        return Ok(());
    };
    let account = facts.pass.read.account.as_ref();
    let account = account.filter(|account| !account.deleting);
    let account = account.ok_or(Refusal::of(Failure::HarnessAuthSourceUnavailable))?;
    let token = auth.secret.as_ref().map(|secret| secret.id);
    match account.issued() {
        None => Err(Refusal::of(Failure::HarnessAuthSourceUnavailable)),
        Some((secret, _)) if Some(secret) != token => Err(Refusal::of(Failure::HarnessAuthSourceChanged)),
        Some((_, binding)) if binding != frozen || !facts.pass.compute.account_issuer => {
            Err(Refusal::of(Failure::ServiceAccountBackendMismatch))
        }
        Some(_) => Ok(()),
    }
}

/// Check 11: what was frozen must still be there, and the selected driver's. Metadata only; no value is read.
pub(super) fn frozen(facts: &Facts<'_>, snapshot: &Snapshot) -> Result<(), Refusal> {
    let harness = snapshot.harness_auth.secret.iter().map(|secret| {
        (
            secret,
            Failure::HarnessAuthSourceUnavailable,
            Failure::HarnessAuthSourceChanged,
        )
    });
    let bindings = snapshot.secret_bindings.values().map(|secret| {
        (
            secret,
            Failure::SecretBindingUnavailable,
            Failure::SecretBindingUnavailable,
        )
    });
    for (frozen, missing, changed) in harness.chain(bindings) {
        let row = facts
            .pass
            .read
            .secrets
            .iter()
            .find(|row| row.id == frozen.id)
            .ok_or(Refusal::of(missing))?;
        let selected = &facts.pass.compute.secret_driver;
        if &frozen.secret_driver_id != selected || &row.driver_id != selected {
            return Err(Refusal::of(Failure::SecretDriverMismatch));
        }
        if row.backend_ref != frozen.backend_ref {
            return Err(Refusal::of(changed));
        }
    }
    credential_sources(facts, snapshot)
}

/// Every source that was not withdrawn is still the frozen gateway's, and usable.
fn credential_sources(facts: &Facts<'_>, snapshot: &Snapshot) -> Result<(), Refusal> {
    let harness = snapshot.harness_auth.binding.credential_source();
    let mediated = snapshot.harness_auth.source.iter().chain(&snapshot.credential_sources);
    for frozen in mediated {
        let gateway = &frozen.credential_gateway_id;
        if facts.pass.compute.credential_gateway.as_ref() != Some(gateway) {
            return Err(Refusal::of(Failure::CredentialGatewayMismatch));
        }
        let mut rows = facts.pass.read.sources.iter();
        let row = rows.find(|row| row.id == frozen.source_id && row.gateway_id == *gateway);
        let row = row.ok_or(Refusal::of(Failure::CredentialSourceUnavailable))?;
        if row.withdrawal(facts.revision.id).is_some() {
            if harness == Some(row.id) {
                return Err(Refusal::of(Failure::CredentialWithdrawn));
            }
        } else if row.state != SourceState::Ready {
            return Err(Refusal::of(Failure::CredentialSourceUnavailable));
        }
    }
    Ok(())
}

//! The audit, for administrators: what is recorded, and whether it is as it was sealed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Caller, ControlPlane, operation::Scope};
use crate::{
    audit::{
        chain::{self, AuditQuery, AuditRecord, Seal},
        sealing::BATCH,
    },
    driver::{Action, ResourceRef},
    id::InstallationId,
    store::StoreResult,
};

/// Whether the audit is as it was sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditVerification {
    /// Whether every record is there and is as it was sealed.
    pub intact: bool,
    /// How many records were checked.
    pub records: u64,
    /// Where the chain was followed from: so many older records were removed by retention.
    pub pruned: u64,
    /// The last hash of the chain. Kept elsewhere, it also tells whether the end of the audit was cut off later.
    pub head: String,
    /// The first place of the chain at which it does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_at: Option<u64>,
}

impl ControlPlane {
    /// Recorded events, the newest first. Needs `installation:administer`.
    pub async fn audit_records(&self, caller: &Caller, query: &AuditQuery) -> Answer<Vec<AuditRecord>> {
        let op = self.operation(caller, "openclaw.audit.read", Scope::Installation);
        op.answer(async {
            let installation = ResourceRef::installation(self.known_installation().await?.id);
            op.require(Action::Administer, installation).await?;
            Ok(self.store.audit_records(query).await?)
        })
        .await
    }

    /// Seals what has no seal yet, then follows the chain from its anchor, or from its beginning while nothing was pruned. Needs `installation:administer`.
    pub async fn verify_audit(&self, caller: &Caller) -> Answer<AuditVerification> {
        let op = self.operation(caller, "openclaw.audit.verify", Scope::Installation);
        op.answer(async {
            let installation = self.known_installation().await?.id;
            op.require(Action::Administer, ResourceRef::installation(installation))
                .await?;
            while self.store.seal_audit(BATCH).await? == BATCH {}
            let mut anchor = self.store.audit_anchor().await?;
            loop {
                let found = self.follow(installation, anchor.as_ref()).await?;
                let now = self.store.audit_anchor().await?;
                // What a pruning removed meanwhile is not missing.
                if found.intact || now == anchor {
                    return Ok(found);
                }
                anchor = now;
            }
        })
        .await
    }

    /// Follows the chain from its anchor, or from its beginning.
    async fn follow(&self, installation: InstallationId, anchor: Option<&Seal>) -> StoreResult<AuditVerification> {
        let pruned = anchor.map_or(0, |seal| seal.position);
        let mut head = anchor.map_or_else(|| chain::root(installation), |seal| seal.hash.clone());
        let mut position = pruned;
        loop {
            let records = self.store.sealed_audit(position, BATCH).await?;
            if records.is_empty() {
                return Ok(AuditVerification {
                    intact: true,
                    records: position - pruned,
                    pruned,
                    head,
                    broken_at: None,
                });
            }
            for record in records {
                position += 1;
                let expected = chain::link(&head, position, record.occurred_at, &record.event);
                if record
                    .seal
                    .is_none_or(|seal| seal.position != position || seal.hash != expected)
                {
                    return Ok(AuditVerification {
                        intact: false,
                        records: position - 1 - pruned,
                        pruned,
                        head,
                        broken_at: Some(position),
                    });
                }
                head = expected;
            }
        }
    }
}

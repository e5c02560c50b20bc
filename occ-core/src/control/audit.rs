//! The audit, for administrators: what is recorded, and whether it is as it was sealed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Caller, ControlPlane, operation::Scope};
use crate::{
    audit::{
        chain::{self, AuditQuery, AuditRecord},
        sealing::BATCH,
    },
    driver::{Action, ResourceRef},
};

/// Whether the audit is as it was sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditVerification {
    /// Whether every record is there and is as it was sealed.
    pub intact: bool,
    /// How many records were checked.
    pub records: u64,
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

    /// Seals what has no seal yet, then follows the chain from its beginning. Needs `installation:administer`.
    pub async fn verify_audit(&self, caller: &Caller) -> Answer<AuditVerification> {
        let op = self.operation(caller, "openclaw.audit.verify", Scope::Installation);
        op.answer(async {
            let installation = self.known_installation().await?.id;
            op.require(Action::Administer, ResourceRef::installation(installation))
                .await?;
            while self.store.seal_audit(BATCH).await? == BATCH {}
            let mut head = chain::root(installation);
            let mut position = 0;
            loop {
                let records = self.store.sealed_audit(position, BATCH).await?;
                if records.is_empty() {
                    return Ok(AuditVerification {
                        intact: true,
                        records: position,
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
                            records: position - 1,
                            head,
                            broken_at: Some(position),
                        });
                    }
                    head = expected;
                }
            }
        })
        .await
    }
}

//! The chain over the audit (docs/adr/0009).
#![cfg(feature = "engine")]

use occ_core::{
    audit::{AuditEvent, chain::link},
    driver::ResourceRef,
    id::InstallationId,
    time::Timestamp,
};
use serde_json::json;

#[test]
fn a_seal_depends_on_the_details_and_not_on_their_order() {
    let resource = ResourceRef::installation(InstallationId::random());
    let event = AuditEvent::mutation("host".parse().unwrap(), "openclaw.audit.prune", resource);
    let sealed = |event: &AuditEvent| link("root", 1, Timestamp::from_millis(7), event);
    let one = event
        .clone()
        .with("count", 1)
        .with("age", json!({ "days": 1, "hours": 2 }));
    let other = event
        .clone()
        .with("age", json!({ "hours": 2, "days": 1 }))
        .with("count", 1);
    assert_eq!(sealed(&one), sealed(&other));
    assert_ne!(sealed(&one), sealed(&event.with("count", 2)));
}

//! What the driver reads, and what it answers when it cannot.

use std::sync::atomic::Ordering;

use occ_core::driver::{
    AccessRequest, Action, EffectError, Fault, FaultKind, IdentityKind, OperationContext, ResourceRef,
};
use serde_json::json;

use crate::rig::{Rig, build, principal};

#[tokio::test]
async fn it_is_linked_and_signs_its_decisions() {
    let rig = Rig::new();
    assert_eq!(rig.driver.identity().implementation, "occ/native-iam");
    assert_eq!(rig.read_agent().await.driver_id, "iam-native");
    assert!(build("x", json!({ "admin": "hunter2" }), rig.policy).is_err());
}

#[tokio::test]
async fn a_policy_that_cannot_be_read_is_an_error_and_not_an_answer() {
    let rig = Rig::new();
    *rig.policy.away.lock().expect("no panic") = true;
    let cx = OperationContext::default();
    let away = Err(EffectError::from(Fault::new("read the policy", FaultKind::Unavailable)));
    let resource = ResourceRef::agent(rig.namespace, rig.agent);
    let request = AccessRequest {
        principal: principal("ada"),
        action: Action::Read,
        resource,
    };
    assert_eq!(rig.driver.authorize(&cx, &request).await.map(drop), away);
    assert_eq!(rig.driver.authorize_all(&cx, &[request]).await.map(drop), away);
    assert_eq!(rig.driver.lookup(&cx, &principal("ada")).await.map(drop), away);
}

#[tokio::test]
async fn a_change_of_policy_counts_at_once() {
    let rig = Rig::new();
    assert!(rig.allowed().await);
    rig.change(|grants| grants.bindings.clear());
    assert!(!rig.allowed().await);
}

#[tokio::test]
async fn several_questions_are_answered_in_order_from_one_reading() {
    let rig = Rig::new();
    let ask = |action| AccessRequest {
        principal: principal("ada"),
        action,
        resource: ResourceRef::agent(rig.namespace, rig.agent),
    };
    let requests = [Action::Read, Action::Update, Action::Read].map(ask);
    let before = rig.policy.reads.load(Ordering::Relaxed);
    let decisions = rig
        .driver
        .authorize_all(&OperationContext::default(), &requests)
        .await
        .expect("answers");
    assert_eq!(
        decisions.iter().map(|d| d.allowed).collect::<Vec<_>>(),
        [true, false, true]
    );
    assert_eq!(rig.policy.reads.load(Ordering::Relaxed) - before, 1);
}

#[tokio::test]
async fn lookup_returns_the_identity_and_never_another() {
    let rig = Rig::new();
    let cx = OperationContext::default();
    let found = rig
        .driver
        .lookup(&cx, &principal("ada"))
        .await
        .expect("an answer")
        .expect("found");
    assert_eq!((found.id, found.kind), (principal("ada"), IdentityKind::Human));
    assert_eq!(rig.driver.lookup(&cx, &principal("eve")).await, Ok(None));
}

#[tokio::test]
async fn what_the_operation_has_read_is_not_read_again_and_says_nothing_of_others() {
    let rig = Rig::new();
    let read = rig.policy.grants.lock().expect("no panic").clone();
    let cx = OperationContext::default().with_grants([(principal("ada"), read)]);
    *rig.policy.away.lock().expect("no panic") = true;
    let ask = |who| AccessRequest {
        principal: principal(who),
        action: Action::Read,
        resource: ResourceRef::agent(rig.namespace, rig.agent),
    };
    assert!(rig.driver.authorize(&cx, &ask("ada")).await.expect("an answer").allowed);
    assert_eq!(rig.policy.reads.load(Ordering::Relaxed), 0);
    assert!(rig.driver.authorize_all(&cx, &[ask("ada"), ask("eve")]).await.is_err());
}

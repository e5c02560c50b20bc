//! The first set-up, and keys.

use std::sync::Arc;

use occ_core::{
    audit::{AuditKind, AuditOutcome},
    control::{Bootstrap, Caller, ControlPlane, CreateNamespace, CreateServiceKey, Credential},
    driver::{Action, ResourceKind},
    id::RequestId,
    reason::ApiCode,
    store::Store as _,
    work::Target,
};
use occ_test_support::drivers::{NullCompute, PlainHarness, World, drivers};

use crate::people::person;

fn bootstrap() -> Bootstrap {
    Bootstrap {
        name: "again".parse().unwrap(),
        administrator: "Eve".parse().unwrap(),
    }
}

#[tokio::test]
async fn an_installation_is_set_up_once() {
    let world = World::new().await;
    let set_up = world.store.take_audit();
    assert_eq!(
        set_up.iter().filter(|event| event.kind == AuditKind::Bootstrap).count(),
        1
    );
    assert_eq!(
        world.plane.bootstrap(bootstrap()).await.unwrap_err().code(),
        ApiCode::InstallationExists
    );
    assert_eq!(
        world.plane.namespaces(&world.admin).await.unwrap().len(),
        1,
        "nothing of the second set-up stays"
    );
    let read = world.plane.installation(&world.admin).await.unwrap();
    assert_eq!(read.installation.name.as_str(), "test");
    let shown = serde_json::to_value(&read).unwrap();
    assert!(
        shown.get("capabilities").is_none(),
        "no driver offers anything: {shown}"
    );
    let work = Target::NamespaceReady {
        namespace: world.namespace,
    };
    assert!(
        world.store.work_state(&work.key()).await.unwrap().is_some(),
        "the first Namespace is being provisioned"
    );
}

#[tokio::test]
async fn before_the_set_up_nobody_is_anybody() {
    let store = occ_core::store::sqlite::SqliteStore::open_in_memory().await.unwrap();
    let plane = ControlPlane::new(
        Arc::new(store),
        Arc::new(drivers(NullCompute::default(), PlainHarness::default(), None)),
    );
    let caller = Caller::new("prn_nobody".parse().unwrap());
    assert_eq!(
        plane.installation(&caller).await.unwrap_err().code(),
        ApiCode::DependencyUnavailable
    );
    let request = RequestId::random();
    let key = "occ_123e4567-e89b-42d3-a456-426614174000_00";
    assert_eq!(
        plane.authenticate(key, request).await.unwrap_err().code(),
        ApiCode::Unauthenticated
    );
}

#[tokio::test]
async fn every_bad_key_reads_the_same() {
    let world = World::new().await;
    let input = CreateServiceKey {
        principal_id: world.admin.principal.clone(),
        name: "ci".parse().unwrap(),
        namespace_id: None,
        expires_in: None,
    };
    let issued = world.plane.create_service_key(&world.admin, input).await.unwrap();
    let key = issued.value.expose_str().unwrap().to_owned();
    let request = RequestId::random();
    let caller = world.plane.authenticate(&key, request).await.unwrap();
    assert_eq!(
        (caller.principal, caller.credential, caller.request),
        (world.admin.principal.clone(), Credential::Key(issued.key.id), request)
    );
    assert!(
        !format!("{issued:?}").contains(&key[41..]),
        "a debug print shows no key"
    );

    let (named, secret) = key.rsplit_once('_').unwrap();
    let mut wrong = secret.to_owned();
    wrong.replace_range(0..1, if secret.starts_with('0') { "1" } else { "0" });
    let other = occ_core::id::ServiceKeyId::random().uuid();
    for bad in [
        String::new(),
        "occ_".to_owned(),
        key.to_uppercase(),
        format!("{key} "),
        format!("{named}_{wrong}"),
        format!("{named}_"),
        format!("occ_{other}_{secret}"),
        secret.to_owned(),
    ] {
        let refusal = world.plane.authenticate(&bad, RequestId::random()).await.unwrap_err();
        assert_eq!(
            (refusal.code(), refusal.details().len()),
            (ApiCode::Unauthenticated, 0),
            "{bad}"
        );
        assert_eq!(refusal.message(), ApiCode::Unauthenticated.message(), "{bad}");
    }
    world
        .plane
        .revoke_service_key(&world.admin, issued.key.id)
        .await
        .unwrap();
    let refusal = world.plane.authenticate(&key, RequestId::random()).await.unwrap_err();
    assert_eq!(
        (refusal.code(), refusal.message()),
        (ApiCode::Unauthenticated, ApiCode::Unauthenticated.message())
    );
}

#[tokio::test]
async fn keys_are_for_people_and_last_a_day_to_a_year() {
    let world = World::new().await;
    let agent = world.deployable("triage").await;
    let input = |principal_id, expires_in| CreateServiceKey {
        principal_id,
        name: "ci".parse().unwrap(),
        namespace_id: None,
        expires_in,
    };
    for expires_in in [0, 86_399, 31_536_001] {
        let input = input(world.admin.principal.clone(), Some(expires_in));
        let refusal = world.plane.create_service_key(&world.admin, input).await.unwrap_err();
        assert_eq!(refusal.details()[0].path, "/expiresIn");
    }
    let refusal = world
        .plane
        .create_service_key(&world.admin, input(agent.service_principal_id, None))
        .await
        .unwrap_err();
    assert_eq!(
        (refusal.code(), refusal.details()[0].path.as_str()),
        (ApiCode::InvalidRequest, "/principalId")
    );
    let nobody = input("prn_nobody".parse().unwrap(), None);
    assert_eq!(
        world
            .plane
            .create_service_key(&world.admin, nobody)
            .await
            .unwrap_err()
            .code(),
        ApiCode::NotFound
    );
    let bob = person(&world, &[(Action::Read, ResourceKind::Namespace)]).await;
    let own = input(bob.principal.clone(), None);
    assert_eq!(
        world.plane.create_service_key(&bob, own).await.unwrap_err().code(),
        ApiCode::Forbidden
    );
}

#[tokio::test]
async fn a_key_of_one_namespace_opens_no_other_door() {
    let world = World::new().await;
    let other = CreateNamespace {
        name: "other".parse().unwrap(),
        existing_namespace: None,
    };
    let other = world.plane.create_namespace(&world.admin, other).await.unwrap().id;
    let scoped = Caller {
        namespace: Some(world.namespace),
        ..world.admin.clone()
    };
    world.store.take_audit();

    assert_eq!(
        world.plane.namespace(&scoped, world.namespace).await.unwrap().id,
        world.namespace
    );
    assert_eq!(world.plane.namespaces(&scoped).await.unwrap().len(), 1);
    assert_eq!(
        world.plane.namespace(&scoped, other).await.unwrap_err().code(),
        ApiCode::Forbidden
    );
    assert_eq!(
        world.plane.installation(&scoped).await.unwrap_err().code(),
        ApiCode::Forbidden
    );
    let input = CreateNamespace {
        name: "third".parse().unwrap(),
        existing_namespace: None,
    };
    assert_eq!(
        world.plane.create_namespace(&scoped, input).await.unwrap_err().code(),
        ApiCode::Forbidden
    );

    let denials = world.store.take_audit();
    assert_eq!(denials.len(), 3);
    for denial in denials {
        assert_eq!(
            (denial.kind, denial.outcome),
            (AuditKind::AuthorizationDenial, AuditOutcome::Denied)
        );
        assert_eq!(denial.reason_code.as_deref(), Some("SERVICE_KEY_SCOPE"));
        assert_eq!(denial.request_id, Some(scoped.request));
        let Credential::Key(key) = scoped.credential else {
            panic!("the administrator came with a key");
        };
        assert_eq!(denial.details["serviceKeyId"], key.to_string());
    }
}

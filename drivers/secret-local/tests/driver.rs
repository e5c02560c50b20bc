//! What the contract asks of a Secret Driver (spec/contracts 9), through its public interface.

mod rig;

use std::sync::Arc;

use occ_core::{
    driver::{DriverKind, EffectError, FaultKind, SecretDriver, capabilities},
    iam::NoPolicy,
    id::NamespaceId,
    registry::{BuildError, Built, HostServices, Registry},
    resource::BackendRef,
    secret_value::SecretValue,
};
use rig::{Rig, fault, secret, text};
use serde_json::{Value, json};

fn build(settings: Value, rig: &Rig) -> Result<Arc<dyn SecretDriver>, BuildError> {
    let host = HostServices::new(rig.data.path().to_owned(), Arc::new(NoPolicy));
    let registry = Registry::linked().expect("one driver is linked");
    let registration = registry
        .find(DriverKind::Secret, "local")
        .expect("the driver is linked");
    match (registration.build)("secret-local", settings, &host)? {
        Built::Secret(driver) => Ok(driver),
        _ => panic!("another kind"),
    }
}

#[test]
fn it_is_linked_with_closed_settings_and_can_compare_and_swap() {
    let rig = Rig::new();
    let driver = build(json!({}), &rig).expect("it builds");
    assert_eq!(driver.identity().implementation, "occ/local-secret");
    assert_eq!(
        capabilities(&*driver).iter().map(|c| c.as_str()).collect::<Vec<_>>(),
        ["compare_and_swap"]
    );
    for (settings, path) in [
        (json!({ "key": "hunter2" }), "key"),
        (json!({ "keyFile": "hunter2" }), "/keyFile"),
        (json!({ "keyFile": 4711 }), "/keyFile"),
        (json!({ "keyFile": "/" }), "/keyFile"),
    ] {
        let error = build(settings, &rig).err().expect("refused").to_string();
        assert!(
            error.contains(path) && !error.contains("hunter2") && !error.contains("4711"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_value_comes_back_and_its_reference_says_nothing_of_it() {
    let rig = Rig::new();
    let driver = rig.driver();
    let at = rig.create(&driver, "s3cret-canary").await.expect("created");
    let BackendRef {
        namespace_name,
        name,
        key,
        uid,
    } = at.clone();
    assert_eq!(
        (namespace_name.as_str(), name, key.as_str()),
        ("local", rig.secret.id.to_string(), "value")
    );
    assert!(!uid.is_empty());
    assert_eq!(rig.value(&driver, &at).await.as_deref(), Ok("s3cret-canary"));
    assert_eq!(driver.resolve(&rig.context(), &rig.secret, &at).await, Ok(at));
}

#[tokio::test]
async fn no_value_is_in_clear_in_records_or_debug_output() {
    let rig = Rig::new();
    let driver = rig.driver();
    let cx = rig.context();
    let at = driver
        .create(&cx, &rig.secret, &text("s3cret-canary"))
        .await
        .expect("staged");
    let staged = cx.state().take_staged();
    let shown = format!("{driver:?} {cx:?} {staged:?} {at:?}");
    rig.store.commit(staged).expect("committed");
    let key_file = std::fs::read_to_string(rig.key_file()).expect("made");
    let key = key_file
        .split("\"key\":\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a key");
    for place in [shown, rig.record(), format!("{:?}", rig.store)] {
        assert!(!place.contains("s3cret") && !place.contains(key), "{place}");
    }
    // Nor in the usual other spellings.
    for spelled in ["czNjcmV0LWNhbmFyeQ", "7333637265742d63616e617279"] {
        assert!(!rig.record().contains(spelled));
    }
}

#[tokio::test]
async fn a_repeated_create_adopts_its_own_object_only() {
    let rig = Rig::new();
    let driver = rig.driver();
    let at = rig.create(&driver, "one").await.expect("created");
    assert_eq!(rig.create(&driver, "one").await, Ok(at.clone()));
    assert_eq!(fault(rig.create(&driver, "two").await), FaultKind::Conflict);
    assert_eq!(rig.value(&driver, &at).await.as_deref(), Ok("one"));
}

#[tokio::test]
async fn an_update_replaces_the_value_and_keeps_the_object() {
    let rig = Rig::new();
    let driver = rig.driver();
    let at = rig.create(&driver, "one").await.expect("created");
    let before = rig.record();
    for _ in 0..2 {
        rig.update(&driver, &at, "two").await.expect("updated");
        assert_eq!(rig.value(&driver, &at).await.as_deref(), Ok("two"));
    }
    rig.update(&driver, &at, "one").await.expect("updated");
    assert_ne!(rig.record(), before, "a nonce was used twice");
}

#[tokio::test]
async fn deletion_may_be_repeated_and_what_is_created_anew_is_another_object() {
    let rig = Rig::new();
    let driver = rig.driver();
    let old = rig.create(&driver, "one").await.expect("created");
    for _ in 0..2 {
        rig.delete(&driver, &old).await.expect("deleted");
    }
    assert!(rig.store.dump().is_empty());
    let new = rig.create(&driver, "two").await.expect("created");
    assert_ne!(new.uid, old.uid);
    let cx = rig.context();
    assert_eq!(rig.value(&driver, &old).await, Err(EffectError::Ownership));
    assert_eq!(
        driver.resolve(&cx, &rig.secret, &old).await,
        Err(EffectError::Ownership)
    );
    assert_eq!(rig.update(&driver, &old, "three").await, Err(EffectError::Ownership));
    assert_eq!(rig.delete(&driver, &old).await, Err(EffectError::Ownership));
    assert_eq!(
        rig.swap(&driver, &old, "two", "three").await,
        Err(EffectError::Ownership)
    );
    assert_eq!(rig.value(&driver, &new).await.as_deref(), Ok("two"));
}

#[tokio::test]
async fn every_part_of_a_reference_counts() {
    let rig = Rig::new();
    let driver = rig.driver();
    let at = rig.create(&driver, "one").await.expect("created");
    for wrong in [
        BackendRef {
            namespace_name: "other".to_owned(),
            ..at.clone()
        },
        BackendRef {
            name: secret(rig.secret.namespace_id).id.to_string(),
            ..at.clone()
        },
        BackendRef {
            key: "other".to_owned(),
            ..at.clone()
        },
        BackendRef {
            uid: String::new(),
            ..at.clone()
        },
    ] {
        assert_eq!(
            rig.value(&driver, &wrong).await,
            Err(EffectError::Ownership),
            "{wrong:?}"
        );
    }
}

#[tokio::test]
async fn what_does_not_exist_is_missing() {
    let rig = Rig::new();
    let driver = rig.driver();
    let at = rig.create(&driver, "one").await.expect("created");
    rig.delete(&driver, &at).await.expect("deleted");
    assert_eq!(fault(rig.value(&driver, &at).await), FaultKind::Missing);
    assert_eq!(
        fault(driver.resolve(&rig.context(), &rig.secret, &at).await),
        FaultKind::Missing
    );
    assert_eq!(fault(rig.update(&driver, &at, "two").await), FaultKind::Missing);
    assert_eq!(fault(rig.swap(&driver, &at, "one", "two").await), FaultKind::Missing);
}

#[tokio::test]
async fn a_secret_of_another_namespace_is_refused() {
    let rig = Rig::new();
    let driver = rig.driver();
    let at = rig.create(&driver, "one").await.expect("created");
    let mut stranger = rig.secret.clone();
    stranger.namespace_id = NamespaceId::random();
    let cx = rig.context();
    assert_eq!(
        driver.value(&cx, &stranger, &at).await.map(drop),
        Err(EffectError::Ownership)
    );
    assert_eq!(driver.delete(&cx, &stranger, &at).await, Err(EffectError::Ownership));
    assert_eq!(
        driver.create(&cx, &stranger, &text("one")).await,
        Err(EffectError::Ownership)
    );
    assert_eq!(
        driver.update(&cx, &stranger, &at, &text("two")).await,
        Err(EffectError::Ownership)
    );
}

#[tokio::test]
async fn values_have_one_to_65536_bytes() {
    let rig = Rig::new();
    let driver = rig.driver();
    for length in [0, 65_537] {
        assert_eq!(
            fault(rig.create(&driver, &"x".repeat(length)).await),
            FaultKind::Denied,
            "{length}"
        );
    }
    assert!(rig.store.dump().is_empty());
    let at = rig.create(&driver, "x").await.expect("created");
    let longest = "x".repeat(65_536);
    rig.update(&driver, &at, &longest).await.expect("updated");
    assert_eq!(rig.value(&driver, &at).await, Ok(longest));
    for length in [0, 65_537] {
        let value = "x".repeat(length);
        assert_eq!(
            fault(rig.update(&driver, &at, &value).await),
            FaultKind::Denied,
            "{length}"
        );
        assert_eq!(
            fault(rig.swap(&driver, &at, &"x".repeat(65_536), &value).await),
            FaultKind::Denied,
            "{length}"
        );
    }
}

#[tokio::test]
async fn values_are_opaque_bytes() {
    let rig = Rig::new();
    let driver = rig.driver();
    let bytes: Vec<u8> = (0..=255).collect();
    let cx = rig.context();
    let at = driver
        .create(&cx, &rig.secret, &SecretValue::new(bytes.clone()))
        .await
        .expect("staged");
    let value = driver
        .value(&cx, &rig.secret, &at)
        .await
        .expect("an operation sees its own write");
    assert_eq!(value.expose(), bytes);
}

#[tokio::test]
async fn a_swap_happens_only_if_the_present_value_is_the_expected_one() {
    let rig = Rig::new();
    let driver = rig.driver();
    let at = rig.create(&driver, "one").await.expect("created");
    for wrong in ["", "on", "One", "one "] {
        assert_eq!(rig.swap(&driver, &at, wrong, "two").await, Ok(false), "{wrong:?}");
    }
    assert_eq!(rig.value(&driver, &at).await.as_deref(), Ok("one"));
    assert_eq!(rig.swap(&driver, &at, "one", "two").await, Ok(true));
    assert_eq!(rig.swap(&driver, &at, "one", "three").await, Ok(false));
    assert_eq!(rig.value(&driver, &at).await.as_deref(), Ok("two"));
}

#[tokio::test]
async fn of_two_swaps_of_one_value_one_is_committed() {
    let rig = Rig::new();
    let driver = rig.driver();
    let at = rig.create(&driver, "one").await.expect("created");
    let swap = driver.compare_and_swap().expect("it can");
    let (left, right) = (rig.context(), rig.context());
    assert_eq!(
        swap.swap(&left, &rig.secret, &at, &text("one"), &text("left")).await,
        Ok(true)
    );
    assert_eq!(
        swap.swap(&right, &rig.secret, &at, &text("one"), &text("right")).await,
        Ok(true)
    );
    rig.store
        .commit(right.state().take_staged())
        .expect("the first to commit wins");
    assert_eq!(fault(rig.store.commit(left.state().take_staged())), FaultKind::Conflict);
    assert_eq!(rig.value(&driver, &at).await.as_deref(), Ok("right"));
}

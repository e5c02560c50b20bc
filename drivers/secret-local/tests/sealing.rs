//! What sealed records withstand: copies, alterations, other instances, rotation, a lost key.

mod rig;

use occ_core::driver::{EffectError, FaultKind, SecretDriver as _};
use rig::{Rig, fault, secret};
use serde_json::{Value, json};

const OWNER: &str = "secret/secret-local";

#[tokio::test]
async fn a_record_that_is_copied_to_another_secret_does_not_open() {
    let rig = Rig::new();
    let driver = rig.driver();
    rig.create(&driver, "one").await.expect("created");
    let record = rig.record();
    let other = secret(rig.secret.namespace_id);
    let at = rig.create_for(&driver, &other, "two").await.expect("created");
    rig.plant(OWNER, &other, &record).await;
    assert_eq!(
        driver.value(&rig.context(), &other, &at).await.map(drop),
        Err(EffectError::Ownership)
    );
    assert_eq!(
        driver.delete(&rig.context(), &other, &at).await,
        Err(EffectError::Ownership)
    );
    // Nor when the copy claims to be the other Secret's own.
    let mut forged: Value = serde_json::from_str(&record).expect("JSON");
    forged["owner"]["secret"] = json!(other.id);
    forged["uid"] = json!(at.uid);
    rig.plant(OWNER, &other, &forged.to_string()).await;
    assert_eq!(
        fault(driver.value(&rig.context(), &other, &at).await),
        FaultKind::Corrupt
    );
    assert_eq!(
        fault(driver.resolve(&rig.context(), &other, &at).await),
        FaultKind::Corrupt
    );
}

#[tokio::test]
async fn an_altered_record_does_not_open() {
    let rig = Rig::new();
    let driver = rig.driver();
    let at = rig.create(&driver, "one").await.expect("created");
    let good = rig.record();
    let parsed: Value = serde_json::from_str(&good).expect("JSON");
    let flipped = |field: &str| {
        let text = parsed[field].as_str().expect("text");
        let other = if text.starts_with('A') { "B" } else { "A" };
        json!(format!("{other}{}", &text[1..]))
    };
    for (field, altered) in [
        ("value", flipped("value")),
        ("nonce", flipped("nonce")),
        ("value", json!("")),
        ("value", json!("not base64!")),
        ("nonce", json!("AAAA")),
        ("format", json!(2)),
        ("extra", json!(1)),
    ] {
        let mut record = parsed.clone();
        record[field] = altered;
        rig.plant(OWNER, &rig.secret, &record.to_string()).await;
        assert_eq!(fault(rig.value(&driver, &at).await), FaultKind::Corrupt, "{record}");
    }
    for cut in [0, 1, good.len() - 1] {
        rig.plant(OWNER, &rig.secret, &good[..cut]).await;
        assert_eq!(fault(rig.value(&driver, &at).await), FaultKind::Corrupt, "cut at {cut}");
    }
    rig.plant(OWNER, &rig.secret, &good).await;
    assert_eq!(rig.value(&driver, &at).await.as_deref(), Ok("one"));
}

#[tokio::test]
async fn another_driver_instance_has_nothing_of_it_even_with_the_same_keys() {
    let rig = Rig::new();
    let driver = rig.driver();
    let at = rig.create(&driver, "one").await.expect("created");
    let record = rig.record();
    let settings = occ_secret_local::Settings {
        key_file: Some(rig.key_file()),
    };
    let other = rig.build("other", settings).expect("it builds");
    assert_eq!(fault(rig.value(&other, &at).await), FaultKind::Missing);
    rig.plant("secret/other", &rig.secret, &record).await;
    assert_eq!(rig.value(&other, &at).await, Err(EffectError::Ownership));
    let mut forged: Value = serde_json::from_str(&record).expect("JSON");
    forged["owner"]["driver"] = json!("other");
    rig.plant("secret/other", &rig.secret, &forged.to_string()).await;
    assert_eq!(fault(rig.value(&other, &at).await), FaultKind::Corrupt);
}

#[tokio::test]
async fn keys_rotate_while_older_values_still_open() {
    let rig = Rig::new();
    let driver = rig.driver();
    let at = rig.create(&driver, "one").await.expect("created");
    let key_of = |record: String| serde_json::from_str::<Value>(&record).expect("JSON")["keyId"].clone();
    let first = key_of(rig.record());

    let second = driver.rotate().expect("rotated");
    assert_ne!(first, json!(second));
    // A driver of another process, started before the rotation or after it, sees it too.
    let other = rig.driver();
    assert_eq!(rig.value(&other, &at).await.as_deref(), Ok("one"));
    rig.update(&other, &at, "two").await.expect("updated");
    assert_eq!(key_of(rig.record()), json!(second));

    let third = driver.rotate().expect("rotated");
    assert_eq!(rig.swap(&driver, &at, "two", "three").await, Ok(true));
    assert_eq!(key_of(rig.record()), json!(third));
    // Now nothing needs the older keys.
    let mut file: Value = serde_json::from_slice(&std::fs::read(rig.key_file()).expect("read")).expect("JSON");
    let keys = file["keys"].as_array_mut().expect("keys");
    assert_eq!(keys.len(), 3);
    keys.drain(..2);
    std::fs::write(rig.key_file(), file.to_string()).expect("written");
    assert_eq!(rig.value(&driver, &at).await.as_deref(), Ok("three"));
}

#[tokio::test]
async fn without_its_key_a_value_is_refused_until_it_is_set_anew() {
    let rig = Rig::new();
    let at = rig.create(&rig.driver(), "one").await.expect("created");
    std::fs::remove_file(rig.key_file()).expect("lost");
    // Whoever gives the old key up says so.
    std::fs::remove_file(rig.key_file().with_file_name("keys.json.made")).expect("given up");
    let driver = rig.driver();
    driver.preflight(&rig.context()).await.expect("a new key file is made");
    assert_eq!(fault(rig.value(&driver, &at).await), FaultKind::Denied);
    assert_eq!(
        fault(driver.resolve(&rig.context(), &rig.secret, &at).await),
        FaultKind::Denied
    );
    assert_eq!(fault(rig.swap(&driver, &at, "one", "two").await), FaultKind::Denied);
    rig.update(&driver, &at, "two").await.expect("repaired");
    assert_eq!(rig.value(&driver, &at).await.as_deref(), Ok("two"));
    rig.delete(&driver, &at).await.expect("deleted");
}

#[tokio::test]
async fn nothing_is_sealed_with_a_key_that_is_no_longer_on_disk() {
    let rig = Rig::new();
    let driver = rig.driver();
    let at = rig.create(&driver, "one").await.expect("created");
    std::fs::remove_file(rig.key_file()).expect("lost");
    assert_eq!(fault(rig.update(&driver, &at, "two").await), FaultKind::Missing);
    assert_eq!(
        fault(rig.create_for(&driver, &secret(rig.secret.namespace_id), "two").await),
        FaultKind::Missing
    );
    assert_eq!(fault(rig.value(&driver, &at).await), FaultKind::Missing);
    assert!(driver.rotate().is_err());
    assert!(!rig.key_file().exists(), "a file that sealed values was made anew");
}

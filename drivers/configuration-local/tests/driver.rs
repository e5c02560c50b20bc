//! What the contract asks of a Configuration Driver, through its public interface.

use std::sync::Arc;

use occ_configuration_local::ConfigurationLocal;
use occ_core::{
    driver::{
        ConfigurationDriver, DriverKind, DriverState, EffectError, Fault, FaultKind, MemoryState, OperationContext,
    },
    iam::NoPolicy,
    id::{ConfigurationId, NamespaceId},
    registry::{BuildError, Built, DriverFactory as _, HostServices, Registry},
    resource::Document,
    time::SystemClock,
};
use proptest::prelude::*;
use serde_json::{Value, json};

struct Rig {
    store: MemoryState,
    namespace: NamespaceId,
    id: ConfigurationId,
}

fn rig() -> Rig {
    Rig {
        store: MemoryState::default(),
        namespace: NamespaceId::random(),
        id: ConfigurationId::random(),
    }
}

impl Rig {
    fn context(&self) -> OperationContext {
        OperationContext::new(Arc::new(SystemClock), DriverState::new(Arc::new(self.store.clone())))
    }

    async fn create(&self, driver: &dyn ConfigurationDriver, document: &Document) -> Result<(), EffectError> {
        let cx = self.context();
        driver.create(&cx, self.namespace, self.id, document).await?;
        self.store.commit(cx.state().take_staged())
    }

    async fn update(&self, driver: &dyn ConfigurationDriver, at: u64, document: &Document) -> Result<(), EffectError> {
        let cx = self.context();
        driver.update(&cx, self.namespace, self.id, at, document).await?;
        self.store.commit(cx.state().take_staged())
    }

    async fn delete(&self, driver: &dyn ConfigurationDriver) -> Result<(), EffectError> {
        let cx = self.context();
        driver.delete(&cx, self.namespace, self.id).await?;
        self.store.commit(cx.state().take_staged())
    }

    async fn read(&self, driver: &dyn ConfigurationDriver) -> Result<Option<(u64, Document)>, EffectError> {
        driver.read(&self.context(), self.namespace, self.id).await
    }
}

fn build(id: &str, settings: Value) -> Result<Arc<dyn ConfigurationDriver>, BuildError> {
    let host = HostServices::new(std::env::temp_dir(), Arc::new(NoPolicy));
    let registry = Registry::linked().expect("one driver is linked");
    let registration = registry
        .find(DriverKind::Configuration, "local")
        .expect("the driver is linked");
    assert_eq!(registration.implementation, "occ/local-configuration");
    match (registration.build)(id, settings, &host)? {
        Built::Configuration(driver) => Ok(driver),
        _ => panic!("another kind"),
    }
}

fn driver() -> Arc<dyn ConfigurationDriver> {
    build("configuration-local", json!({})).expect("it builds")
}

fn document(text: &str) -> Document {
    [("text".to_owned(), json!(text))].into_iter().collect()
}

fn kind(result: Result<(), EffectError>) -> FaultKind {
    match result {
        Err(EffectError::Fault(Fault { kind, .. })) => kind,
        other => panic!("expected a fault, got {other:?}"),
    }
}

#[test]
fn it_is_linked_and_its_settings_are_closed() {
    let driver = driver();
    assert_eq!(driver.identity().id, "configuration-local");
    assert_eq!(driver.identity().implementation, ConfigurationLocal::IMPLEMENTATION);
    let refusal = build("x", json!({ "path": "/hunter2" }))
        .err()
        .expect("an unknown setting is refused")
        .to_string();
    assert!(
        refusal.contains("unknown setting") && !refusal.contains("hunter2"),
        "{refusal}"
    );
}

#[tokio::test]
async fn generations_start_at_one_and_grow_by_one() {
    let (rig, driver) = (rig(), driver());
    assert_eq!(rig.read(&*driver).await, Ok(None));
    rig.create(&*driver, &document("a")).await.expect("created");
    assert_eq!(rig.read(&*driver).await, Ok(Some((1, document("a")))));
    rig.update(&*driver, 1, &document("b")).await.expect("updated");
    assert_eq!(rig.read(&*driver).await, Ok(Some((2, document("b")))));
}

#[tokio::test]
async fn a_stale_generation_is_a_conflict_and_changes_nothing() {
    let (rig, driver) = (rig(), driver());
    rig.create(&*driver, &document("a")).await.expect("created");
    rig.update(&*driver, 1, &document("b")).await.expect("updated");
    for stale in [0, 1, 3, u64::MAX] {
        assert_eq!(
            kind(rig.update(&*driver, stale, &document("c")).await),
            FaultKind::Conflict,
            "{stale}"
        );
    }
    assert_eq!(rig.read(&*driver).await, Ok(Some((2, document("b")))));
}

#[tokio::test]
async fn of_two_updates_of_one_generation_one_wins() {
    let (rig, driver) = (rig(), driver());
    rig.create(&*driver, &document("a")).await.expect("created");
    let (left, right) = (rig.context(), rig.context());
    driver
        .update(&left, rig.namespace, rig.id, 1, &document("left"))
        .await
        .expect("staged");
    driver
        .update(&right, rig.namespace, rig.id, 1, &document("right"))
        .await
        .expect("staged");
    rig.store
        .commit(right.state().take_staged())
        .expect("the first to commit wins");
    assert_eq!(kind(rig.store.commit(left.state().take_staged())), FaultKind::Conflict);
    assert_eq!(rig.read(&*driver).await, Ok(Some((2, document("right")))));
}

#[tokio::test]
async fn a_repeated_call_reports_that_it_is_done() {
    let (rig, driver) = (rig(), driver());
    for _ in 0..2 {
        rig.create(&*driver, &document("a")).await.expect("created");
    }
    for _ in 0..2 {
        rig.update(&*driver, 1, &document("b")).await.expect("updated");
    }
    assert_eq!(rig.read(&*driver).await, Ok(Some((2, document("b")))));
    for _ in 0..2 {
        rig.delete(&*driver).await.expect("deleted");
    }
    assert_eq!(rig.read(&*driver).await, Ok(None));
}

#[tokio::test]
async fn another_document_under_the_same_id_is_not_replaced_by_create() {
    let (rig, driver) = (rig(), driver());
    rig.create(&*driver, &document("a")).await.expect("created");
    assert_eq!(kind(rig.create(&*driver, &document("b")).await), FaultKind::Conflict);
    rig.update(&*driver, 1, &document("b")).await.expect("updated");
    assert_eq!(kind(rig.create(&*driver, &document("b")).await), FaultKind::Conflict);
}

#[tokio::test]
async fn an_update_of_nothing_is_missing() {
    let (rig, driver) = (rig(), driver());
    assert_eq!(kind(rig.update(&*driver, 1, &document("a")).await), FaultKind::Missing);
}

#[tokio::test]
async fn another_namespace_neither_reads_nor_changes_a_document() {
    let (rig, driver) = (rig(), driver());
    rig.create(&*driver, &document("a")).await.expect("created");
    let stranger = Rig {
        namespace: NamespaceId::random(),
        store: rig.store.clone(),
        id: rig.id,
    };
    assert_eq!(stranger.read(&*driver).await, Err(EffectError::Ownership));
    assert_eq!(
        stranger.create(&*driver, &document("a")).await,
        Err(EffectError::Ownership)
    );
    assert_eq!(
        stranger.update(&*driver, 1, &document("b")).await,
        Err(EffectError::Ownership)
    );
    assert_eq!(stranger.delete(&*driver).await, Err(EffectError::Ownership));
    assert_eq!(rig.read(&*driver).await, Ok(Some((1, document("a")))));
}

#[tokio::test]
async fn another_instance_has_documents_of_its_own() {
    let (rig, driver) = (rig(), driver());
    rig.create(&*driver, &document("a")).await.expect("created");
    let other = build("other", json!({})).expect("it builds");
    assert_eq!(rig.read(&*other).await, Ok(None));
}

#[tokio::test]
async fn nothing_is_durable_before_the_commit_but_the_operation_sees_its_own_write() {
    let (rig, driver) = (rig(), driver());
    let cx = rig.context();
    driver
        .create(&cx, rig.namespace, rig.id, &document("a"))
        .await
        .expect("staged");
    assert_eq!(
        driver.read(&cx, rig.namespace, rig.id).await,
        Ok(Some((1, document("a"))))
    );
    assert_eq!(rig.read(&*driver).await, Ok(None));
}

#[tokio::test]
async fn a_record_of_an_unknown_form_is_corrupt() {
    let (rig, driver) = (rig(), driver());
    rig.create(&*driver, &document("a")).await.expect("created");
    let [(owner, key, bytes)] = rig.store.dump().try_into().expect("one record");
    assert_eq!(
        (owner.as_str(), key),
        ("configuration/configuration-local", rig.id.to_string())
    );
    let newer = String::from_utf8(bytes.clone())
        .expect("JSON")
        .replace("\"format\":1", "\"format\":2");
    for (version, damage) in (1..).zip([newer.into_bytes(), bytes[1..].to_vec(), Vec::new()]) {
        let cx = rig.context();
        cx.state()
            .put(&owner, &rig.id.to_string(), Some(version), damage)
            .expect("staged");
        rig.store.commit(cx.state().take_staged()).expect("committed");
        assert_eq!(kind(rig.read(&*driver).await.map(drop)), FaultKind::Corrupt);
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has finite numbers only", |n| n.is_finite())
            .prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(".*", inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn a_document_reads_back_as_it_was_written(
        document in prop::collection::hash_map(".*", json_value(), 0..6)
    ) {
        let document: Document = document.into_iter().collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (rig, driver) = (rig(), driver());
            rig.create(&*driver, &document).await.expect("created");
            prop_assert_eq!(rig.read(&*driver).await, Ok(Some((1, document))));
            Ok(())
        })?;
    }
}

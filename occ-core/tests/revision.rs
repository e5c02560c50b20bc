//! A revision's bytes and their digest (seed: Agent revisions).
#![cfg(feature = "engine")]

use occ_core::{
    id::{AgentId, ConfigurationId, NamespaceId, RevisionId},
    resource::{
        AgentRevision, ComputeIdentity, ConfigurationKind, Document, ExecutionMode, HarnessAuth, HarnessAuthSnapshot,
        HarnessIdentity, Snapshot,
    },
    revision::{canonical, digest, is_intact, verify},
    time::Timestamp,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn snapshot(configuration: Document) -> Snapshot {
    Snapshot {
        backend_id: None,
        configuration_id: "cfg_123e4567-e89b-42d3-a456-426614174000"
            .parse::<ConfigurationId>()
            .unwrap(),
        configuration_kind: ConfigurationKind::Agent,
        configuration_generation: 1,
        configuration,
        harness: HarnessIdentity {
            id: "openclaw".into(),
            version: "1.0.0".into(),
            mode: ExecutionMode::Embedded,
        },
        compute: ComputeIdentity {
            id: "compute-process".into(),
            implementation: "occ/process".into(),
        },
        sandbox_driver_id: None,
        credential_sources: Vec::new(),
        plugins: None,
        plugin_approvers: None,
        harness_auth: HarnessAuthSnapshot {
            binding: HarnessAuth::Runtime {},
            secret: None,
            account: None,
            source: None,
        },
        secret_bindings: std::collections::BTreeMap::new(),
        service_principal_id: "spn_agent".parse().unwrap(),
    }
}

fn document(value: Value) -> Document {
    let Value::Object(document) = value else {
        panic!("an object")
    };
    document
}

#[test]
fn the_bytes_of_a_snapshot_stay_the_same_from_version_to_version() {
    let bytes = canonical(&snapshot(document(
        json!({ "b": [1, { "z": null, "a": 0.5 }], "a": "é" }),
    )));
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"backendId":null,"compute":{"id":"compute-process","implementation":"occ/process"},"#,
            r#""configuration":{"a":"é","b":[1,{"a":0.5,"z":null}]},"configurationGeneration":1,"#,
            r#""configurationId":"cfg_123e4567-e89b-42d3-a456-426614174000","configurationKind":"agent","#,
            r#""harness":{"id":"openclaw","mode":"embedded","version":"1.0.0"},"#,
            r#""harnessAuth":{"binding":{"method":"runtime"}},"servicePrincipalId":"spn_agent"}"#
        )
    );
    assert_eq!(digest(&bytes).len(), 64);
}

#[test]
fn bytes_that_are_not_the_digests_are_no_snapshot() {
    let snapshot = snapshot(Document::new());
    let bytes = canonical(&snapshot);
    let of = digest(&bytes);
    assert_eq!(verify(&bytes, &of), Some(snapshot.clone()));
    let mut other = bytes.clone();
    other.push(b' ');
    assert_eq!(verify(&other, &of), None, "even where JSON would be the same");
    assert_eq!(verify(&bytes, ""), None);

    let mut revision = AgentRevision {
        id: RevisionId::random(),
        namespace_id: NamespaceId::random(),
        agent_id: AgentId::random(),
        revision: 1,
        snapshot,
        digest: of,
        created_at: Timestamp::from_millis(0),
    };
    assert!(is_intact(&revision));
    revision.snapshot.configuration_generation = 2;
    assert!(!is_intact(&revision));
}

fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |n| serde_json::Number::from_f64(n).map(Value::Number)),
        ".{0,12}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(".{0,6}", inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_document_survives_its_canonical_form(value in any_value()) {
        let first = snapshot(document(json!({ "value": value })));
        let bytes = canonical(&first);
        let read = verify(&bytes, &digest(&bytes)).expect("the bytes are the digest's");
        prop_assert_eq!(canonical(&read), bytes);
    }
}

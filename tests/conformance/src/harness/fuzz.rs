//! Documents that nobody wrote on purpose.

use std::panic::{AssertUnwindSafe, catch_unwind};

use occ_core::resource::Document;
use serde_json::{Value, json};

use super::{
    Subject,
    sample::{LISTENS, plan},
};

/// JSON pointers to every value below the document itself.
pub(super) fn places(document: &Document) -> Vec<String> {
    fn below(value: &Value, pointer: &str, all: &mut Vec<String>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Object(object) => object
                .iter()
                .map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value))
                .collect(),
            Value::Array(list) => list
                .iter()
                .enumerate()
                .map(|(at, value)| (at.to_string(), value))
                .collect(),
            _ => return,
        };
        for (key, child) in children {
            let pointer = format!("{pointer}/{key}");
            below(child, &pointer, all);
            all.push(pointer);
        }
    }
    let mut all = Vec::new();
    below(&Value::Object(document.clone()), "", &mut all);
    all
}

/// What may stand where something else is expected.
fn surprises() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(""),
        json!("/"),
        json!("a\u{0}b\u{2028}\n"),
        json!("x".repeat(10_000)),
        json!([]),
        json!([null, {}, []]),
        json!({}),
        json!({ "": { "": null } }),
    ]
}

pub(super) fn a_damaged_document_is_refused_or_planned_and_never_a_panic(subject: &dyn Subject) {
    let harness = subject.harness();
    for sample in subject.accepted() {
        let snapshot = sample.snapshot(&*harness);
        for pointer in places(&sample.document) {
            for surprise in surprises() {
                let mut changed = Value::Object(sample.document.clone());
                let Some(place) = changed.pointer_mut(&pointer) else {
                    continue;
                };
                *place = surprise.clone();
                let Value::Object(document) = changed else { continue };
                let asked = AssertUnwindSafe(|| {
                    let _ = harness.select(&document);
                    let _ = harness.check_saved(&document);
                    let _ = harness.gateway_settings(&document);
                    let valid = harness.validate(&document, sample.mode, sample.method());
                    let mut snapshot = snapshot.clone();
                    snapshot.configuration = document;
                    for listen in LISTENS {
                        let planned = plan(&*harness, &snapshot, listen);
                        // Admission validates, and plans after: what it admitted can be planned.
                        assert!(valid.is_err() || planned.is_ok(), "it is valid and has no plan");
                    }
                });
                assert!(catch_unwind(asked).is_ok(), "{pointer} with {surprise}");
            }
        }
    }
}
